/*
 * launcher.c: one per cluster, from shared_preload_libraries.
 *
 * It is connected to no database.  Each database gets a dispatcher once; one
 * without the extension makes it leave at once, which is the probe.  After
 * that it acts on what is in shared memory: an engine whose dispatcher
 * died is started again with a growing pause, one that was stopped or paused
 * when a session wakes it, none where ujobs.databases does not want it.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "tcop/tcopprot.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "core/engine.h"
#include "core/session_stats.h"
#include "core/capacity.h"
#include "core/shmem.h"
#include "core/spawn.h"
#include "core/guc.h"
#include "worker/launcher.h"
#include "worker/utility.h"
#include "worker/worker.h"

#define LOOK_MS 30000			/* for databases that nothing announced */
#define MAX_FAILURES 6
#define CAPACITY_US 500000			/* until an executor has left, perhaps */
#define NO_CAPACITY_US 5000000

typedef struct Known
{
	Oid			database;
	bool		present;		/* seen in the last look */
	bool		wanted;			/* among ujobs.databases */
	bool		probed;			/* since it is wanted */
	bool		asked;			/* it was asked for, and no process was free yet */
	int			failures;
	uint64		starts;			/* the engine's counter when it was last started */
	TimestampTz not_before;
} Known;

static HTAB *known;
static bool said = false;

void
ujobs_launcher_register(void)
{
	BackgroundWorker worker;

	ujobs_spawn_describe(&worker, "launcher", (Datum) 0);
	worker.bgw_restart_time = 1;
	RegisterBackgroundWorker(&worker);
	ujobs_utility_install();
}

static void
at_exit(int code, Datum arg)
{
	ujobs_engine_leave_launcher();
}

static Known *
know(Oid database)
{
	bool		found;
	Known	   *k = hash_search(known, &database, HASH_ENTER, &found);

	if (!found)
	{
		memset(k, 0, sizeof(*k));
		k->database = database;
	}
	return k;
}

static void
look_at_databases(void)
{
	HASH_SEQ_STATUS status;
	Known	   *k;
	Relation	relation;
	TableScanDesc scan;
	HeapTuple	tuple;

	hash_seq_init(&status, known);
	while ((k = hash_seq_search(&status)) != NULL)
		k->present = false;
	StartTransactionCommand();
	(void) GetTransactionSnapshot();
	relation = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(relation, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);

		if (!form->datallowconn || form->datistemplate)
			continue;
		k = know(form->oid);
		k->present = true;
		k->wanted = ujobs_guc_serves_database(NameStr(form->datname));
		k->probed &= k->wanted;
	}
	table_endscan(scan);
	table_close(relation, AccessShareLock);
	CommitTransactionCommand();
}

/* Gone databases: their engine entry is free again. */
static void
forget_absent(void)
{
	HASH_SEQ_STATUS status;
	Known	   *k;

	hash_seq_init(&status, known);
	while ((k = hash_seq_search(&status)) != NULL)
	{
		if (k->present)
			continue;
		if (ujobs_engine_forget(k->database))
			(void) hash_search(known, &k->database, HASH_REMOVE, NULL);
	}
}

static void
log_shortage(void)
{
	if (!said)
		ereport(LOG,
				(errmsg("could not start a ujobs dispatcher: max_worker_processes is exhausted"),
				 errhint("Raise max_worker_processes.")));
	said = true;
}

/*
 * A known engine is started when it has capacity; those that lack it one at a
 * time.  Whether an unknown database needs any is known when it was probed.
 */
static bool
has_capacity(Known *k, const UjobsEngine *engine)
{
	static TimestampTz last_one = 0;
	TimestampTz now = GetCurrentTimestamp();
	UjobsCapacity	capacity;

	k->not_before = now + CAPACITY_US;
	if (engine->no_worker && now - last_one < CAPACITY_US)
		return false;
	capacity = ujobs_capacity_ask(UJOBS_CAPACITY_ENGINE - (engine->scheduler_pid != 0 ? 1 : 0));
	if (capacity == UJOBS_CAPACITY_NONE)
	{
		if (!engine->no_worker)
			log_shortage();			/* else its dispatcher did */
		k->not_before = now + NO_CAPACITY_US;
	}
	else if (capacity == UJOBS_CAPACITY_THERE)
	{
		last_one = now;
		said &= !engine->no_worker;
	}
	return capacity == UJOBS_CAPACITY_THERE;
}

