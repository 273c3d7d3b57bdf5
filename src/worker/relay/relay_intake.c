/*
 * relay_intake.c: taking in a queue.
 *
 * The courier takes a batch, of which each message is claimed for this store
 * at the broker or not (docs/decisions/011).  One transaction makes jobs of
 * those that are, and records their ids; once it has committed, durably, the
 * broker is told that they are done.  If it fails, or the relay dies before,
 * the broker offers them again, to this store alone.
 *
 * A store takes no more than it can use soon, so that others get the rest:
 * nothing while the queue is paused or has enough jobs that are ready.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/guc.h"
#include "core/observe.h"
#include "run/intake.h"
#include "store/relay_store.h"
#include "worker/relay/relay_intake.h"
#include "worker/worker.h"

#define MOST_READY 10000
#define TAKE_MOST 500
#define LOOK_AGAIN_MS 250		/* at the room, while messages come or there is none */
#define FAILED_MS 1000
#define PARKED_AT_ONCE 100

struct UjobsInlet
{
	UjobsRelayLink link;
	UjobsRelayNews storing;
	UjobsRelayNews looking;
	MemoryContext memory;		/* of one turn */
	int64		room;
	bool		taken;			/* since the room was looked at */
	TimestampTz looked_at;
	TimestampTz look_at;

	UjobsIntake *intakes;		/* of this turn */
	int			n;
};

UjobsInlet *
ujobs_inlet_open(const UjobsRelaySink *sink, const char *queue)
{
	UjobsInlet *inlet = MemoryContextAllocZero(sink->memory, sizeof(UjobsInlet));

	inlet->link.sink = sink;
	inlet->link.queue = MemoryContextStrdup(sink->memory, queue);
	inlet->memory = AllocSetContextCreate(sink->memory, "ujobs inlet", ALLOCSET_DEFAULT_SIZES);
	return inlet;
}

const char *
ujobs_inlet_queue(const UjobsInlet *inlet)
{
	return inlet->link.queue;
}

void
ujobs_inlet_hint(UjobsInlet *inlet)
{
	inlet->look_at = 0;
}

/* ---- storing ---- */

static void
be_durable(void)
{
	(void) set_config_option("synchronous_commit", "on", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
}

static void
store_all(void *arg)
{
	UjobsInlet *inlet = arg;

	MemoryContextSwitchTo(inlet->memory);
	be_durable();
	ujobs_intake_take(inlet->intakes, inlet->n, GetCurrentTimestamp());
}

/* What is no text of this database's stands in the inbox as digits. */
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
list_ours(UjobsInlet *inlet, const UjobsSinkDelivery *deliveries, int n)
{
	inlet->intakes = palloc0(n * sizeof(UjobsIntake));
	inlet->n = 0;
	for (int i = 0; i < n; i++)
	{
		UjobsIntake *intake = &inlet->intakes[inlet->n];

		if (!deliveries[i].ours)
			continue;
		intake->message_id = clean_id(deliveries[i].id);
		intake->queue = inlet->link.queue;
		intake->sink_id = inlet->link.sink->id;
		intake->payload = deliveries[i].payload;
		intake->payload_size = deliveries[i].payload_size;
		inlet->n++;
	}
}

static void
tell_verdicts(const UjobsInlet *inlet, UjobsSinkDelivery *deliveries, int n)
{
	int			at = 0;

	for (int i = 0; i < n; i++)
	{
		if (deliveries[i].ours && inlet->intakes[at++].fate != UJOBS_INTAKE_LATER)
			deliveries[i].verdict = UJOBS_SINK_DONE;
	}
}

static void
store_taken(UjobsInlet *inlet, UjobsSinkDelivery *deliveries, int n)
{
	ErrorData  *error;

	ujobs_observe_activity("take in messages");
	MemoryContextSwitchTo(inlet->memory);
	list_ours(inlet, deliveries, n);
	error = ujobs_worker_try(store_all, inlet);
	ujobs_relay_tell(&inlet->storing, psprintf("take in messages of queue \"%s\"", inlet->link.queue), error);
	if (error == NULL)
		tell_verdicts(inlet, deliveries, n);
	else
	{
		inlet->look_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), FAILED_MS);
		inlet->room = 0;
		ujobs_courier_allow(inlet->link.courier, 0);
	}
	inlet->room -= inlet->n;
	inlet->taken = true;
	ujobs_courier_settle(inlet->link.courier);
	ujobs_relay_link_works(&inlet->link);
	MemoryContextReset(inlet->memory);
}

/* ---- how much may be taken ---- */

static void
measure(void *arg)
{
	UjobsInlet *inlet = arg;

	inlet->room = ujobs_relay_room(inlet->link.queue, MOST_READY, GetCurrentTimestamp());
}

static void
look_at_room(UjobsInlet *inlet, TimestampTz now)
{
	ErrorData  *error;

	MemoryContextSwitchTo(inlet->memory);
	inlet->room = 0;
	inlet->taken = false;
	inlet->looked_at = now;
	error = ujobs_worker_try(measure, inlet);
	inlet->look_at = TimestampTzPlusMilliseconds(now, inlet->room > 0 ? ujobs_guc_poll_interval : LOOK_AGAIN_MS);
	ujobs_relay_tell(&inlet->looking, psprintf("look at queue \"%s\"", inlet->link.queue), error);
	MemoryContextReset(inlet->memory);
}

static void
allow(UjobsInlet *inlet, TimestampTz now)
{
	if (now >= inlet->look_at)
		look_at_room(inlet, now);
	ujobs_courier_allow(inlet->link.courier, (int) Min(Max(inlet->room, 0), TAKE_MOST));
	if (inlet->taken || inlet->room <= 0)
		inlet->look_at = Min(inlet->look_at, TimestampTzPlusMilliseconds(inlet->looked_at, LOOK_AGAIN_MS));
}

/* ---- the round ---- */

TimestampTz
ujobs_inlet_round(UjobsInlet *inlet, TimestampTz now)
{
	UjobsSinkDelivery *deliveries;
	int			n = inlet->link.courier == NULL ? 0 : ujobs_courier_taken(inlet->link.courier, &deliveries);

	if (n > 0)
		store_taken(inlet, deliveries, n);
	if (!ujobs_relay_link_keep(&inlet->link, now))
		return ujobs_relay_link_next(&inlet->link);
	allow(inlet, now);
	return inlet->look_at;
}

void
ujobs_inlet_close(UjobsInlet *inlet)
{
	ujobs_relay_link_close(&inlet->link);
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
ujobs_inlet_retry_parked(void)
{
	static UjobsRelayNews news;
	Retry		retry = {"", CurrentMemoryContext};

	while (retry.after != NULL)
	{
		ErrorData  *error = ujobs_worker_try(retry_some, &retry);

		ujobs_relay_tell(&news, "try parked messages again", error);
		if (error != NULL)
			return;
	}
}
