/*
 * relay.c: carries messages between this store and other systems.
 *
 * One process per database, there only while a sink is defined.  It does all
 * the SQL: relay_outbox.c sends what was committed, relay_intake.c stores what
 * was taken.  What talks to the network are its connections, a thread each
 * (core/connection.h); whatever they bring wakes it by one pipe.
 *
 * It can be killed at any line.  What was sent and not recorded is sent again,
 * with the same id; what was taken and not stored is offered again.
 */
#include "postgres.h"

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
#define ROOM_MS 100				/* until an executor has left, perhaps */

/* A sink with what goes there and what comes from there. */
typedef struct Station
{
	UjobsRelaySink *sink;
	UjobsPublisher *publisher;
	List	   *consumers_of_queues;			/* UjobsQueueConsumer */
	bool		going;			/* dropped, or to be reached in another way */
} Station;

static UjobsEngine *engine;
static List *stations = NIL;	/* Station */
static bool changed = true;		/* what is in the store may be something else */
static TimestampTz read_at = 0; /* not before: it failed */
static MemoryContext round_memory;

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
 * Is there a process for it, with one left for executors?  What the
 * dispatcher's next look has to be for stands in *next.
 */
static bool
take_room(TimestampTz now, TimestampTz *next)
{
	static bool said = false;
	UjobsCapacity	room = ujobs_capacity_ask(1);

	if (room == UJOBS_CAPACITY_NONE && !said)
		ereport(LOG,
				(errmsg("ujobs cannot start a relay: max_worker_processes is exhausted"),
				 errdetail("Messages stay in the outbox; one process must be left for executors."),
				 errhint("Raise max_worker_processes.")));
	said = room == UJOBS_CAPACITY_NONE;
	*next = TimestampTzPlusMilliseconds(now, room == UJOBS_CAPACITY_COMING ? ROOM_MS : ujobs_guc_poll_interval);
	return room == UJOBS_CAPACITY_THERE;
}

/* A relay that ends rings the dispatcher, and so does a commit that needs one. */
TimestampTz
ujobs_relay_ensure(UjobsEngine *of)
{
	static TimestampTz look_at = 0;
	static TimestampTz tried_at = 0;
	static bool needed = false;
	BackgroundWorker worker;
	TimestampTz now;

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
	if (!needed || !take_room(now, &look_at))
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
	(void) ujobs_engine_leave_seat(&engine->relay_pid);
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
	ujobs_worker_take_seat(&engine->relay_pid, &engine->relay_latch);
	before_shmem_exit(at_exit, (Datum) 0);
	ujobs_worker_connect(database, "ujobs relay", "500ms");
	SetConfigOption("synchronous_commit", "off", PGC_SUSET, PGC_S_OVERRIDE);
	(void) ujobs_engine_area();
	ujobs_in_flight_clear();
	round_memory = AllocSetContextCreate(TopMemoryContext, "ujobs round", ALLOCSET_DEFAULT_SIZES);
}

/* ---- what is defined ---- */

typedef struct Wanted
{
	UjobsSink  *sinks;
	int			n_sinks;
	UjobsConsumer *consumers;
	int			n_consumers;
	char	   *home;
	UjobsRelaySink **made;		/* of sinks that have no endpoint */
} Wanted;

static Station *
find_station(int32 sink_id)
{
	ListCell   *lc;

	foreach(lc, stations)
	{
		Station    *endpoint = lfirst(lc);

		if (endpoint->sink->id == sink_id)
			return endpoint;
	}
	return NULL;
}

static void
read_wanted(void *arg)
{
	Wanted	   *wanted = arg;

	MemoryContextSwitchTo(round_memory);
	wanted->sinks = ujobs_sink_list(&wanted->n_sinks);
	wanted->consumers = ujobs_sink_consumers(&wanted->n_consumers);
	wanted->home = ujobs_store_identity_uuid();
	wanted->made = palloc0(Max(wanted->n_sinks, 1) * sizeof(UjobsRelaySink *));
	for (int i = 0; i < wanted->n_sinks; i++)
	{
		if (find_station(wanted->sinks[i].id) == NULL)
			wanted->made[i] = ujobs_sink_connection_make_sink(&wanted->sinks[i], wanted->home);
	}
}

/* Was it made with another setting than the one that holds now? */
static bool
is_outdated(const Station *endpoint)
{
	return endpoint->sink->options->allow_private != ujobs_guc_http_allow_private;
}

static bool
is_wanted(const Station *endpoint, const Wanted *wanted)
{
	for (int i = 0; i < wanted->n_sinks; i++)
	{
		if (wanted->sinks[i].id == endpoint->sink->id)
			return wanted->sinks[i].revision == endpoint->sink->revision && !is_outdated(endpoint);
	}
	return false;
}

static bool
is_consumed(const Station *endpoint, const char *queue, const Wanted *wanted)
{
	for (int i = 0; i < wanted->n_consumers; i++)
	{
		const UjobsConsumer *consumer = &wanted->consumers[i];

		if (consumer->enabled && consumer->sink_id == endpoint->sink->id && strcmp(consumer->queue, queue) == 0)
			return true;
	}
	return false;
}

static void
close_inlets(Station *endpoint, const Wanted *wanted)
{
	ListCell   *lc;

	foreach(lc, endpoint->consumers_of_queues)
	{
		UjobsQueueConsumer *consumer = lfirst(lc);

		if (!endpoint->going && is_consumed(endpoint, ujobs_queue_consumer_queue(consumer), wanted))
			continue;
		ujobs_queue_consumer_close(consumer);
		endpoint->consumers_of_queues = foreach_delete_current(endpoint->consumers_of_queues, lc);
	}
}

