/*
 * queue_consumer.c: taking in a queue.
 *
 * The thread takes a batch, of which each message is claimed for this store
 * at the broker or not (docs/decisions/011).  One transaction makes jobs of
 * those that are, and records their ids; once it has committed, durably, the
 * broker is told that they are done.  If it fails, or the relay dies before,
 * the broker offers them again, to this store alone.
 *
 * A store takes no more than it can use soon, so that others get the rest:
 * nothing while the queue is paused or has enough jobs that are ready.
 */
#include "postgres.h"

#include "access/xact.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/guc.h"
#include "core/session_stats.h"
#include "run/intake.h"
#include "store/relay_store.h"
#include "worker/relay/queue_consumer.h"
#include "worker/worker.h"

#define MOST_READY 10000
#define TAKE_MOST 500
#define LOOK_AGAIN_MS 250		/* at the capacity, while messages come or there is none */
#define FAILED_MS 1000
#define PARKED_AT_ONCE 100

struct UjobsQueueConsumer
{
	UjobsSinkConnection connection;
	UjobsSinkReport storing;
	UjobsSinkReport looking;
	MemoryContext memory;		/* of one run */
	int64		capacity;
	bool		taken;			/* since the capacity was read */
	TimestampTz looked_at;
	TimestampTz look_at;

	UjobsIntake *intakes;		/* of this run */
	int			n;
};

UjobsQueueConsumer *
ujobs_queue_consumer_open(const UjobsRelaySink *sink, const char *queue)
{
	UjobsQueueConsumer *consumer = MemoryContextAllocZero(sink->memory, sizeof(UjobsQueueConsumer));

	consumer->connection.sink = sink;
	consumer->connection.queue = MemoryContextStrdup(sink->memory, queue);
	consumer->memory = AllocSetContextCreate(sink->memory, "ujobs consumer",
											 ALLOCSET_DEFAULT_SIZES);
	return consumer;
}

const char *
ujobs_queue_consumer_queue(const UjobsQueueConsumer *consumer)
{
	return consumer->connection.queue;
}

void
ujobs_queue_consumer_hint(UjobsQueueConsumer *consumer)
{
	consumer->look_at = 0;
}

/* ---- storing ---- */

static void
be_durable(void)
{
	(void) set_config_option("synchronous_commit", "on", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_LOCAL, true, 0, false);
}

static void
store_all(void *arg)
{
	UjobsQueueConsumer *consumer = arg;

	MemoryContextSwitchTo(consumer->memory);
	be_durable();
	ujobs_intake_take(consumer->intakes, consumer->n, GetCurrentTimestamp());
}

/* An id that is no text in this database's encoding is written as digits. */
static const char *
clean_id(const char *id)
{
	size_t		size = strlen(id);
	char	   *digits;

	if (pg_verify_mbstr(GetDatabaseEncoding(), id, size, true))
		return id;
	digits = palloc(size * 2 + 1);
	digits[hex_encode(id, size, digits)] = '\0';
	return digits;
}

static void
list_ours(UjobsQueueConsumer *consumer, const UjobsSinkDelivery *deliveries, int n)
{
	consumer->intakes = palloc0(n * sizeof(UjobsIntake));
	consumer->n = 0;
	for (int i = 0; i < n; i++)
	{
		UjobsIntake *intake = &consumer->intakes[consumer->n];

		if (!deliveries[i].ours)
			continue;
		intake->message_id = clean_id(deliveries[i].id);
		intake->queue = consumer->connection.queue;
		intake->sink_id = consumer->connection.sink->id;
		intake->payload = deliveries[i].payload;
		intake->payload_size = deliveries[i].payload_size;
		consumer->n++;
	}
}

static void
set_verdicts(const UjobsQueueConsumer *consumer, UjobsSinkDelivery *deliveries, int n)
{
	int			at = 0;

	for (int i = 0; i < n; i++)
	{
		if (deliveries[i].ours && consumer->intakes[at++].fate != UJOBS_INTAKE_LATER)
			deliveries[i].verdict = UJOBS_SINK_DONE;
	}
}

