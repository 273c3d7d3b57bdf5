/*
 * dispatcher.c: step 3 of the walk, the loop around it.
 *
 * Hints come in, windows on rows are kept filled, tickets go out (assign.c).
 * It never runs user code, never writes a job's row but for one that crashed
 * the server, holds no snapshot while it waits, and can be killed at any
 * line: its picture is rebuilt from rows and slots.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/capacity.h"
#include "core/engine.h"
#include "core/guc.h"
#include "core/identity.h"
#include "core/session_stats.h"
#include "core/spawn.h"
#include "core/wakeup.h"
#include "store/definition_store.h"
#include "store/store_identity.h"
#include "worker/dispatch/assign.h"
#include "worker/dispatch/dispatcher.h"
#include "worker/dispatch/executors.h"
#include "worker/dispatch/lane.h"
#include "worker/dispatch/outside.h"
#include "worker/dispatch/queues.h"
#include "worker/dispatch/waits.h"
#include "worker/relay/relay.h"
#include "worker/scheduler.h"
#include "worker/worker.h"

#define HINTS_AT_ONCE 256
#define ADMISSION_MS 100		/* until an executor has left, perhaps */

/* A rescan may take 1 % of the time when it only looks, 5 % when hints were lost. */
#define RECONCILE_SHARE 100
#define DIRTY_SHARE 20
#define WAITS_SHARE 1000		/* to look at all waits, when nothing says that it is needed */

static UjobsEngine *engine;
static TimestampTz reconcile_at = 0;
static TimestampTz dirty_at = 0;	/* not before, when dirty */
static TimestampTz waits_at = 0;
static bool dirty = true;
static bool lane_missing = false;	/* a hint named a lane that is not known */
static bool definitions_changed = false;
static bool config_changed = false;
static bool unsettled = false;	/* no origin row yet */
static MemoryContext loop_memory;
static char database_name[NAMEDATALEN];
static Oid	store;				/* schema ujobs_internal */

/* ---- start and end ---- */

static void
at_exit(int code, Datum arg)
{
	ujobs_engine_leave_dispatcher(engine);
	ujobs_engine_wake(&ujobs_shmem_control()->launcher_latch);
}

/* One dispatcher per database: the entry in shared memory is the lock. */
static void
take_engine(void)
{
	engine = ujobs_engine_get(MyDatabaseId);
	if (engine == NULL)
	{
		ereport(LOG, (errmsg("ujobs serves at most %d databases of a cluster", UJOBS_MAX_ENGINES)));
		proc_exit(0);
	}
	ujobs_worker_enter(&engine->dispatcher_pid, &engine->dispatcher_latch, at_exit);
}

/* Exit code 0: it is not started again until it is asked for. */
static void
leave(UjobsEngineState state)
{
	ujobs_engine_set_state(engine, state);
	proc_exit(0);
}

static bool
extension_is_here(void)
{
	bool		here;

	StartTransactionCommand();
	strlcpy(database_name, get_database_name(MyDatabaseId), NAMEDATALEN);
	here = OidIsValid(ujobs_identity_extension_owner());
	store = get_namespace_oid("ujobs_internal", true);
	CommitTransactionCommand();
	return here;
}

static void
check_identity(void)
{
	UjobsStoreIdentity	identity;

	ujobs_worker_begin();
	identity = ujobs_store_identity_check();
	ujobs_worker_commit();
	unsettled = identity == UJOBS_STORE_NEW;
	if (identity == UJOBS_STORE_STOPPED)
		leave(UJOBS_ENGINE_STOPPED);
	if (identity != UJOBS_STORE_STRANGE)
		return;
	ereport(LOG,
			(errmsg("ujobs is paused in database \"%s\": its jobs were restored or copied from another database",
					database_name),
			 errhint("Run SELECT ujobs.start_workers() there to let them run.")));
	leave(UJOBS_ENGINE_PAUSED);
}

/* ---- one round ---- */

static void
take_hint(const UjobsHint *hint, TimestampTz now)
{
	switch ((UjobsHintKind) hint->kind)
	{
		case UJOBS_HINT_JOB:
		case UJOBS_HINT_RANGE:
		case UJOBS_HINT_GONE:
			if (!ujobs_assign_hint(hint, now))
				lane_missing = true;
			break;
		case UJOBS_HINT_DEFINITIONS:
			definitions_changed = true;
			ujobs_scheduler_tell(engine);
			break;
		case UJOBS_HINT_TASKS:
			ujobs_scheduler_tell(engine);
			break;
		case UJOBS_HINT_CONFIG:
			config_changed = true;
			break;
		case UJOBS_HINT_EVENT:
		case UJOBS_HINT_WAIT:
		case UJOBS_HINT_ENDED:
			ujobs_wait_hint(hint);
			break;
	}
}