static bool
has_inlet(const Station *endpoint, const char *queue)
{
	ListCell   *lc;

	foreach(lc, endpoint->consumers_of_queues)
	{
		if (strcmp(ujobs_queue_consumer_queue(lfirst(lc)), queue) == 0)
			return true;
	}
	return false;
}

static void
open_inlets(const Wanted *wanted)
{
	for (int i = 0; i < wanted->n_consumers; i++)
	{
		const UjobsConsumer *consumer = &wanted->consumers[i];
		Station    *endpoint = consumer->enabled ? find_station(consumer->sink_id) : NULL;

		if (endpoint == NULL || endpoint->going || has_inlet(endpoint, consumer->queue))
			continue;
		endpoint->consumers_of_queues = lappend(endpoint->consumers_of_queues, ujobs_queue_consumer_open(endpoint->sink, consumer->queue));
	}
}

static void
open_station(UjobsRelaySink *sink)
{
	Station    *endpoint = palloc0(sizeof(Station));

	endpoint->sink = sink;
	endpoint->publisher = ujobs_publisher_open(sink);
	stations = lappend(stations, endpoint);
}

static void
follow_wanted(const Wanted *wanted)
{
	ListCell   *lc;

	MemoryContextSwitchTo(TopMemoryContext);
	foreach(lc, stations)
	{
		Station    *endpoint = lfirst(lc);

		endpoint->going |= !is_wanted(endpoint, wanted);
		close_inlets(endpoint, wanted);
	}
	for (int i = 0; i < wanted->n_sinks; i++)
	{
		if (wanted->made[i] != NULL)
			open_station(wanted->made[i]);
	}
	open_inlets(wanted);
	MemoryContextSwitchTo(round_memory);
}

static void
hint_inlets(void)
{
	ListCell   *lc;
	ListCell   *in;

	foreach(lc, stations)
	{
		foreach(in, ((Station *) lfirst(lc))->consumers_of_queues)
			ujobs_queue_consumer_hint(lfirst(in));
	}
}

static bool
have_outdated(void)
{
	ListCell   *lc;

	foreach(lc, stations)
	{
		const Station *endpoint = lfirst(lc);

		if (!endpoint->going && is_outdated(endpoint))
			return true;
	}
	return false;
}

/* Definitions have changed, or sinks, or consumers, or queues: one flag tells of all. */
static void
follow_changes(TimestampTz now)
{
	static UjobsSinkReport news;
	Wanted		wanted = {0};
	ErrorData  *error;

	changed |= ujobs_wakeup_take_relay(engine);
	changed |= have_outdated();
	if (!changed || now < read_at)
		return;
	if (!ujobs_worker_extension_is_here())
		proc_exit(0);
	error = ujobs_worker_try(read_wanted, &wanted);
	ujobs_sink_connection_report(&news, "read its sinks", error);
	if (error != NULL)
	{
		read_at = TimestampTzPlusMilliseconds(now, READ_AGAIN_MS);
		return;
	}
	changed = false;
	follow_wanted(&wanted);
	hint_inlets();
	ujobs_queue_consumer_retry_parked();
}

/* A sink that is to be reached in another way comes back at the next look. */
static void
close_gone(void)
{
	ListCell   *lc;

	foreach(lc, stations)
	{
		Station    *endpoint = lfirst(lc);

		if (!endpoint->going || !ujobs_publisher_retire(endpoint->publisher))
			continue;
		ujobs_publisher_close(endpoint->publisher);
		MemoryContextDelete(endpoint->sink->memory);
		stations = foreach_delete_current(stations, lc);
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
	foreach(lc, stations)
		ujobs_publisher_hint(((Station *) lfirst(lc))->publisher, low);
}

static TimestampTz
station_round(Station *endpoint, TimestampTz now)
{
	TimestampTz next = ujobs_publisher_round(endpoint->publisher, now);
	ListCell   *lc;

	foreach(lc, endpoint->consumers_of_queues)
	{
		TimestampTz at = ujobs_queue_consumer_round(lfirst(lc), now);

		next = Min(next, at);
	}
	return next;
}

static TimestampTz
one_round(void)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz next = DT_NOEND;
	ListCell   *lc;

	take_hints();
	follow_changes(now);
	foreach(lc, stations)
	{
		TimestampTz at = station_round(lfirst(lc), now);

		next = Min(next, at);
	}
	close_gone();
	return changed ? Max(now, read_at) : next;
}

/* A sink that was just defined may be there: the dispatcher is told at the end, and looks. */
static void
leave_if_idle(void)
{
	if (stations == NIL && !changed)
		proc_exit(0);
	if (engine->dispatcher_pid == 0)
		proc_exit(0);
}

void
ujobs_relay_main(Datum arg)
{
	start_process(DatumGetObjectId(arg));
	MemoryContextSwitchTo(round_memory);
	for (;;)
	{
		TimestampTz next = one_round();

		MemoryContextSwitchTo(round_memory);
		MemoryContextReset(round_memory);
		leave_if_idle();
		ujobs_session_stats_activity(NULL);
		ujobs_session_stats_report(false);
		ujobs_worker_wait_pipe(ujobs_sink_connection_wake_pipe(), ujobs_worker_ms_until(next));
	}
}
