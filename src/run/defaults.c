/*
 * defaults.c: a session that outlives many jobs follows its database's and
 * its role's defaults.
 *
 * The server reads them at login alone, as if an executor were one client's
 * session.  It is not: whoever says ALTER DATABASE ... SET means the next job.
 * An executor that was idle reads them before it goes on, in about ten
 * microseconds.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_db_role_setting.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"

#include "run/defaults.h"

/* ALTER ROLE ... SET role applies to this session too. */
void
ujobs_defaults_become(Oid role)
{
	SetConfigOption("role", "none", PGC_USERSET, PGC_S_OVERRIDE);
	if (GetUserId() != role)
		ereport(FATAL,
				(errcode(ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION),
				 errmsg("settings of role \"%s\" turn its sessions into another role's",
						GetUserNameFromId(role, true)),
				 errhint("Its jobs wait until ALTER ROLE ... RESET session_authorization.")));
}

/* In the server's order: what comes first stands against what follows. */
void
ujobs_defaults_follow(Oid role)
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
	ujobs_defaults_become(role);
	CommitTransactionCommand();
}