static void
take_hints(TimestampTz now)
{
	UjobsHint	hints[HINTS_AT_ONCE];
	int			n;

	do
	{
		n = ujobs_wakeup_take(hints, HINTS_AT_ONCE);
		for (int i = 0; i < n; i++)
			take_hint(&hints[i], now);
	} while (n == HINTS_AT_ONCE);
	if (ujobs_wakeup_take_dirty(engine))
	{
		dirty = true;
		ujobs_scheduler_tell(engine);
	}
}

/* A transaction whose memory is the round's. */
static void
begin(void)
{
	ujobs_worker_begin();
	MemoryContextSwitchTo(loop_memory);
}

/* In the rescan's transaction, after the lanes are known. */
static void
look_at_all_waits(TimestampTz now)
{
	TimestampTz began = GetCurrentTimestamp();
	TimestampTz ended;

	ujobs_assign_look_at_all_waits(now);
	ended = GetCurrentTimestamp();
	waits_at = ended + (ended - began) * WAITS_SHARE;
}

static void
rescan(TimestampTz now)
{
	TimestampTz ended;

	begin();
	ujobs_assign_rescan(now);
	if (dirty || now >= waits_at)
		look_at_all_waits(now);
	ujobs_worker_commit();
	ended = GetCurrentTimestamp();
	dirty = lane_missing = definitions_changed = false;
	dirty_at = ended + (ended - now) * DIRTY_SHARE;
	reconcile_at = ended +
				   Max((int64) ujobs_guc_poll_interval * 1000, (ended - now) * RECONCILE_SHARE);
}

static void
reload_definitions(void)
{
	begin();
	ujobs_definition_forget();
	ujobs_lane_load(0);
	ujobs_worker_commit();
	definitions_changed = false;
}

static void
discover(TimestampTz now)
{
	begin();
	ujobs_queue_discover(now);
	ujobs_worker_commit();
	lane_missing = false;
}

/* Rows of leases that may be over, of waits that may be over, and of windows. */
static void
read_rows(TimestampTz now)
{
	if (!ujobs_assign_wants_rows(now))
		return;
	begin();
	ujobs_assign_read_rows(now);
	ujobs_worker_commit();
}

static TimestampTz
next_instant(TimestampTz now)
{
	TimestampTz next = dirty ? Min(dirty_at, reconcile_at) : reconcile_at;

	return Min(next, ujobs_assign_next(now));
}

/* DROP EXTENSION: nothing is left to serve, or another store by now, of which nothing is known. */
static void
leave_without_extension(void)
{
	Oid			served = store;
	bool		here = extension_is_here();

	if (here && store == served)
		return;
	ujobs_executor_terminate_all();
	ujobs_scheduler_stop(engine);
	ujobs_relay_stop(engine);
	ujobs_engine_set_state(engine, UJOBS_ENGINE_DOWN);
	proc_exit(here ? 1 : 0);	/* 1: start again, for the new one */
}

/* Definitions are needed with the hints that follow them: before any ticket goes out. */
static TimestampTz
one_round(void)
{
	TimestampTz now = GetCurrentTimestamp();

	ujobs_assign_look_at_executors(now);
	ujobs_outside_begin_round();
	take_hints(now);
	ujobs_assign_look_at_claims(now);	/* after the hints: a lease that is over has begun */
	if (now >= reconcile_at || dirty)
		leave_without_extension();
	if (now >= reconcile_at || (dirty && now >= dirty_at))
		rescan(now);
	if (definitions_changed)
		reload_definitions();
	if (lane_missing)
		discover(now);
	read_rows(now);
	ujobs_assign_round(now);
	ujobs_assign_answer_claims(dirty);
	MemoryContextSwitchTo(loop_memory);
	MemoryContextReset(loop_memory);
	return next_instant(now);
}

/*
 * No job is defined here, so rows that turn up are being restored:
 * touch nothing until the origin row says whose they are.
 */
static TimestampTz
await_identity(void)
{
	leave_without_extension();
	check_identity();
	return unsettled ? GetCurrentTimestamp() + (int64) ujobs_guc_poll_interval * 1000 : 0;
}

/* ---- stop ---- */

/* Was start_workers called meanwhile, or the database put back into the list? */
static bool
may_go_on(UjobsEngineState after)
{
	UjobsStoreIdentity	identity;

	take_hints(GetCurrentTimestamp());
	if (after == UJOBS_ENGINE_DOWN)
		return ujobs_guc_serves_database(database_name);
	if (!config_changed)
		return false;
	config_changed = false;
	ujobs_worker_begin();
	identity = ujobs_store_identity_check();
	ujobs_worker_commit();
	return identity == UJOBS_STORE_OWN;
}

