/*
 * delivery.c: what became of a batch, into rows.
 *
 * A message that a system refuses for now is tried again after growing
 * pauses, and parked when it has used up its tries; one that it refuses for
 * good is parked at once.  A connection that failed counts no attempt.
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/pg_prng.h"
#include "utils/timestamp.h"

#include "store/outbox_store.h"
#include "worker/relay/delivery.h"

#define FIRST_DELAY_MS 1000
#define LONGEST_DELAY_MS 300000

/* 1 s, doubled each time up to 5 minutes, a fifth more or less; or what the system asked for. */
static TimestampTz
next_try(int attempts, int retry_after_ms, TimestampTz now)
{
	int64		delay = Min(FIRST_DELAY_MS << Min(attempts - 1, 10), LONGEST_DELAY_MS);

	delay = delay * pg_prng_uint64_range(&pg_global_prng_state, 80, 120) / 100;
	return TimestampTzPlusMilliseconds(now, Max(delay, retry_after_ms));
}

static UjobsOutboxFailure
make_failure(const UjobsRelaySink *sink, const UjobsSinkBatch *batch, int i, TimestampTz now)
{
	const UjobsSinkMessage *message = &batch->messages[i];
	int			attempts = batch->attempts[i] + 1;
	bool		for_good = message->fate == UJOBS_SINK_REFUSED || attempts >= sink->attempts;

	return (UjobsOutboxFailure) {
		.id = batch->rows[i],
		.attempts = attempts,
		.due_at = next_try(attempts, message->retry_after_ms, now),
		.parked = for_good,
		.error = message->error.text
	};
}

static void
log_parked(const UjobsRelaySink *sink, const UjobsOutboxFailure *failures, int n)
{
	const UjobsOutboxFailure *first = NULL;
	int			parked = 0;

	for (int i = 0; i < n; i++)
	{
		if (failures[i].parked && parked++ == 0)
			first = &failures[i];
	}
	if (parked == 0)
		return;
	ereport(LOG,
			(errmsg_plural("ujobs parked message " INT64_FORMAT " for sink \"%s\": %s",
						   "ujobs parked message " INT64_FORMAT " and others for sink \"%s\": %s",
						   parked, first->id, sink->name, first->error),
			 errhint("See ujobs.outbox; ujobs.retry_outbox and ujobs.skip_outbox end it.")));
}

static TimestampTz
record_failures(const UjobsRelaySink *sink, const UjobsOutboxFailure *failures, int n)
{
	TimestampTz soonest = DT_NOEND;

	for (int i = 0; i < n; i++)
	{
		if (!failures[i].parked)
			soonest = Min(soonest, failures[i].due_at);
	}
	ujobs_outbox_failed(failures, n);
	log_parked(sink, failures, n);
	return soonest;
}

TimestampTz
ujobs_delivery_record(const UjobsRelaySink *sink, const UjobsSinkBatch *batch, TimestampTz now)
{
	int64	   *delivered = palloc(batch->n * sizeof(int64));
	UjobsOutboxFailure *failures = palloc(batch->n * sizeof(UjobsOutboxFailure));
	int			n_delivered = 0;
	int			n_failures = 0;

	Assert(IsTransactionState());
	for (int i = 0; i < batch->n; i++)
	{
		switch (batch->messages[i].fate)
		{
			case UJOBS_SINK_DELIVERED:
				delivered[n_delivered++] = batch->rows[i];
				break;
			case UJOBS_SINK_FAILED:
			case UJOBS_SINK_REFUSED:
				failures[n_failures++] = make_failure(sink, batch, i, now);
				break;
			case UJOBS_SINK_UNTRIED:
			case UJOBS_SINK_BROKEN:
				break;
		}
	}
	if (n_delivered > 0)
		(void) ujobs_outbox_delivered(delivered, n_delivered, now);
	return n_failures > 0 ? record_failures(sink, failures, n_failures) : DT_NOEND;
}
