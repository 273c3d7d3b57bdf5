/*
 * session.c: no job sees another's settings, temporary tables, locks, cursors
 * or prepared statements.  Step 8 of the walk.
 *
 * A nested settings level makes SET and SET LOCAL of an atomic handler vanish
 * for the price of a counter; DISCARD ALL's own pieces do the rest, by need.
 */
#include "postgres.h"

#include "utils/snapmgr.h"
#include "catalog/pg_db_role_setting.h"
#include "access/xact.h"
#include "access/table.h"
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
		(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
								 false);
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
	if (!ujobs_compat_has_temp_schema())
		return;
	PushActiveSnapshot(GetTransactionSnapshot());	/* what is dropped may have toasted catalogue rows */
	ResetTempTableNamespace();
	PopActiveSnapshot();
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
	Assert(IsTransactionState());
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

/* ---- defaults of database and role ---- */

/*
 * The server reads them at login alone, as if an executor were one client's
 * session.  But ALTER DATABASE ... SET is meant for the next job: an executor
 * that was idle reads them before it goes on, in about ten microseconds.
 */

/* ALTER ROLE ... SET role applies to this session too. */
void
ujobs_session_become(Oid role)
{
	SetConfigOption("role", "none", PGC_USERSET, PGC_S_OVERRIDE);
	if (GetUserId() != role)
		ereport(FATAL,
				(errcode(ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION),
				 errmsg("settings of role \"%s\" turn its sessions into another role's",
						GetUserNameFromId(role, true)),
				 errhint("Its jobs wait until ALTER ROLE ... RESET session_authorization.")));
}

/* In the server's order: a setting that is applied first overrides the later ones. */
void
ujobs_session_follow_defaults(Oid role)
{
	Relation	settings;
	Snapshot	snapshot;

	StartTransactionCommand();
	settings = table_open(DbRoleSettingRelationId, AccessShareLock);
	snapshot = RegisterSnapshot(GetCatalogSnapshot(DbRoleSettingRelationId));
	ApplySetting(snapshot, MyDatabaseId, role, settings, PGC_S_DATABASE_USER);
	ApplySetting(snapshot, InvalidOid, role, settings, PGC_S_USER);
	ApplySetting(snapshot, MyDatabaseId, InvalidOid, settings, PGC_S_DATABASE);
	ApplySetting(snapshot, InvalidOid, InvalidOid, settings, PGC_S_GLOBAL);
	UnregisterSnapshot(snapshot);
	table_close(settings, AccessShareLock);
	ujobs_session_become(role);
	CommitTransactionCommand();
}