/*
 * In-flight work may finish until drain_timeout, the rest is given back.
 * Returns only when the engine is to go on.
 */
static void
drain_and_leave(UjobsEngineState after)
{
	TimestampTz deadline = GetCurrentTimestamp() + (int64) ujobs_guc_drain_timeout * 1000;
	bool		terminated = false;

	ujobs_engine_set_state(engine, UJOBS_ENGINE_DRAINING);
	ujobs_relay_stop(engine);
	ujobs_claim_wake_all(ujobs_engine_create_area());
	ujobs_assign_dismiss();
	while (ujobs_executor_count() > 0)
	{
		if (!terminated && GetCurrentTimestamp() >= deadline)
		{
			ujobs_executor_terminate_all();
			terminated = true;
		}
		ujobs_worker_wait(terminated ? 100 : Min(ujobs_worker_ms_until(deadline), 1000));
		ujobs_assign_look_at_executors(GetCurrentTimestamp());
		if (may_go_on(after))
		{
			dirty = true;
			ujobs_engine_set_state(engine, UJOBS_ENGINE_RUNNING);
			return;
		}
	}
	ujobs_scheduler_stop(engine);
	leave(after);
}

static void
follow_config(void)
{
	UjobsStoreIdentity	identity;

	config_changed = false;
	ujobs_worker_begin();
	identity = ujobs_store_identity_check();
	ujobs_worker_commit();
	if (identity == UJOBS_STORE_STOPPED)
		drain_and_leave(UJOBS_ENGINE_STOPPED);
}

/* A database without the extension: processes that are left of an engine there end. */
static void
forget_database(Oid database)
{
	UjobsEngine *former = ujobs_engine_find(database);

	if (former == NULL)
		return;
	ujobs_slot_terminate_all(database);
	ujobs_scheduler_stop(former);
	ujobs_relay_stop(former);
	(void) ujobs_engine_forget(database);
}

static void
start_process(Oid database)
{
	ujobs_worker_signals(die, ujobs_worker_own_cancel);
	ujobs_worker_connect(database, "ujobs dispatcher", "1s");
	SetConfigOption("synchronous_commit", "off", PGC_SUSET, PGC_S_OVERRIDE);
	if (!ujobs_spawn_confirmed())
		proc_exit(0);
	if (!extension_is_here())
	{
		forget_database(database);
		proc_exit(0);
	}
	take_engine();
	check_identity();
	loop_memory = AllocSetContextCreate(TopMemoryContext, "ujobs round", ALLOCSET_DEFAULT_SIZES);
	ujobs_assign_init(ujobs_engine_create_area());
	pg_atomic_fetch_add_u64(&engine->starts, 1);
}

/*
 * The launcher starts dispatchers without knowing which databases have the
 * extension, so each finds out here whether processes are left for its engine:
 * one after the other, because all count the same ones.
 */
static bool
await_admission(void)
{
	int			wanted = engine->scheduler_pid == 0 ? 1 : 0;

	while (!ujobs_engine_begin(engine, ujobs_capacity_is_there, wanted))
	{
		bool		said = engine->no_worker;

		ujobs_engine_set_shortage(engine, true);
		if (ujobs_capacity_ask(wanted) == UJOBS_CAPACITY_NONE)
		{
			if (!said)
				ereport(LOG,
						(errmsg("ujobs waits in database \"%s\": max_worker_processes is exhausted", database_name),
						 errdetail("An engine needs two processes, and one must be left for executors."),
						 errhint("Raise max_worker_processes.")));
			return false;
		}
		ujobs_worker_wait(ADMISSION_MS);
	}
	(void) ujobs_capacity_ask(0);	/* keeps the scheduler's for it */
	return true;
}

void
ujobs_dispatcher_main(Datum arg)
{
	start_process(DatumGetObjectId(arg));
	ujobs_assign_adopt();
	if (!await_admission())
		leave(UJOBS_ENGINE_DOWN);
	ujobs_assign_examine_crash();
	for (;;)
	{
		TimestampTz next;

		if (!ujobs_guc_serves_database(database_name))
			drain_and_leave(UJOBS_ENGINE_DOWN);
		if (config_changed)
			follow_config();
		if (unsettled)
			next = await_identity();
		else
		{
			TimestampTz start_at = ujobs_scheduler_ensure(engine);

			start_at = Min(start_at, ujobs_relay_ensure(engine));
			next = one_round();
			next = Min(next, start_at);
		}
		if (config_changed)
			continue;
		ujobs_session_stats_memory(GetCurrentTimestamp(), &engine->dispatcher_memory);
		ujobs_session_stats_activity(NULL);
		ujobs_session_stats_report(false);
		ujobs_worker_wait(ujobs_worker_ms_until(next));
	}
}
