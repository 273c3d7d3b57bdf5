/*
 * assign.c: step 3 of the walk: which job goes to whom now.
 *
 * It asks the parts of this folder and tells them what follows; they know
 * nothing of each other.  choice.c says who is next, this file hands out.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "core/guc.h"
#include "core/hash.h"
#include "worker/dispatch/assign.h"
#include "worker/dispatch/choice.h"
#include "worker/dispatch/crash_guard.h"
#include "worker/dispatch/executors.h"
#include "worker/dispatch/outside.h"
#include "worker/dispatch/pool.h"
#include "worker/dispatch/probation.h"
#include "worker/dispatch/queues.h"
#include "worker/dispatch/routing.h"
#include "worker/dispatch/waits.h"
#include "worker/worker.h"

#define PROBATION_LOOK_US 20000
#define SHARE_LOOK 16			/* tickets that are looked at for one that another executor could run */
#define UNCERTAIN_US (INT64CONST(1) * USECS_PER_SEC)

static UjobsArea *area;
static UjobsReturns returns;
static bool notify = false;		/* executors are to wake this process after every job */
static TimestampTz look_at = DT_NOEND;

/* ---- start ---- */

void
ujobs_assign_init(UjobsArea *my_area)
{
	area = my_area;
	ujobs_queue_init(area);
	ujobs_executor_init(area);
	ujobs_outside_init(area);
	ujobs_wait_init(area);
}

void
ujobs_assign_adopt(void)
{
	if (ujobs_executor_adopt())
		ujobs_crash_guard_adopt();
}

void
ujobs_assign_examine_crash(void)
{
	UjobsCrashedJob crashed[UJOBS_MAX_CRASHED_JOBS];
	int			n = ujobs_crashmark_jobs(MyDatabaseId, crashed, UJOBS_MAX_CRASHED_JOBS);

	for (int i = 0; i < n; i++)
		ujobs_crash_guard_examine(&crashed[i], ujobs_outstanding_has(crashed[i].job_id));
}

/* ---- news ---- */

void
ujobs_assign_look_at_executors(TimestampTz now)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		Oid			role = ujobs_executor_at(i)->role;

		switch (ujobs_executor_look(i, &returns, now))
		{
			case UJOBS_EXECUTOR_UNCHANGED:
				continue;
			case UJOBS_EXECUTOR_ARRIVED:
				ujobs_pool_arrived(role);
				break;
			case UJOBS_EXECUTOR_FAILED:
				ujobs_pool_failed(role, now);
				break;
			case UJOBS_EXECUTOR_WORKED:
			case UJOBS_EXECUTOR_GONE:
			case UJOBS_EXECUTOR_DIED:
				break;
		}
		ujobs_routing_take_back(&returns, now);
	}
	ujobs_executor_retry_cancels();
	ujobs_executor_evict(now);
}

bool
ujobs_assign_hint(const UjobsHint *hint, TimestampTz now)
{
	return ujobs_routing_hint(hint, now);
}

void
ujobs_assign_look_at_claims(TimestampTz now)
{
	ujobs_outside_sync(&returns, now);
	ujobs_routing_take_back(&returns, now);
}

/* ---- rows ---- */

/* Jobs that were cancelled without a hint, as by COMMIT PREPARED: their attempts go on. */
static void
cancel_gone(void)
{
	int			n;
	int64	   *ids = ujobs_outstanding_all(&n);
	ListCell   *lc;

	if (n == 0)
		return;
	foreach(lc, ujobs_dispatch_gone(ids, n))
		ujobs_executor_cancel(*(int64 *) lfirst(lc));
}

void
ujobs_assign_rescan(TimestampTz now)
{
	List	   *unplaced;
	ListCell   *lc;

	ujobs_queue_rescan(now);
	unplaced = ujobs_outside_rescan(&returns);
	foreach(lc, unplaced)
	{
		const UjobsLeased *leased = lfirst(lc);

		ujobs_outside_place(leased, ujobs_queue_find(leased->definition_id, leased->queue,
													 ujobs_hash_tenant(leased->tenant), now));
	}
	ujobs_routing_take_back(&returns, now);
	cancel_gone();
}

void
ujobs_assign_look_at_all_waits(TimestampTz now)
{
	ujobs_routing_wake(ujobs_wait_look_at_all(now), now);
}

bool
ujobs_assign_wants_rows(TimestampTz now)
{
	ujobs_tenant_queue_fire_all(now);
	return ujobs_outside_is_pending() || ujobs_wait_is_pending() || ujobs_tenant_queue_wants_rows();
}