static bool
start_dispatcher(Known *k, UjobsEngine *engine, TimestampTz now)
{
	bool		started = engine == NULL || has_capacity(k, engine);

	if (started && !ujobs_spawn_dispatcher(k->database, InvalidFullTransactionId, false))
	{
		started = false;
		k->not_before = now + (ujobs_capacity_ask(1) == UJOBS_CAPACITY_NONE ? NO_CAPACITY_US :
																			  CAPACITY_US);
		log_shortage();
	}
	if (!started)
	{
		if (engine != NULL)
			ujobs_engine_set_shortage(engine, true);
		return false;
	}
	/* One that keeps dying is started with a growing pause. */
	if (engine != NULL && k->probed && pg_atomic_read_u64(&engine->starts) == k->starts)
		k->failures = Min(k->failures + 1, MAX_FAILURES);
	else
		k->failures = 0;
	k->starts = engine != NULL ? pg_atomic_read_u64(&engine->starts) : 0;
	k->probed = true;
	k->not_before = now + (USECS_PER_SEC << k->failures);
	return true;
}

/* Should a dispatcher be started there now?  Sets *wait to when it should be asked again. */
static bool
is_due(const Known *k, const UjobsEngine *engine, bool asked, TimestampTz now, TimestampTz *wait)
{
	TimestampTz at = k->not_before;

	if (engine == NULL)
	{
		if (!k->probed && at > now)
			*wait = Min(*wait, at);
		return !k->probed && at <= now;
	}
	if (engine->dispatcher_pid != 0)
		return false;
	if (engine->hold_until > now)
		at = Max(at, engine->hold_until);
	else if (asked)
		return true;			/* a session asked for it: no pause */
	else if (!k->asked &&
			 (engine->state == UJOBS_ENGINE_STOPPED || engine->state == UJOBS_ENGINE_PAUSED))
		return false;
	if (at <= now)
		return true;
	*wait = Min(*wait, at);
	return false;
}

static TimestampTz
keep_engines(bool asked)
{
	HASH_SEQ_STATUS status;
	Known	   *k;
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz wait = DT_NOEND;

	hash_seq_init(&status, known);
	while ((k = hash_seq_search(&status)) != NULL)
	{
		UjobsEngine *engine = ujobs_engine_find(k->database);

		if (k->wanted && is_due(k, engine, asked, now, &wait))
		{
			k->asked = !start_dispatcher(k, engine, now);
			wait = Min(wait, k->not_before);
		}
	}
	return wait;
}

void
ujobs_launcher_main(Datum arg)
{
	UjobsControl *control = ujobs_shmem_control();
	HASHCTL		ctl = {.keysize = sizeof(Oid), .entrysize = sizeof(Known)};
	MemoryContext round;

	ujobs_worker_signals(die, SIG_IGN);
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	before_shmem_exit(at_exit, (Datum) 0);
	ujobs_engine_take_launcher();
	known = hash_create("ujobs databases", 64, &ctl, HASH_ELEM | HASH_BLOBS);
	round = AllocSetContextCreate(TopMemoryContext, "ujobs round", ALLOCSET_DEFAULT_SIZES);
	for (;;)
	{
		bool		asked = pg_atomic_exchange_u32(&control->launcher_asked, 0) != 0;
		TimestampTz next;

		MemoryContextSwitchTo(round);
		look_at_databases();
		MemoryContextReset(round);
		forget_absent();
		next = keep_engines(asked);
		ujobs_worker_wait(Min(ujobs_worker_ms_until(next), LOOK_MS));
	}
}
