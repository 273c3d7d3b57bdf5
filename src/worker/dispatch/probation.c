/*
 * probation.c: step 3 of the walk, after a crash of the server: which job of
 * the crash guard runs alone now.
 *
 * One whose queue is paused or at a limit waits and holds up no other job.
 */
#include "postgres.h"

#include "worker/dispatch/choice.h"
#include "worker/dispatch/crash_guard.h"
#include "worker/dispatch/executors.h"
#include "worker/dispatch/pool.h"
#include "worker/dispatch/probation.h"
#include "worker/dispatch/queues.h"

static bool
is_busy(const UjobsExecutor *executor)
{
	return executor->used && ujobs_executor_load(executor) > 0;
}

static bool
is_on_probation(const UjobsExecutor *executor)
{
	return is_busy(executor) &&
		   (ujobs_executor_first(executor)->flags & UJOBS_TICKET_PROBATION) != 0;
}

/* Those whose time alone is over are trusted.  Is that of any other not over? */
static bool
trust_survivors(TimestampTz now)
{
	bool		any = false;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		const UjobsExecutor *executor = ujobs_executor_at(i);

		if (!is_on_probation(executor))
			continue;
		if (now - executor->synced >= UJOBS_PROBATION_US)
			ujobs_crash_guard_trust(ujobs_executor_first(executor)->id);
		else
			any = true;
	}
	return any;
}

/* Does any executor run a job that is not on probation? */
static bool
others_run(void)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		if (is_busy(ujobs_executor_at(i)) && !is_on_probation(ujobs_executor_at(i)))
			return true;
	}
	return false;
}

/* The tenant queue of the job if it may start now, else NULL. */
static UjobsTenantQueue *
startable(UjobsLane *lane, const UjobsTicket *ticket, TimestampTz now)
{
	UjobsTenantQueue *tq = lane->paused ? NULL : ujobs_queue_of(lane, ticket->tenant_hash);

	return tq != NULL && ujobs_choice_allows(tq, NULL, now) ? tq : NULL;
}

/* To an idle executor of its role, else one is started. */
static void
start(UjobsTicket *ticket, UjobsTenantQueue *tq, TimestampTz now)
{
	Oid			role = tq->lane->role;

	if (ujobs_outstanding_deaths(ticket->id) >= UJOBS_MAX_DEATHS)
		ticket->flags |= UJOBS_TICKET_GIVE_UP;
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		UjobsExecutor *executor = ujobs_executor_at(i);

		if (!executor->used || executor->leaving || executor->role != role ||
			executor->state == UJOBS_SLOT_STARTING || ujobs_executor_load(executor) > 0)
			continue;
		if (!ujobs_executor_push(i, ticket, tq, (UjobsHeapItem) {ticket->id, now, 0}))
			continue;
		executor->synced = now;
		ujobs_crash_guard_begin(ticket->id);
		ujobs_slot_wake(i);
		return;
	}
	ujobs_pool_grow(role, ujobs_executor_count_role(role) == 0, now);
}

bool
ujobs_probation_serve(TimestampTz now)
{
	UjobsTicket *ticket;

	if (!ujobs_crash_guard_is_active())
		return false;
	if (trust_survivors(now))
		return true;
	for (int n = 0; (ticket = ujobs_crash_guard_due(n, now)) != NULL; n++)
	{
		UjobsLane  *lane = ujobs_lane_find_hash(ticket->definition_id, ticket->queue_hash);
		UjobsTenantQueue *tq;

		if (lane == NULL)
		{
			ujobs_crash_guard_forget(ticket->id);	/* its row is gone */
			return true;
		}
		tq = startable(lane, ticket, now);
		if (tq == NULL)
			continue;
		if (!others_run())
			start(ticket, tq, now);
		return true;
	}
	return false;
}
