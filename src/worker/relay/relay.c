/*
 * relay.c: carries messages between this store and other systems.
 *
 * One process per database, there only while a sink is defined.  It does all
 * the SQL: publisher.c sends what was committed, queue_consumer.c stores what was
 * taken.  Each connection to a system has a thread (core/connection.h); all threads
 * wake the process by one pipe.
 *
 * It can be killed at any line.  What was sent and not recorded is sent again,
 * with the same id; what was taken and not stored is offered again.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/engine.h"
#include "core/in_flight.h"
#include "core/guc.h"
#include "core/session_stats.h"
#include "core/capacity.h"
#include "core/spawn.h"
#include "core/wakeup.h"
#include "store/store_identity.h"
#include "store/sink_store.h"
#include "worker/relay/relay.h"
#include "worker/relay/queue_consumer.h"
#include "worker/relay/publisher.h"
#include "worker/worker.h"

#define RESTART_US USECS_PER_SEC
#define READ_AGAIN_MS 1000
#define CAPACITY_MS 100				/* until an executor has left, perhaps */

/* A sink with its publisher and the consumers of queues on it. */
typedef struct Endpoint
{
	UjobsRelaySink *sink;
	UjobsPublisher *publisher;
	List	   *consumers;	/* UjobsQueueConsumer */
	bool		closing;			/* dropped, or to be reached in another way */
} Endpoint;

static UjobsEngine *engine;
static List *endpoints = NIL;	/* Endpoint */
static bool changed = true;		/* what is in the store may be something else */
static TimestampTz read_at = 0; /* not before: it failed */
static MemoryContext loop_memory;

/* ---- the dispatcher's side ---- */

static bool
is_needed(void)
{
	bool		needed;

	ujobs_worker_begin();
	needed = ujobs_sink_any();
	ujobs_worker_commit();
	return needed;
}

/*
 * Is there a process for it, with one left for executors?  *next: when the dispatcher
 * has to look again.
 */
static bool
has_capacity(TimestampTz now, TimestampTz *next)
{
	static bool logged = false;
	UjobsCapacity capacity = ujobs_capacity_ask(1);

	if (capacity == UJOBS_CAPACITY_NONE && !logged)
		ereport(LOG,
				(errmsg("ujobs cannot start a relay: max_worker_processes is exhausted"),
				 errdetail("Messages stay in the outbox; one process must be left for executors."),
				 errhint("Raise max_worker_processes.")));
	logged = capacity == UJOBS_CAPACITY_NONE;
	*next = TimestampTzPlusMilliseconds(now, capacity == UJOBS_CAPACITY_COMING ? CAPACITY_MS : ujobs_guc_poll_interval);
	return capacity == UJOBS_CAPACITY_THERE;
}

/* A relay that ends wakes the dispatcher, and so does a commit that needs one. */
TimestampTz
ujobs_relay_ensure(UjobsEngine *of)
{
	static TimestampTz look_at = 0;
	static TimestampTz tried_at = 0;
	static bool needed = false;
	BackgroundWorker worker;
	TimestampTz now;

	Assert(!IsTransactionState());
	if (of->relay_pid != 0)
		return DT_NOEND;
	now = GetCurrentTimestamp();
	if (now < look_at && pg_atomic_read_u32(&of->relay_changed) == 0)
		return needed ? look_at : DT_NOEND;
	if (now - tried_at < RESTART_US)
		return tried_at + RESTART_US;
	(void) ujobs_wakeup_take_relay(of);
	look_at = TimestampTzPlusMilliseconds(now, ujobs_guc_poll_interval);
	needed = is_needed();
	if (!needed || !has_capacity(now, &look_at))
		return needed ? look_at : DT_NOEND;
	tried_at = now;
	ujobs_spawn_describe(&worker, "relay", ObjectIdGetDatum(MyDatabaseId));
	(void) RegisterDynamicBackgroundWorker(&worker, NULL);
	return look_at;
}

void
ujobs_relay_stop(UjobsEngine *of)
{
	ujobs_worker_end(of->relay_pid);
}

/* ---- start and end ---- */

static void
at_exit(int code, Datum arg)
{
	if (engine->relay_pid != MyProcPid)
		return;
	ujobs_in_flight_clear();		/* before another relay can begin */
	(void) ujobs_engine_leave_process(&engine->relay_pid);
	if (code != 0)
		pg_atomic_write_u32(&engine->relay_changed, 1); /* start another one */
	ujobs_engine_wake(&engine->dispatcher_latch);
}