static void
store_taken(UjobsQueueConsumer *consumer, UjobsSinkDelivery *deliveries, int n)
{
	ErrorData  *error;

	ujobs_session_stats_activity("take in messages");
	MemoryContextSwitchTo(consumer->memory);
	list_ours(consumer, deliveries, n);
	error = ujobs_worker_try(store_all, consumer);
	ujobs_sink_connection_report(
		&consumer->storing,
		psprintf("take in messages of queue \"%s\"", consumer->connection.queue), error);
	if (error == NULL)
		set_verdicts(consumer, deliveries, n);
	else
	{
		consumer->look_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), FAILED_MS);
		consumer->capacity = 0;
		ujobs_connection_allow(consumer->connection.thread, 0);
	}
	consumer->capacity -= consumer->n;
	consumer->taken = true;
	ujobs_connection_settle(consumer->connection.thread);
	ujobs_sink_connection_works(&consumer->connection);
	MemoryContextReset(consumer->memory);
}

/* ---- how much may be taken ---- */

static void
read_capacity(void *arg)
{
	UjobsQueueConsumer *consumer = arg;

	consumer->capacity = ujobs_relay_space(consumer->connection.queue, MOST_READY,
										   GetCurrentTimestamp());
}

static void
measure_capacity(UjobsQueueConsumer *consumer, TimestampTz now)
{
	ErrorData  *error;

	MemoryContextSwitchTo(consumer->memory);
	consumer->capacity = 0;
	consumer->taken = false;
	consumer->looked_at = now;
	error = ujobs_worker_try(read_capacity, consumer);
	consumer->look_at = TimestampTzPlusMilliseconds(
		now, consumer->capacity > 0 ? ujobs_guc_poll_interval : LOOK_AGAIN_MS);
	ujobs_sink_connection_report(
		&consumer->looking, psprintf("look at queue \"%s\"", consumer->connection.queue), error);
	MemoryContextReset(consumer->memory);
}

static void
allow(UjobsQueueConsumer *consumer, TimestampTz now)
{
	if (now >= consumer->look_at)
		measure_capacity(consumer, now);
	ujobs_connection_allow(consumer->connection.thread,
						   (int) Min(Max(consumer->capacity, 0), TAKE_MOST));
	if (consumer->taken || consumer->capacity <= 0)
		consumer->look_at = Min(consumer->look_at,
								TimestampTzPlusMilliseconds(consumer->looked_at, LOOK_AGAIN_MS));
}

/* ---- one run ---- */

TimestampTz
ujobs_queue_consumer_run(UjobsQueueConsumer *consumer, TimestampTz now)
{
	UjobsSinkDelivery *deliveries;
	int			n = consumer->connection.thread == NULL ? 0 : ujobs_connection_taken(consumer->connection.thread, &deliveries);

	Assert(!IsTransactionState());
	if (n > 0)
		store_taken(consumer, deliveries, n);
	if (!ujobs_sink_connection_keep(&consumer->connection, now))
		return ujobs_sink_connection_next(&consumer->connection);
	allow(consumer, now);
	return consumer->look_at;
}

void
ujobs_queue_consumer_close(UjobsQueueConsumer *consumer)
{
	ujobs_sink_connection_close(&consumer->connection);
	MemoryContextDelete(consumer->memory);
}

/* ---- parked messages ---- */

typedef struct Retry
{
	char	   *after;			/* NULL: that was the last one */
	MemoryContext memory;
} Retry;

static void
retry_some(void *arg)
{
	Retry	   *retry = arg;

	be_durable();
	MemoryContextSwitchTo(retry->memory);
	retry->after = ujobs_intake_retry_parked(retry->after, PARKED_AT_ONCE, GetCurrentTimestamp());
}

void
ujobs_queue_consumer_retry_parked(void)
{
	static UjobsSinkReport report;
	Retry		retry = {"", CurrentMemoryContext};

	Assert(!IsTransactionState());
	while (retry.after != NULL)
	{
		ErrorData  *error = ujobs_worker_try(retry_some, &retry);

		ujobs_sink_connection_report(&report, "try parked messages again", error);
		if (error != NULL)
			return;
	}
}