void
ujobs_assign_read_rows(TimestampTz now)
{
	UjobsMatches found;

	Assert(IsTransactionState());
	if (ujobs_outside_is_pending())
		ujobs_outside_look(&returns);
	ujobs_routing_take_back(&returns, now);
	while (ujobs_wait_look(now, &found))
		ujobs_routing_wake(found, now);
	ujobs_tenant_queue_refill_some(now);
}

/* ---- handing out ---- */

/* Busy executors and jobs of programs outside: what ujobs.max_running limits. */
static int
count_running(void)
{
	area->running = ujobs_executor_count_busy(InvalidOid) + ujobs_outside_count();	/* why() reads it */
	return area->running;
}

static bool
may_start_work(const UjobsExecutor *executor)
{
	if (ujobs_guc_max_running_per_owner > 0 && ujobs_executor_load(executor) == 0 &&
		ujobs_executor_count_busy(executor->role) >= ujobs_guc_max_running_per_owner)
		return false;
	if (ujobs_guc_max_running == 0)
		return true;
	return count_running() < ujobs_guc_max_running + (ujobs_executor_load(executor) > 0);
}

static UjobsTicket
ticket_for(const UjobsTenantQueue *tq, const UjobsHeapItem *item)
{
	UjobsTicket ticket = {
		.id = item->id,
		.definition_id = tq->lane->key.definition_id,
		.batch = tq->lane->batch,
		.tenant_hash = tq->tenant_hash,
		.queue_hash = tq->lane->queue_hash
	};

	if (item->woken)
		ticket.flags |= UJOBS_TICKET_WOKEN;
	if (tq->cap != NULL && ujobs_limit_has_rate(tq->cap))
		ticket.flags |= UJOBS_TICKET_RATED;
	if (ujobs_outstanding_deaths(item->id) >= UJOBS_MAX_DEATHS)
		ticket.flags |= UJOBS_TICKET_GIVE_UP;
	return ticket;
}

/* The job at the front of the tenant queue was handed out. */
static void
take_front(UjobsTenantQueue *tq, const UjobsTicket *ticket)
{
	if (ticket->flags & UJOBS_TICKET_RATED)
		ujobs_limit_rate_give(tq->cap);
	(void) ujobs_tenant_queue_pop(tq);
	ujobs_tenant_queue_serve(tq);
	ujobs_tenant_queue_place(tq);
}

/* Gives the executor the first job; false when its ring is full. */
static bool
give_front(int index, UjobsTenantQueue *tq)
{
	UjobsHeapItem item = *ujobs_tenant_queue_top(tq);
	UjobsTicket ticket = ticket_for(tq, &item);

	if (!ujobs_executor_push(index, &ticket, tq, item))
		return false;
	take_front(tq, &ticket);
	return true;
}

/* Drops jobs that are taken from the front; true when something is left. */
static bool
skip_taken(UjobsTenantQueue *tq)
{
	bool		skipped = false;

	while (ujobs_tenant_queue_waiting(tq) > 0 && ujobs_routing_is_taken(ujobs_tenant_queue_top(tq)))
	{
		(void) ujobs_tenant_queue_pop(tq);
		skipped = true;
	}
	if (skipped)
		ujobs_tenant_queue_place(tq);
	return ujobs_tenant_queue_waiting(tq) > 0;
}

/* Is the second choice better than this one by now? */
static bool
second_is_better(const UjobsChoice *choice, const UjobsTenantQueue *tq)
{
	if (tq == NULL || choice->second == NULL || choice->second == tq)
		return false;
	return ujobs_tenant_queue_waiting(choice->second) == 0 ||
		ujobs_tenant_queue_compare(choice->second, tq) < 0;
}

/*
 * Gives up to quantum jobs of the best tenant queue's lane, while the best one
 * is there.  Returns how many, or -1 when the ring is full.
 */
static int
fill_from(int index, UjobsChoice choice, int quantum, TimestampTz now)
{
	const UjobsExecutor *executor = ujobs_executor_at(index);
	UjobsTenantQueue *tq = choice.best;
	int			n = 0;

	while (tq != NULL && n < quantum)
	{
		if (skip_taken(tq))
		{
			if (!give_front(index, tq))
				return n > 0 ? n : -1;
			n++;
		}
		if (!ujobs_choice_lane_allows(tq->lane, executor) || !ujobs_choice_has_units(executor))
			break;
		tq = ujobs_tenant_queue_best(tq->lane, now);
		if (second_is_better(&choice, tq))
			break;
	}
	return n;
}