static void
start_process(Oid database)
{
	ujobs_worker_signals(die, ujobs_worker_own_cancel);
	engine = ujobs_engine_find(database);
	if (engine == NULL)
		proc_exit(0);
	ujobs_worker_enter(&engine->relay_pid, &engine->relay_latch, at_exit);
	ujobs_worker_connect(database, "ujobs relay", "500ms");
	SetConfigOption("synchronous_commit", "off", PGC_SUSET, PGC_S_OVERRIDE);
	(void) ujobs_engine_area();
	ujobs_in_flight_clear();
	loop_memory = AllocSetContextCreate(TopMemoryContext, "ujobs relay loop",
										ALLOCSET_DEFAULT_SIZES);
}

/* ---- what is defined ---- */

typedef struct Definitions
{
	UjobsSink  *sinks;
	int			n_sinks;
	UjobsConsumer *consumers;
	int			n_consumers;
	char	   *store_id;
	UjobsRelaySink **made;		/* of sinks that have no endpoint */
} Definitions;

static Endpoint *
find_endpoint(int32 sink_id)
{
	ListCell   *lc;

	foreach(lc, endpoints)
	{
		Endpoint    *endpoint = lfirst(lc);

		if (endpoint->sink->id == sink_id)
			return endpoint;
	}
	return NULL;
}

static void
read_definitions(void *arg)
{
	Definitions	   *defined = arg;

	MemoryContextSwitchTo(loop_memory);
	defined->sinks = ujobs_sink_list(&defined->n_sinks);
	defined->consumers = ujobs_sink_consumers(&defined->n_consumers);
	defined->store_id = ujobs_store_identity_uuid();
	defined->made = palloc0(Max(defined->n_sinks, 1) * sizeof(UjobsRelaySink *));
	for (int i = 0; i < defined->n_sinks; i++)
	{
		if (find_endpoint(defined->sinks[i].id) == NULL)
			defined->made[i] = ujobs_sink_connection_make_sink(&defined->sinks[i],
															   defined->store_id);
	}
}

/* Was it made with another setting than the one that holds now? */
static bool
is_outdated(const Endpoint *endpoint)
{
	return endpoint->sink->options->allow_private != ujobs_guc_http_allow_private;
}

static bool
is_defined(const Endpoint *endpoint, const Definitions *defined)
{
	for (int i = 0; i < defined->n_sinks; i++)
	{
		if (defined->sinks[i].id == endpoint->sink->id)
			return defined->sinks[i].revision == endpoint->sink->revision && !is_outdated(endpoint);
	}
	return false;
}

static bool
is_consumed(const Endpoint *endpoint, const char *queue, const Definitions *defined)
{
	for (int i = 0; i < defined->n_consumers; i++)
	{
		const UjobsConsumer *consumer = &defined->consumers[i];

		if (consumer->enabled && consumer->sink_id == endpoint->sink->id &&
			strcmp(consumer->queue, queue) == 0)
			return true;
	}
	return false;
}

static void
close_consumers(Endpoint *endpoint, const Definitions *defined)
{
	ListCell   *lc;

	foreach(lc, endpoint->consumers)
	{
		UjobsQueueConsumer *consumer = lfirst(lc);

		if (!endpoint->closing &&
			is_consumed(endpoint, ujobs_queue_consumer_queue(consumer), defined))
			continue;
		ujobs_queue_consumer_close(consumer);
		endpoint->consumers = foreach_delete_current(endpoint->consumers, lc);
	}
}

static bool
has_consumer(const Endpoint *endpoint, const char *queue)
{
	ListCell   *lc;

	foreach(lc, endpoint->consumers)
	{
		if (strcmp(ujobs_queue_consumer_queue(lfirst(lc)), queue) == 0)
			return true;
	}
	return false;
}

static void
open_consumers(const Definitions *defined)
{
	for (int i = 0; i < defined->n_consumers; i++)
	{
		const UjobsConsumer *consumer = &defined->consumers[i];
		Endpoint    *endpoint = consumer->enabled ? find_endpoint(consumer->sink_id) : NULL;

		if (endpoint == NULL || endpoint->closing || has_consumer(endpoint, consumer->queue))
			continue;
		endpoint->consumers = lappend(endpoint->consumers,
									  ujobs_queue_consumer_open(endpoint->sink, consumer->queue));
	}
}

static void
open_endpoint(UjobsRelaySink *sink)
{
	Endpoint    *endpoint = palloc0(sizeof(Endpoint));

	MemoryContextSetParent(sink->memory, TopMemoryContext);
	endpoint->sink = sink;
	endpoint->publisher = ujobs_publisher_open(sink);
	endpoints = lappend(endpoints, endpoint);
}

