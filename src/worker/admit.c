/*
 * admit.c: step 3 of the walk: which job goes to which executor.
 *
 * The most urgent head among the lanes that an executor may serve wins.  A
 * lane at its limit, or paused, is passed over and costs nothing until an
 * executor frees a unit.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/guc.h"
#include "worker/admit.h"
#include "worker/crew.h"
#include "worker/grant.h"
#include "worker/hand.h"
#include "worker/recruit.h"
#include "worker/suspect.h"

/* An executor gets about this much work ahead, so that a wake-up pays for many jobs. */
#define AHEAD_US 4000
#define FIRST_GUESS_US 200		/* of a job's time */
#define SUSPECT_LOOK_US 20000

static UjobsArea *area;
static bool want_notify = false;
static TimestampTz look_at = DT_NOEND;

void
ujobs_admit_init(UjobsArea *my_area)
{
	area = my_area;
}

/*
 * How many tickets an executor should hold: AHEAD_US of its work, one at
 * least; and two batches, or the commit that they share would be the smaller
 * the longer it takes.  Batches of slow jobs are not hoarded; a slow disk does
 * not make a job slow.
 */
static int
depth_of(const UjobsHand *hand)
{
	double		us = hand->job_us > 0 ? hand->job_us : FIRST_GUESS_US;
	double		depth = Max(AHEAD_US / us, 1);

	if (hand->work_us < UJOBS_SLOW_US)
		depth = Max(depth, 2 * hand->batch);
	return (int) Min(depth, UJOBS_RING_SIZE - 1);
}

int
ujobs_admit_busy(void)
{
	int			n = 0;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
		n += ujobs_hand_at(i)->used && ujobs_hand_load(ujobs_hand_at(i)) > 0;
	return n;
}

/* May this executor take one more of the lane?  hand NULL: any new executor. */
static bool
may_take(UjobsLane *lane, UjobsHand *hand)
{
	if (ujobs_lane_waiting(lane) == 0 || lane->paused || lane->outside || !lane->loaded)
		return false;
	if (hand != NULL && ujobs_hand_kind(hand, lane->key.definition_id) != NULL)
		return true;
	if (hand != NULL && hand->n_kinds == UJOBS_HAND_KINDS)
		return false;
	return lane->concurrency == 0 || ujobs_hand_holders(lane->key.definition_id) < lane->concurrency;
}

/* The lane with the most urgent job for this executor, and the next best one's head. */
static UjobsLane *
best_lane(UjobsHand *hand, UjobsLane **second)
{
	UjobsLane  *best = NULL;

	*second = NULL;
	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		UjobsLane  *lane = ujobs_lane_at(i);

		if (ujobs_lane_waiting(lane) == 0 || lane->role != hand->role || !may_take(lane, hand))
			continue;
		if (best == NULL || ujobs_heap_compare(UJOBS_HEAP_BY_URGENCY, ujobs_lane_top(lane),
											   ujobs_lane_top(best)) < 0)
		{
			*second = best;
			best = lane;
		}
		else if (*second == NULL || ujobs_heap_compare(UJOBS_HEAP_BY_URGENCY, ujobs_lane_top(lane),
													   ujobs_lane_top(*second)) < 0)
			*second = lane;
	}
	return best;
}

bool
ujobs_admit_push(int index, const UjobsTicket *ticket, UjobsLane *lane, UjobsHeapItem item)
{
	UjobsHand  *hand = ujobs_hand_at(index);

	if (ujobs_slot_push(area, index, ticket, 1) == 0)
		return false;
	hand->ticket[hand->tail++ % UJOBS_RING_SIZE] = *ticket;
	hand->batch = ticket->batch;
	ujobs_hand_kind_add(hand, ticket->definition_id);
	ujobs_hand_remember(ticket, lane, item);
	return true;
}

/* Pops up to quantum jobs of the best lane while it stays the best. */
static int
fill(int index, int quantum)
{
	UjobsLane  *second;
	UjobsLane  *lane = best_lane(ujobs_hand_at(index), &second);
	int			n = 0;

	while (lane != NULL && n < quantum && ujobs_lane_waiting(lane) > 0)
	{
		UjobsHeapItem item = *ujobs_lane_top(lane);
		UjobsTicket ticket = {item.id, lane->key.definition_id, item.woken ? UJOBS_TICKET_WOKEN : 0, lane->batch};

		if (second != NULL && ujobs_lane_waiting(second) > 0 &&
			ujobs_heap_compare(UJOBS_HEAP_BY_URGENCY, ujobs_lane_top(second), &item) < 0)
			break;
		if (ujobs_hand_has(item.id) || ujobs_suspect_waits(item.id))
		{
			if (item.woken)
				ujobs_hand_match_again(item.id);
			(void) ujobs_lane_pop(lane);
			continue;
		}
		if (ujobs_hand_deaths(item.id) >= UJOBS_MAX_DEATHS)
			ticket.flags |= UJOBS_TICKET_BLAME;
		if (!ujobs_admit_push(index, &ticket, lane, item))
			break;
		(void) ujobs_lane_pop(lane);
		n++;
	}
	return n;
}

