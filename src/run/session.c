/*
 * session.c: no job sees another's settings, temporary tables, locks, cursors
 * or prepared statements.  Step 8 of the walk.
 *
 * A nested settings level makes SET and SET LOCAL of an atomic handler vanish
 * for the price of a counter; DISCARD ALL's own pieces do the rest, by need.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "commands/async.h"
#include "commands/prepare.h"
#include "commands/sequence.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/portal.h"

#include "core/compat.h"
#include "core/guc.h"
#include "run/current.h"
#include "run/session.h"

static void
set_for_run(const char *name, const char *value, const char *current, GucAction action)
{
	if (strcmp(value, current ? current : "") == 0)
		return;
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, action, true, 0, false);
}

void
ujobs_session_begin(UjobsSession *session, const UjobsJob *job, bool may_commit)
{
	GucAction	action = may_commit ? GUC_ACTION_SET : GUC_ACTION_SAVE;

	ujobs_current_begin(job);
	session->guc_level = may_commit ? 0 : NewGUCNestLevel();
	set_for_run("ujobs.tenant_id", job->tenant, ujobs_guc_tenant_id, action);
	set_for_run("ujobs.traceparent", job->traceparent ? job->traceparent : "",
				ujobs_guc_traceparent, action);
}

static void
drop_temp_tables(void)
{
	if (ujobs_compat_has_temp_schema())
		ResetTempTableNamespace();
}

static void
drop_leftovers(void)
{
	PortalHashTableDeleteAll();
	DropAllPreparedStatements();
	ResetSequenceCaches();
}

void
ujobs_session_end_settings(UjobsSession *session)
{
	AtEOXact_GUC(false, session->guc_level);
}

void
ujobs_session_end(UjobsSession *session)
{
	if (session->guc_level == 0)
		return;
	ujobs_session_end_settings(session);
	drop_leftovers();
	drop_temp_tables();
}

void
ujobs_session_reset(void)
{
	DropAllPreparedStatements();
	ujobs_compat_release_advisory_locks();
}

void
ujobs_session_reset_settings(void)
{
	SetPGVariable("session_authorization", NIL, false);
	ResetAllOptions();
	drop_leftovers();
	drop_temp_tables();
}
