/*
 * admitted.c: step 4 of the walk: from tickets to jobs that can run here.
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "run/settle.h"
#include "store/definition_store.h"
#include "worker/admitted.h"

/* None of them can run; each has its own attempts to keep. */
static void
settle_all(List *jobs, UjobsExecutionPlan *plan)
{
	UjobsIdentity identity;
	UjobsVerdict verdict;
	ListCell   *lc;

	foreach(lc, jobs)
	{
		if (ujobs_execution_plan_make(lfirst(lc), plan, &verdict) != UJOBS_EXECUTION_SETTLE)
			continue;
		ujobs_identity_enter(&identity);
		(void) ujobs_job_settle(lfirst(lc), &verdict, GetCurrentTimestamp());
		ujobs_identity_leave(&identity);
	}
}

/* Offered again, for an executor of the new owner. */
static void
offer_all(List *jobs)
{
	ListCell   *lc;

	foreach(lc, jobs)
		ujobs_job_offer(lfirst(lc), GetCurrentTimestamp());
}

bool
ujobs_admitted_plan(List *jobs, UjobsExecutionPlan *plan)
{
	UjobsVerdict verdict;

	switch (ujobs_execution_plan_make(linitial(jobs), plan, &verdict))
	{
		case UJOBS_EXECUTION_RUN:
			return true;
		case UJOBS_EXECUTION_SETTLE:
			settle_all(jobs, plan);
			break;
		case UJOBS_EXECUTION_FOREIGN:
			offer_all(jobs);
			break;
	}
	return false;
}

/* Suspended before its row is due: only if its ticket says that its wait is over. */
static bool
is_early(const UjobsJob *job, const UjobsTicket *tickets, int n, TimestampTz now)
{
	if (job->state != UJOBS_STATE_SUSPENDED || job->due_at <= now)
		return false;
	for (int i = 0; i < n; i++)
	{
		if (tickets[i].id == job->id)
			return (tickets[i].flags & UJOBS_TICKET_WOKEN) == 0;
	}
	return true;
}

List *
ujobs_admitted_fetch(const UjobsTicket *tickets, int n)
{
	int64		ids[UJOBS_RING_SIZE];
	TimestampTz now = GetCurrentTimestamp();
	List	   *jobs;
	ListCell   *lc;

	for (int i = 0; i < n; i++)
		ids[i] = tickets[i].id;
	jobs = ujobs_job_fetch(ids, n, now);
	foreach(lc, jobs)
	{
		UjobsJob   *job = lfirst(lc);

		if (is_early(job, tickets, n, now))
			jobs = foreach_delete_current(jobs, lc);
		else if (!job->resumed)
			job->attempt++;
	}
	return jobs;
}
