/*
 * api_workers.c: start_workers and stop_workers, and what CREATE EXTENSION tells the launcher.
 *
 * The functions write the store's origin row and tell the running engine at commit.
 * With a launcher alive it starts the processes; without one the dispatcher
 * is spawned from here and waits for the outcome of this transaction.
 */
#include "postgres.h"

#include "access/xact.h"
#include "commands/dbcommands.h"
#include "fmgr.h"
#include "miscadmin.h"

#include "core/engine.h"
#include "core/identity.h"
#include "core/capacity.h"
#include "core/spawn.h"
#include "core/wakeup.h"
#include "core/guc.h"
#include "store/control_store.h"
#include "store/definition_store.h"

PG_FUNCTION_INFO_V1(ujobs_sql_start_workers);
PG_FUNCTION_INFO_V1(ujobs_sql_stop_workers);
PG_FUNCTION_INFO_V1(ujobs_sql_installed);

static void
announce_config(void)
{
	UjobsHint	hint = {.kind = UJOBS_HINT_CONFIG};

	ujobs_wakeup_note(&hint);
}

/* Once per transaction: a second process would only find the first and go. */
static void
spawn_once(void)
{
	static FullTransactionId spawned_by = {0};
	FullTransactionId xid = GetTopFullTransactionId();

	if (FullTransactionIdEquals(spawned_by, xid))
		return;
	if (ujobs_capacity_ask(UJOBS_CAPACITY_ENGINE) == UJOBS_CAPACITY_NONE ||
		!ujobs_spawn_dispatcher(MyDatabaseId, xid, true))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not start the engine of this database"),
				 errdetail("All %d background worker slots of the server are in use.", max_worker_processes),
				 errhint("Increase max_worker_processes and restart the server.")));
	spawned_by = xid;
}

static void
check_database(void)
{
	if (!ujobs_guc_serves_this_database())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("database \"%s\" may have no engine", get_database_name(MyDatabaseId)),
				 errdetail("The setting ujobs.databases does not name it."),
				 errhint("Add it to ujobs.databases and reload; a name with capitals is written there in double quotes.")));
}

/* The role that accepts a restored store is told what begins with it. */
static void
warn_moved(Oid old_database)
{
	ereport(WARNING,
			(errmsg("the jobs of another database now run here too"),
			 errdetail("The store was restored or copied from the database with OID %u.", old_database),
			 errhint("If that one still works on the same jobs, stop one of the two with ujobs.stop_workers().")));
}

Datum
ujobs_sql_start_workers(PG_FUNCTION_ARGS)
{
	UjobsIdentity identity;
	Oid			old_database;

	PreventCommandIfReadOnly("ujobs.start_workers()");
	check_database();
	ujobs_identity_enter(&identity);
	if (ujobs_control_start(&old_database))
		ujobs_definition_invalidate();
	ujobs_identity_leave(&identity);
	if (OidIsValid(old_database))
		warn_moved(old_database);

	announce_config();
	ujobs_engine_ask(MyDatabaseId);
	ujobs_wakeup_note_launcher();
	if (!ujobs_spawn_has_launcher() && !ujobs_engine_serves())
		spawn_once();
	PG_RETURN_VOID();
}

Datum
ujobs_sql_stop_workers(PG_FUNCTION_ARGS)
{
	UjobsIdentity identity;

	PreventCommandIfReadOnly("ujobs.stop_workers()");
	ujobs_identity_enter(&identity);
	ujobs_control_stop();
	ujobs_identity_leave(&identity);
	announce_config();
	PG_RETURN_VOID();
}

/* ujobs_internal.installed(): an engine may start in this database. */
Datum
ujobs_sql_installed(PG_FUNCTION_ARGS)
{
	if (!ujobs_guc_preloaded)
		ereport(NOTICE,
				(errmsg("ujobs is not in shared_preload_libraries"),
				 errdetail("After a restart of the server no engine runs until ujobs.start_workers() is called."),
				 errhint("Add ujobs to shared_preload_libraries and restart the server.")));
	announce_config();
	ujobs_wakeup_note_launcher();
	PG_RETURN_VOID();
}
