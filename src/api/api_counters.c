/*
 * api_counters.c: the counters of core/queue_counters.h as rows, one a sample.
 *
 * Names, labels and units are Prometheus's already: buckets are cumulative,
 * durations are seconds.  Counters grow while they are read; a histogram's
 * count is the sum of the buckets as read, so those two always agree.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "core/shmem.h"
#include "core/queue_counters.h"

PG_FUNCTION_INFO_V1(ujobs_sql_counters);

static const char *const outcomes[UJOBS_COUNTER_OUTCOMES] = {
	[UJOBS_COUNTER_DONE] = "done",
	[UJOBS_COUNTER_RETRY] = "retry",
	[UJOBS_COUNTER_DEAD] = "dead",
	[UJOBS_COUNTER_CANCELLED] = "cancelled"
};

/* One row; label may be NULL: this sample has none besides its queue. */
static void
put_sample(ReturnSetInfo *rsinfo, const char *queue, const char *name, const char *label,
		   double value)
{
	Datum		values[4];
	bool		nulls[4] = {false};

	values[0] = CStringGetTextDatum(name);
	values[1] = CStringGetTextDatum(queue);
	nulls[2] = label == NULL;
	values[2] = nulls[2] ? (Datum) 0 : CStringGetTextDatum(label);
	values[3] = Float8GetDatum(value);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

static const char *
shown_name(UjobsQueueCounter *counter)
{
	return counter->queue[0] == '\0' ? UJOBS_COUNTER_OTHERS : counter->queue;
}

/* Not atomic over the four, which grow meanwhile. */
static bool
is_empty(UjobsQueueCounter *counter)
{
	for (int i = 0; i < UJOBS_COUNTER_OUTCOMES; i++)
	{
		if (pg_atomic_read_u64(&counter->outcome[i]) > 0)
			return false;
	}
	return true;
}

static void
put_outcomes(ReturnSetInfo *rsinfo, UjobsQueueCounter *counter)
{
	for (int i = 0; i < UJOBS_COUNTER_OUTCOMES; i++)
		put_sample(rsinfo, shown_name(counter), "ujobs_jobs_total", outcomes[i],
				   (double) pg_atomic_read_u64(&counter->outcome[i]));
}

static void
put_histogram(ReturnSetInfo *rsinfo, UjobsQueueCounter *counter, const char *name,
			  UjobsQueueCounterHistogram *h)
{
	const int64 *bounds = ujobs_queue_counter_bounds();
	const char *queue = shown_name(counter);
	uint64		count = 0;

	for (int i = 0; i < UJOBS_COUNTER_BUCKETS; i++)
	{
		char		le[32] = "+Inf";

		if (i < UJOBS_COUNTER_BUCKETS - 1)
			snprintf(le, sizeof(le), "%.12g", bounds[i] / 1e6);
		count += pg_atomic_read_u64(&h->bucket[i]);
		put_sample(rsinfo, queue, psprintf("%s_bucket", name), le, (double) count);
	}
	put_sample(rsinfo, queue, psprintf("%s_sum", name), NULL, pg_atomic_read_u64(&h->sum) / 1e6);
	put_sample(rsinfo, queue, psprintf("%s_count", name), NULL, (double) count);
}

/* counters(): (name, queue, label, value), the samples of a family together. */
Datum
ujobs_sql_counters(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	UjobsQueueCounter *counter[UJOBS_COUNTER_QUEUES + 1];
	int			n = ujobs_queue_counter_entries(counter);

	InitMaterializedSRF(fcinfo, 0);
	if (n > 0 && is_empty(counter[n - 1]))
		n--;					/* every queue has its own entry */
	for (int i = 0; i < n; i++)
		put_outcomes(rsinfo, counter[i]);
	for (int i = 0; i < n; i++)
		put_histogram(rsinfo, counter[i], "ujobs_job_wait_seconds", &counter[i]->wait);
	for (int i = 0; i < n; i++)
		put_histogram(rsinfo, counter[i], "ujobs_job_run_seconds", &counter[i]->run);
	return (Datum) 0;
}
