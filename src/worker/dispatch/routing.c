/*
 * routing.c: step 3 of the walk: where news of a job go.
 */
#include "postgres.h"

#include "core/wakeup.h"
#include "worker/dispatch/crash_guard.h"
#include "worker/dispatch/executors.h"
#include "worker/dispatch/outside.h"
#include "worker/dispatch/queues.h"
#include "worker/dispatch/routing.h"
#include "worker/dispatch/waits.h"

bool
ujobs_routing_hint(const UjobsHint *hint, TimestampTz now)
{
	if (hint->kind == UJOBS_HINT_GONE)
	{
		ujobs_executor_cancel(hint->id);
		ujobs_outside_hint(hint);
		return true;
	}
	if (hint->kind == UJOBS_HINT_JOB && ujobs_outstanding_has(hint->id))
		ujobs_outstanding_hint(hint);
	else if (hint->kind == UJOBS_HINT_JOB && ujobs_outside_has(hint->id))
		ujobs_outside_hint(hint);
	else
		return ujobs_queue_hint(hint, now);
	return true;
}

/* Its wait is over while an executor or a program has it: that is looked at when it comes back. */
static bool
note_wait_is_over(int64 id)
{
	if (ujobs_outstanding_has(id))
		ujobs_outstanding_wait_is_over(id);
	else if (ujobs_outside_has(id))
		ujobs_outside_wait_is_over(id);
	else
		return false;
	return true;
}

bool
ujobs_routing_is_taken(const UjobsHeapItem *item)
{
	if (item->woken ? note_wait_is_over(item->id) :
					  ujobs_outstanding_has(item->id) || ujobs_outside_has(item->id))
		return true;
	return ujobs_crash_guard_has(item->id);
}

static void
wake(const UjobsMatched *job, TimestampTz now)
{
	UjobsTenantQueue *tq;

	if (note_wait_is_over(job->id))
		return;
	tq = ujobs_queue_find(job->definition_id, job->queue, job->tenant_hash, now);
	if (tq != NULL)
		ujobs_tenant_queue_add(tq, (UjobsHeapItem) {job->id, now, job->priority, true}, now);
}

void
ujobs_routing_wake(UjobsMatches matches, TimestampTz now)
{
	for (int64 i = 0; i < matches.n; i++)
		wake(&matches.job[i], now);
	pfree(matches.job);
}

/* It was not run: to where it came from. */
static void
put_back(const UjobsReturned *job, TimestampTz now)
{
	UjobsHeapItem item = job->item;

	item.due_at = Max(item.due_at, job->not_before);
	if (job->tq == NULL)
		ujobs_wakeup_rescan_now();	/* only its row tells its lane */
	else if (job->crash_probation)
		ujobs_crash_guard_add(&job->ticket, 0);
	else
		ujobs_tenant_queue_add(job->tq, item, now);
}

void
ujobs_routing_take_back(UjobsReturns *returns, TimestampTz now)
{
	for (int i = 0; i < returns->n; i++)
	{
		const UjobsReturned *job = &returns->job[i];

		if (job->unrun)
			put_back(job, now);
		else
			ujobs_crash_guard_end(job->id);
		if (job->hinted && !ujobs_queue_hint(&job->hint, now))
			ujobs_wakeup_rescan_now();
		if (job->wait_is_over)
			ujobs_wait_again(job->id);
	}
	returns->n = 0;
}