static int
fill(int index, int quantum, TimestampTz now)
{
	for (;;)
	{
		UjobsChoice choice = ujobs_choice_for_executor(ujobs_executor_at(index), now);
		int			n = choice.best == NULL ? -1 : fill_from(index, choice, quantum, now);

		/* None, because all that there was is taken already: the next best is tried. */
		if (n != 0)
			return Max(n, 0);
	}
}

/* A few jobs are spread over the executors there are; many are given in bulk. */
static int
quantum_for(const UjobsExecutor *executor, int space)
{
	int64		share =
		ujobs_queue_waiting_for(executor->role) / Max(ujobs_executor_count_role(executor->role), 1);

	return (int) Min((int64) space, Max(share, 1));
}

/* It has enough, or its job is slow: no job is to wait behind that one. */
static bool
has_enough(const UjobsExecutor *executor, TimestampTz now)
{
	uint32		load = ujobs_executor_load(executor);

	return load > 0 && ((int) load > ujobs_executor_depth(executor) / 2 ||
						now - executor->synced >= UJOBS_SLOW_US);
}

static int
serve(int index, TimestampTz now)
{
	UjobsExecutor *executor = ujobs_executor_at(index);
	int			total = 0;
	bool		was_idle = ujobs_executor_load(executor) == 0;

	if (executor->state == UJOBS_SLOT_STARTING || executor->leaving || !may_start_work(executor) ||
		has_enough(executor, now))
		return 0;
	/* The depth may grow with what is given: it may have a batch now. */
	while ((int) ujobs_executor_load(executor) < ujobs_executor_depth(executor))
	{
		int			space = ujobs_executor_depth(executor) - (int) ujobs_executor_load(executor);
		int			n = fill(index, quantum_for(executor, space), now);

		total += n;
		if (n == 0)
			break;
	}
	if (total > 0 && was_idle)
		executor->synced = now;
	ujobs_executor_set_wakeup(index, notify);
	if (total > 0)
		ujobs_slot_wake(index);
	return total;
}

/* ---- taking back ---- */

static void
reclaim(int index, int max, TimestampTz now)
{
	ujobs_executor_reclaim(index, max, &returns);
	ujobs_routing_take_back(&returns, now);
}

static void
reclaim_slow(TimestampTz now)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		if (ujobs_executor_is_slow(i, now))
			reclaim(i, UJOBS_RING_SIZE, now);
	}
}

/* Limits changed: units are counted anew; over a limit only what was begun stays with executors. */
static void
follow_limits(TimestampTz now)
{
	ujobs_executor_recount();
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		if (ujobs_executor_at(i)->used && ujobs_limit_any())
			reclaim(i, UJOBS_RING_SIZE, now);
	}
}

/* Could another executor run any of the last tickets that it holds? */
static bool
could_share(const UjobsExecutor *executor)
{
	uint32		first =
		Max(executor->head + 1, executor->tail - Min(ujobs_executor_load(executor), SHARE_LOOK));

	for (uint32 at = executor->tail; at != first; at--)
	{
		UjobsCap   *cap[UJOBS_CAP_KINDS];
		int			n = ujobs_limit_of(&executor->ticket[(at - 1) % UJOBS_RING_SIZE], cap);

		while (n > 0 && ujobs_limit_is_free(cap[n - 1]))
			n--;
		if (n == 0)
			return true;
	}
	return false;
}

/* The executor of the role with the most tickets, two at least, or -1. */
static int
fullest_of(Oid role)
{
	int			fullest = -1;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		const UjobsExecutor *executor = ujobs_executor_at(i);

		if (!executor->used || executor->role != role || ujobs_executor_load(executor) < 2)
			continue;
		if (fullest < 0 ||
			ujobs_executor_load(executor) > ujobs_executor_load(ujobs_executor_at(fullest)))
			fullest = i;
	}
	return fullest;
}

/* An idle executor takes over half of what another has not begun. */
static void
share_with_idle(TimestampTz now)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		const UjobsExecutor *executor = ujobs_executor_at(i);
		int			fullest;

		if (!executor->used || executor->leaving || executor->state != UJOBS_SLOT_IDLE ||
			ujobs_executor_load(executor) > 0 || !may_start_work(executor))
			continue;
		fullest = fullest_of(executor->role);
		if (fullest < 0 || !could_share(ujobs_executor_at(fullest)))
			continue;
		reclaim(fullest, (int) ujobs_executor_load(ujobs_executor_at(fullest)) / 2, now);
		(void) serve(i, now);
	}
}

/* ---- one round ---- */

