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

/* As the session's default: a SET would end with the first ROLLBACK of the handler. */
static void
set_for_session(const char *name, const char *value)
{
	SetConfigOption(name, value, PGC_USERSET, PGC_S_OVERRIDE);
}

static void
set_for_run(const char *name, const char *value, const char *current, bool may_commit)
{
	if (strcmp(value, current ? current : "") == 0)
		return;
	if (may_commit)
		set_for_session(name, value);
	else
		(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

void
ujobs_session_begin(UjobsSession *session, const UjobsJob *job, bool may_commit)
{
	ujobs_current_begin(job);
	session->guc_level = may_commit ? 0 : NewGUCNestLevel();
	set_for_run("ujobs.tenant_id", job->tenant, ujobs_guc_tenant_id, may_commit);
	set_for_run("ujobs.traceparent", job->traceparent ? job->traceparent : "",
				ujobs_guc_traceparent, may_commit);
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
	set_for_session("ujobs.tenant_id", "");
	set_for_session("ujobs.traceparent", "");
	SetPGVariable("session_authorization", NIL, false);
	ResetAllOptions();
	drop_leftovers();
	drop_temp_tables();
}