static void
apply_definitions(const Definitions *defined)
{
	ListCell   *lc;

	MemoryContextSwitchTo(TopMemoryContext);
	foreach(lc, endpoints)
	{
		Endpoint    *endpoint = lfirst(lc);

		endpoint->closing |= !is_defined(endpoint, defined);
		close_consumers(endpoint, defined);
	}
	for (int i = 0; i < defined->n_sinks; i++)
	{
		if (defined->made[i] != NULL)
			open_endpoint(defined->made[i]);
	}
	open_consumers(defined);
	MemoryContextSwitchTo(loop_memory);
}

static void
hint_consumers(void)
{
	ListCell   *lc;
	ListCell   *in;

	foreach(lc, endpoints)
	{
		foreach(in, ((Endpoint *) lfirst(lc))->consumers)
			ujobs_queue_consumer_hint(lfirst(in));
	}
}

static bool
have_outdated(void)
{
	ListCell   *lc;

	foreach(lc, endpoints)
	{
		const Endpoint *endpoint = lfirst(lc);

		if (!endpoint->closing && is_outdated(endpoint))
			return true;
	}
	return false;
}

/* Definitions have changed, or sinks, or consumers, or queues: one flag tells of all. */
static void
check_definitions(TimestampTz now)
{
	static UjobsSinkReport report;
	Definitions		defined = {0};
	ErrorData  *error;

	changed |= ujobs_wakeup_take_relay(engine);
	changed |= have_outdated();
	if (!changed || now < read_at)
		return;
	if (!ujobs_worker_extension_is_here())
		proc_exit(0);
	error = ujobs_worker_try(read_definitions, &defined);
	ujobs_sink_connection_report(&report, "read its sinks", error);
	if (error != NULL)
	{
		read_at = TimestampTzPlusMilliseconds(now, READ_AGAIN_MS);
		return;
	}
	changed = false;
	apply_definitions(&defined);
	hint_consumers();
	ujobs_queue_consumer_retry_parked();
}

/* A sink that is to be reached in another way comes back at the next look. */
static void
close_endpoints(void)
{
	ListCell   *lc;

	MemoryContextSwitchTo(loop_memory); /* the current one may be of a sink that goes */
	foreach(lc, endpoints)
	{
		Endpoint    *endpoint = lfirst(lc);

		if (!endpoint->closing || !ujobs_publisher_retire(endpoint->publisher))
			continue;
		ujobs_publisher_close(endpoint->publisher);
		MemoryContextDelete(endpoint->sink->memory);
		endpoints = foreach_delete_current(endpoints, lc);
		pfree(endpoint);
		changed = true;
	}
}

/* ---- the loop ---- */

static void
take_hints(void)
{
	int64		low = ujobs_wakeup_take_outbox(engine);
	ListCell   *lc;

	if (low == PG_INT64_MAX)
		return;
	foreach(lc, endpoints)
		ujobs_publisher_hint(((Endpoint *) lfirst(lc))->publisher, low);
}

static TimestampTz
run_endpoint(Endpoint *endpoint, TimestampTz now)
{
	TimestampTz next = ujobs_publisher_run(endpoint->publisher, now);
	ListCell   *lc;

	foreach(lc, endpoint->consumers)
	{
		TimestampTz at = ujobs_queue_consumer_run(lfirst(lc), now);

		next = Min(next, at);
	}
	return next;
}

static TimestampTz
run_once(void)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz next = DT_NOEND;
	ListCell   *lc;

	take_hints();
	check_definitions(now);
	foreach(lc, endpoints)
	{
		TimestampTz at = run_endpoint(lfirst(lc), now);

		next = Min(next, at);
	}
	close_endpoints();
	return changed ? Max(now, read_at) : next;
}

/* A sink that was just defined may be there: the dispatcher is told at the end, and looks. */
static void
leave_if_idle(void)
{
	if (endpoints == NIL && !changed)
		proc_exit(0);
	if (engine->dispatcher_pid == 0)
		proc_exit(0);
}

void
ujobs_relay_main(Datum arg)
{
	start_process(DatumGetObjectId(arg));
	MemoryContextSwitchTo(loop_memory);
	for (;;)
	{
		TimestampTz next = run_once();

		MemoryContextSwitchTo(loop_memory);
		MemoryContextReset(loop_memory);
		leave_if_idle();
		ujobs_session_stats_activity(NULL);
		ujobs_session_stats_report(false);
		ujobs_worker_wait_pipe(ujobs_sink_connection_wake_pipe(), ujobs_worker_ms_until(next));
	}
}