/* More executors for roles whose jobs no executor can take at once. */
static void
grow_pool(TimestampTz now)
{
	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		UjobsLane  *lane = ujobs_lane_at(i);
		int			there;

		if (lane->waiting == 0 || lane->outside || !ujobs_choice_lane_allows(lane, NULL))
			continue;
		there = ujobs_executor_count_role(lane->role);
		if (ujobs_guc_max_running > 0 && there > 0 &&
			ujobs_executor_count() >= ujobs_guc_max_running)
			continue;
		if (ujobs_guc_max_running_per_owner > 0 && there >= ujobs_guc_max_running_per_owner)
			continue;
		ujobs_pool_grow(lane->role, there == 0, now);
	}
}

static void
serve_all(TimestampTz now)
{
	int			given;

	do
	{
		given = 0;
		for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
		{
			if (ujobs_executor_at(i)->used)
				given += serve(i, now);
		}
	} while (given > 0);
}

void
ujobs_assign_round(TimestampTz now)
{
	if (ujobs_limit_take_change())
		follow_limits(now);
	reclaim_slow(now);
	look_at = ujobs_crash_guard_next(now);
	ujobs_pool_begin_round();
	if (ujobs_probation_serve(now))
	{
		look_at = now + PROBATION_LOOK_US;
		return;
	}
	ujobs_tenant_queue_unblock(now);
	notify = ujobs_guc_max_running > 0 || ujobs_guc_max_running_per_owner > 0 ||
		ujobs_queue_waits_for_limit();
	serve_all(now);
	share_with_idle(now);
	grow_pool(now);
}

TimestampTz
ujobs_assign_next(TimestampTz now)
{
	TimestampTz next = Min(look_at, ujobs_pool_next());

	next = Min(next, ujobs_executor_next(now));
	next = Min(next, ujobs_tenant_queue_next());
	return Min(next, ujobs_limit_next());
}

void
ujobs_assign_dismiss(void)
{
	TimestampTz now = GetCurrentTimestamp();

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		if (!ujobs_executor_at(i)->used)
			continue;
		reclaim(i, UJOBS_RING_SIZE, now);
		ujobs_slot_ask_leave(i, ujobs_executor_at(i)->generation);
	}
}

/* ---- claims of programs outside ---- */

/* The tenant queue of the next job for the claim if all limits allow one more, else NULL. */
static UjobsTenantQueue *
next_for_claim(const UjobsClaimAsk *ask, TimestampTz now)
{
	UjobsTenantQueue *tq;

	if (ujobs_guc_max_running > 0 && count_running() >= ujobs_guc_max_running)
		return NULL;
	do
	{
		tq = ujobs_choice_for_claim(ask, now);
	} while (tq != NULL && !skip_taken(tq));
	return tq;
}

static int
gather(int place, const UjobsClaimAsk *ask, UjobsGrant *out, TimestampTz now)
{
	UjobsTenantQueue *tq;
	int			n = 0;

	while (n < ask->max && (tq = next_for_claim(ask, now)) != NULL)
	{
		UjobsHeapItem item = *ujobs_tenant_queue_top(tq);
		UjobsTicket ticket = ticket_for(tq, &item);

		take_front(tq, &ticket);
		out[n] = ujobs_outside_grant(place, n, &ticket, tq, item);
		n++;
	}
	return n;
}

static void
answer(int place, const UjobsClaim *claim, bool uncertain, TimestampTz now)
{
	UjobsGrant	grants[UJOBS_CLAIM_GRANTS];
	int			n = gather(place, &claim->ask, grants, now);
	bool		found = claim->ask.max == 0 && next_for_claim(&claim->ask, now) != NULL;

	if (n == 0 && !found &&
		(claim->ask.wait || (uncertain && now - claim->asked_at < UNCERTAIN_US)))
		return;
	ujobs_outside_answer(place, grants, n, found, &returns);
	ujobs_routing_take_back(&returns, now);
}

void
ujobs_assign_answer_claims(bool uncertain)
{
	int			place[UJOBS_MAX_CLAIMS];
	int			n = ujobs_outside_asking(place);
	TimestampTz now;
	UjobsClaim	claim;

	if (n == 0)
		return;
	now = GetCurrentTimestamp();	/* what was due when they asked, is due */
	ujobs_tenant_queue_fire_all(now);
	ujobs_tenant_queue_unblock(now);
	ujobs_worker_begin();		/* the catalogs say which roles may work what */
	for (int i = 0; i < n; i++)
	{
		if (ujobs_outside_read(place[i], &claim))
			answer(place[i], &claim, uncertain, now);
	}
	ujobs_worker_commit();
}
