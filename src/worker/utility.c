/*
 * utility.c: the utility hook.
 */
#include "postgres.h"

#include <signal.h>

#include "access/xact.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/timestamp.h"

#include "core/compat.h"
#include "core/engine.h"
#include "core/identity.h"
#include "core/slot.h"
#include "core/wakeup.h"
#include "worker/utility.h"
#include "worker/worker.h"

#define LEAVE_PATIENCE_US (INT64CONST(4) * USECS_PER_SEC)	/* the server itself waits 5 s */
#define HOLD_US (INT64CONST(600) * USECS_PER_SEC)	/* if this session dies: come back then */

static ProcessUtility_hook_type previous = NULL;

static const char *
template_of(const CreatedbStmt *statement)
{
	ListCell   *lc;

	foreach(lc, statement->options)
	{
		DefElem    *option = lfirst(lc);

		if (strcmp(option->defname, "template") == 0 && option->arg != NULL)
			return defGetString(option);
	}
	return "template1";
}

static bool
moves_tablespace(const AlterDatabaseStmt *statement)
{
	ListCell   *lc;

	foreach(lc, statement->options)
	{
		if (strcmp(lfirst_node(DefElem, lc)->defname, "tablespace") == 0)
			return true;
	}
	return false;
}

/* The database that must be left before the statement can run, or NULL. */
static const char *
database_to_leave(Node *node)
{
	if (IsA(node, DropdbStmt))
		return castNode(DropdbStmt, node)->dbname;
	if (IsA(node, CreatedbStmt))
		return template_of(castNode(CreatedbStmt, node));
	if (IsA(node, RenameStmt) && castNode(RenameStmt, node)->renameType == OBJECT_DATABASE)
		return castNode(RenameStmt, node)->subname;
	if (IsA(node, AlterDatabaseStmt) && moves_tablespace(castNode(AlterDatabaseStmt, node)))
		return castNode(AlterDatabaseStmt, node)->dbname;
	return NULL;
}

/* Perhaps this one: a rescan finds out. */
static bool
drops_extension(Node *node)
{
	ListCell   *lc;

	if (!IsA(node, DropStmt) || castNode(DropStmt, node)->removeType != OBJECT_EXTENSION)
		return false;
	foreach(lc, castNode(DropStmt, node)->objects)
	{
		if (strcmp(strVal(lfirst(lc)), "ujobs") == 0)
			return true;
	}
	return false;
}

static bool
any_left(const UjobsEngine *engine)
{
	if (engine->dispatcher_pid != 0 || engine->scheduler_pid != 0 || engine->relay_pid != 0)
		return true;
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		UjobsSlot	slot;

		ujobs_slot_copy(i, &slot);
		if (slot.state != UJOBS_SLOT_FREE && slot.database == engine->database)
			return true;
	}
	return false;
}

/* SIGTERM gives jobs back; a process that has ended meanwhile is not signalled. */
static void
end_processes(UjobsEngine *engine)
{
	ujobs_worker_end(engine->dispatcher_pid);
	ujobs_worker_end(engine->scheduler_pid);
	ujobs_worker_end(engine->relay_pid);
	ujobs_slot_terminate_all(engine->database);
}

static void
hold(UjobsEngine *engine, bool leave)
{
	ujobs_engine_hold(engine, leave ? GetCurrentTimestamp() + HOLD_US : 0);
}

/* Who is cancelled here must still call allow_processes. */
static void
empty_engine(UjobsEngine *engine)
{
	TimestampTz deadline = GetCurrentTimestamp() + LEAVE_PATIENCE_US;

	hold(engine, true);
	end_processes(engine);
	while (any_left(engine) && GetCurrentTimestamp() < deadline)
	{
		CHECK_FOR_INTERRUPTS();
		pg_usleep(5000);
	}
}

/* Not inlined: gcc 15 would see its variables live across the caller's PG_TRY. */
static pg_noinline UjobsEngine *
engine_to_end(const char *name)
{
	Oid			database = get_database_oid(name, true);
	UjobsEngine *engine = OidIsValid(database) ? ujobs_engine_find(database) : NULL;

	if (engine == NULL || !ujobs_compat_may_drop_database(database, GetUserId()))
		return NULL;
	return engine;
}

static void
allow_processes(UjobsEngine *engine)
{
	if (engine != NULL)
		hold(engine, false);
	ujobs_engine_wake_launcher();
}

static UjobsEngine *held = NULL;	/* until this transaction ends */

static void
at_xact_end(XactEvent event, void *arg)
{
	if (held == NULL ||
		(event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE))
		return;
	allow_processes(held);
	held = NULL;
}

/*
 * DROP EXTENSION locks the tables in its own order, executors in theirs:
 * they would deadlock.  The engine comes back if the drop is rolled back.
 */
static void
empty_for_drop(void)
{
	static bool registered = false;
	UjobsEngine *engine = ujobs_engine_find(MyDatabaseId);

	if (engine == NULL || held != NULL ||
		!has_privs_of_role(GetUserId(), ujobs_identity_extension_owner()))
		return;
	if (!registered)
		RegisterXactCallback(at_xact_end, NULL);
	registered = true;
	held = engine;
	empty_engine(engine);
}

static void
run_previous(PlannedStmt *pstmt, const char *text, bool read_only, ProcessUtilityContext context,
			 ParamListInfo params, QueryEnvironment *environment, DestReceiver *dest,
			 QueryCompletion *qc)
{
	if (previous)
		previous(pstmt, text, read_only, context, params, environment, dest, qc);
	else
		standard_ProcessUtility(pstmt, text, read_only, context, params, environment, dest, qc);
}

static void
utility_hook(PlannedStmt *pstmt, const char *text, bool read_only, ProcessUtilityContext context,
			 ParamListInfo params, QueryEnvironment *environment, DestReceiver *dest,
			 QueryCompletion *qc)
{
	Node	   *node = pstmt->utilityStmt;
	const char *leave = database_to_leave(node);
	bool		commits_prepared = IsA(node, TransactionStmt) &&
		castNode(TransactionStmt, node)->kind == TRANS_STMT_COMMIT_PREPARED;

	if (leave != NULL)
	{
		UjobsEngine *engine = engine_to_end(leave);

		PG_TRY();
		{
			if (engine != NULL)
				empty_engine(engine);
			run_previous(pstmt, text, read_only, context, params, environment, dest, qc);
		}
		PG_FINALLY();
		{
			allow_processes(engine);
		}
		PG_END_TRY();
		return;
	}
	if (drops_extension(node))
		empty_for_drop();
	run_previous(pstmt, text, read_only, context, params, environment, dest, qc);
	if (commits_prepared)
		ujobs_wakeup_rescan_now();
	if (drops_extension(node) && ujobs_engine_find(MyDatabaseId) != NULL)
		ujobs_wakeup_note_rescan();
}

void
ujobs_utility_install(void)
{
	previous = ProcessUtility_hook;
	ProcessUtility_hook = utility_hook;
}