/* Due jobs that an executor of this role could have now. */
static int64
waiting_for(Oid role)
{
	int64		n = 0;

	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		UjobsLane  *lane = ujobs_lane_at(i);

		if (ujobs_lane_waiting(lane) > 0 && lane->role == role && may_take(lane, NULL))
			n += ujobs_lane_waiting(lane);
	}
	return n;
}

int
ujobs_admit_hands_of(Oid role)
{
	int			n = 0;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		UjobsHand  *hand = ujobs_hand_at(i);

		n += hand->used && hand->role == role && hand->state != UJOBS_SLOT_STARTING && !hand->leaving;
	}
	return n;
}

/* A few jobs are spread over the executors there are; many are given in bulk. */
static int
quantum_for(const UjobsHand *hand, int room)
{
	int64		share = waiting_for(hand->role) / Max(ujobs_admit_hands_of(hand->role), 1);

	return (int) Min((int64) room, Max(share, 1));
}

static bool
may_start_work(const UjobsHand *hand)
{
	return ujobs_hand_load(hand) > 0 || ujobs_guc_max_running == 0 ||
		ujobs_admit_busy() + ujobs_grant_total() < ujobs_guc_max_running;
}

static int
serve(int index, TimestampTz now)
{
	UjobsHand  *hand = ujobs_hand_at(index);
	int			depth = depth_of(hand);
	int			total = 0;
	bool		was_idle = ujobs_hand_load(hand) == 0;

	if (hand->state == UJOBS_SLOT_STARTING || hand->leaving || !may_start_work(hand))
		return 0;
	/* Enough in hand, or its job is slow: nothing is to wait behind that one. */
	if (!was_idle && (ujobs_hand_load(hand) > depth / 2 || now - hand->synced >= UJOBS_SLOW_US))
		return 0;
	while ((int) ujobs_hand_load(hand) < depth)
	{
		int			n = fill(index, quantum_for(hand, depth - (int) ujobs_hand_load(hand)));

		total += n;
		if (n == 0)
			break;
		depth = depth_of(hand);	/* it may have a batch now */
	}
	if (total > 0 && was_idle)
		hand->synced = now;
	ujobs_slot_set_wakeup(index, depth / 2, want_notify);
	if (total > 0)
		ujobs_slot_wake(index);
	return total;
}

/* Could somebody else run any of what it holds? */
static bool
could_share(UjobsHand *hand)
{
	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		UjobsLane  *lane = ujobs_lane_at(i);

		if (ujobs_hand_kind(hand, lane->key.definition_id) != NULL &&
			(lane->concurrency == 0 || ujobs_hand_holders(lane->key.definition_id) < lane->concurrency))
			return true;
	}
	return false;
}

/* The executor of the role with the most that it has not begun, or -1. */
static int
richest_of(Oid role)
{
	int			richest = -1;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		UjobsHand  *hand = ujobs_hand_at(i);

		if (!hand->used || hand->role != role || ujobs_hand_load(hand) < 2)
			continue;
		if (richest < 0 || ujobs_hand_load(hand) > ujobs_hand_load(ujobs_hand_at(richest)))
			richest = i;
	}
	return richest;
}

/* An executor that waits takes over what another has not begun. */
static void
steal_for_idle(TimestampTz now)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		UjobsHand  *hand = ujobs_hand_at(i);
		int			richest;

		if (!hand->used || hand->leaving || hand->state != UJOBS_SLOT_IDLE || ujobs_hand_load(hand) > 0 ||
			!may_start_work(hand))
			continue;
		richest = richest_of(hand->role);
		if (richest < 0 || !could_share(ujobs_hand_at(richest)))
			continue;
		ujobs_crew_reclaim(richest, (int) ujobs_hand_load(ujobs_hand_at(richest)) / 2, now);
		(void) serve(i, now);
	}
}

/* A definition at its limit: the one who frees a unit must tell at once. */
static bool
somebody_waits_for_a_limit(void)
{
	if (ujobs_guc_max_running > 0)
		return true;
	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		UjobsLane  *lane = ujobs_lane_at(i);

		if (ujobs_lane_waiting(lane) > 0 && lane->concurrency > 0 && !lane->paused)
			return true;
	}
	return false;
}

/* More executors, for roles whose jobs nobody can take at once. */
static void
recruit(TimestampTz now)
{
	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		UjobsLane  *lane = ujobs_lane_at(i);

		if (ujobs_lane_waiting(lane) == 0 || !may_take(lane, NULL))
			continue;
		if (ujobs_guc_max_running > 0 && ujobs_crew_size() >= ujobs_guc_max_running &&
			ujobs_admit_hands_of(lane->role) > 0)
			continue;
		ujobs_recruit(lane->role, ujobs_admit_hands_of(lane->role) == 0, now);
	}
}

void
ujobs_admit_assign(TimestampTz now)
{
	int			given;

	look_at = ujobs_suspect_next(now);
	ujobs_recruit_round();
	if (ujobs_suspect_serve(now))
	{
		look_at = now + SUSPECT_LOOK_US;
		return;
	}
	want_notify = somebody_waits_for_a_limit();
	do
	{
		given = 0;
		for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
		{
			if (ujobs_hand_at(i)->used)
				given += serve(i, now);
		}
	} while (given > 0);
	steal_for_idle(now);
	recruit(now);
}

TimestampTz
ujobs_admit_next(void)
{
	return Min(look_at, ujobs_recruit_next());
}
