/*
 * admit.c: step 3 of the walk: which job goes to which executor.
 *
 * The first party among the lanes that an executor may serve wins: the best
 * priority, then the tenant whose turn it is, then age.  A lane at its limit,
 * or paused, is passed over; a tenant at its limit stands aside and costs
 * nothing until a unit of it is free.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/guc.h"
#include "worker/dispatch/admit.h"
#include "worker/dispatch/crew.h"
#include "worker/dispatch/grant.h"
#include "worker/dispatch/hand.h"
#include "worker/dispatch/recruit.h"
#include "worker/dispatch/suspect.h"

/* An executor gets about this much work ahead, so that a wake-up pays for many jobs. */
#define AHEAD_US 4000
#define FIRST_GUESS_US 200		/* of a job's time */
#define SUSPECT_LOOK_US 20000
#define SHARE_LOOK 16			/* tickets: who wants to share looks at so many */

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
ujobs_admit_running(void)
{
	int			n = ujobs_grant_total();

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
		n += ujobs_hand_at(i)->used && ujobs_hand_load(ujobs_hand_at(i)) > 0;
	area->running = n;			/* for those who ask why */
	return n;
}

/* May one more under this limit go to the executor?  hand NULL: to one that has nothing. */
static inline bool
cap_allows(const UjobsCap *cap, const UjobsHand *hand)
{
	if (ujobs_limit_is_free(cap))
		return true;
	return hand != NULL && ujobs_hand_holds(hand, cap) && ujobs_limit_is_kept(cap);
}

/* Its queue and its definition may give the executor one more. */
static bool
lane_allows(const UjobsLane *lane, const UjobsHand *hand)
{
	if (lane->paused || !lane->loaded)
		return false;
	return cap_allows(lane->definition_cap, hand) && cap_allows(lane->queue_cap, hand);
}

bool
ujobs_admit_allows(const UjobsHand *hand, UjobsParty *party, TimestampTz now)
{
	if (!lane_allows(party->lane, hand))
		return false;
	return party->cap == NULL ||
		(cap_allows(party->cap, hand) && ujobs_limit_rate_allows(party->cap, now));
}

/* ---- who is next ---- */

typedef struct Choice
{
	UjobsParty *best;
	UjobsParty *second;			/* of another lane, or one that waits with its tenant */
} Choice;

static void
consider(Choice *choice, UjobsParty *party)
{
	if (choice->best == NULL || ujobs_party_compare(party, choice->best) < 0)
	{
		choice->second = choice->best;
		choice->best = party;
	}
	else if (choice->second == NULL || ujobs_party_compare(party, choice->second) < 0)
		choice->second = party;
}

/*
 * A tenant at its limit has its parties set aside; the executor that holds
 * its unit may take more of them all the same.
 */
static void
consider_held(Choice *choice, const UjobsHand *hand, TimestampTz now)
{
	for (int i = 0; i < hand->n_units; i++)
	{
		UjobsCap   *cap = hand->unit[i].cap;
		dlist_iter	iter;

		if (cap->key.kind != UJOBS_CAP_TENANT || dlist_is_empty(&cap->waiting))
			continue;
		dlist_foreach(iter, &cap->waiting)
		{
			UjobsParty *party = dlist_container(UjobsParty, blocked_node, iter.cur);

			if (party->lane->role == hand->role && ujobs_party_waiting(party) > 0 &&
				ujobs_admit_allows(hand, party, now))
				consider(choice, party);
		}
	}
}

/* The party to be served next by this executor, and the next best one. */
static Choice
choose(const UjobsHand *hand, TimestampTz now)
{
	Choice		choice = {NULL, NULL};

	if (hand->n_units > UJOBS_HAND_UNITS - UJOBS_CAP_KINDS)
		return choice;
	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		UjobsLane  *lane = ujobs_lane_at(i);
		UjobsParty *party;

		if (lane->waiting == 0 || lane->role != hand->role || !lane_allows(lane, hand))
			continue;
		party = ujobs_lane_best(lane, now);
		if (party != NULL)
			consider(&choice, party);
	}
	consider_held(&choice, hand, now);
	return choice;
}

/* ---- handing out ---- */

bool
ujobs_admit_push(int index, const UjobsTicket *ticket, UjobsParty *party, UjobsHeapItem item)
{
	UjobsHand  *hand = ujobs_hand_at(index);

	if (ujobs_slot_push(area, index, ticket, 1) == 0)
		return false;
	hand->ticket[hand->tail++ % UJOBS_RING_SIZE] = *ticket;
	hand->batch = ticket->batch;
	ujobs_hand_take_units(hand, ticket);
	if (ticket->flags & UJOBS_TICKET_RATED)
		ujobs_limit_rate_give(party->cap);
	ujobs_hand_remember(ticket, party, item);
	return true;
}

static UjobsTicket
ticket_for(const UjobsParty *party, const UjobsHeapItem *item)
{
	UjobsTicket ticket = {
		.id = item->id,
		.definition_id = party->lane->key.definition_id,
		.batch = party->lane->batch,
		.tenant_hash = party->tenant_hash,
		.queue_hash = party->lane->queue_hash
	};

	if (item->woken)
		ticket.flags |= UJOBS_TICKET_WOKEN;
	if (party->cap != NULL && ujobs_limit_has_rate(party->cap))
		ticket.flags |= UJOBS_TICKET_RATED;
	if (ujobs_hand_deaths(item->id) >= UJOBS_MAX_DEATHS)
		ticket.flags |= UJOBS_TICKET_BLAME;
	return ticket;
}

/* Somebody has it already, or it is a suspect. */
static bool
is_elsewhere(const UjobsHeapItem *item)
{
	bool		granted = ujobs_grant_has(item->id);

	if (!granted && !ujobs_hand_has(item->id) && !ujobs_suspect_waits(item->id))
		return false;
	if (item->woken && granted)
		ujobs_grant_match_again(item->id);
	else if (item->woken)
		ujobs_hand_match_again(item->id);
	return true;
}

/* Gives the executor the party's first job; false when its ring is full. */
static bool
give_first(int index, UjobsParty *party)
{
	UjobsHeapItem item = *ujobs_party_top(party);
	UjobsTicket ticket = ticket_for(party, &item);

	if (!ujobs_admit_push(index, &ticket, party, item))
		return false;
	(void) ujobs_party_pop(party);
	ujobs_party_served(party);
	return true;
}

/* Drops from the front what others have; true when something is left. */
static bool
skip_elsewhere(UjobsParty *party)
{
	bool		skipped = false;

	while (ujobs_party_waiting(party) > 0 && is_elsewhere(ujobs_party_top(party)))
	{
		(void) ujobs_party_pop(party);
		skipped = true;
	}
	if (skipped)
		ujobs_party_place(party);
	return ujobs_party_waiting(party) > 0;
}

/*
 * Gives up to quantum jobs, of the best party's lane while the best one is
 * there.  Returns how many, or -1 when the ring is full.
 */
static int
fill_from(int index, Choice choice, int quantum, TimestampTz now)
{
	UjobsHand  *hand = ujobs_hand_at(index);
	UjobsParty *party = choice.best;
	int			n = 0;

	while (party != NULL && n < quantum)
	{
		if (skip_elsewhere(party))
		{
			if (!give_first(index, party))
				return n > 0 ? n : -1;
			n++;
			ujobs_party_place(party);
		}
		if (!lane_allows(party->lane, hand) || hand->n_units > UJOBS_HAND_UNITS - UJOBS_CAP_KINDS)
			break;
		party = ujobs_lane_best(party->lane, now);
		if (party != NULL && choice.second != NULL && choice.second != party &&
			(ujobs_party_waiting(choice.second) == 0 || ujobs_party_compare(choice.second, party) < 0))
			break;
	}
	return n;
}

static int
fill(int index, int quantum, TimestampTz now)
{
	for (;;)
	{
		Choice		choice = choose(ujobs_hand_at(index), now);
		int			n = choice.best == NULL ? -1 : fill_from(index, choice, quantum, now);

		/* None, but somebody else had what there was: the next best has its turn. */
		if (n != 0)
			return Max(n, 0);
	}
}

/* ---- jobs that programs outside claim ---- */

static UjobsParty *
choose_outside(UjobsLaneFilter accepts, void *arg, TimestampTz now)
{
	Choice		choice = {NULL, NULL};

	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		UjobsLane  *lane = ujobs_lane_at(i);
		UjobsParty *party;

		if (!lane->outside || lane->waiting == 0 || !lane_allows(lane, NULL) || !accepts(lane, arg))
			continue;
		party = ujobs_lane_best(lane, now);
		if (party != NULL)
			consider(&choice, party);
	}
	return choice.best;
}

UjobsParty *
ujobs_admit_best_outside(UjobsLaneFilter accepts, void *arg, TimestampTz now)
{
	UjobsParty *party;

	if (ujobs_guc_max_running > 0 && ujobs_admit_running() >= ujobs_guc_max_running)
		return NULL;
	do
	{
		party = choose_outside(accepts, arg, now);
	} while (party != NULL && !skip_elsewhere(party));
	return party;
}

UjobsHeapItem
ujobs_admit_pop_outside(UjobsParty *party, UjobsTicket *ticket)
{
	UjobsHeapItem item = ujobs_party_pop(party);

	*ticket = ticket_for(party, &item);
	if (ticket->flags & UJOBS_TICKET_RATED)
		ujobs_limit_rate_give(party->cap);
	ujobs_party_served(party);
	ujobs_party_place(party);
	return item;
}

/* Due jobs that an executor of this role could have now. */
static int64
waiting_for(Oid role)
{
	int64		n = 0;

	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		UjobsLane  *lane = ujobs_lane_at(i);

		if (lane->waiting > 0 && lane->role == role && lane_allows(lane, NULL))
			n += lane->waiting;
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
	if (ujobs_guc_max_running == 0)
		return true;
	return ujobs_admit_running() < ujobs_guc_max_running + (ujobs_hand_load(hand) > 0);
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
		int			n = fill(index, quantum_for(hand, depth - (int) ujobs_hand_load(hand)), now);

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

/* Could somebody else run any of the last that it holds? */
static bool
could_share(UjobsHand *hand)
{
	uint32		first = Max(hand->head + 1, hand->tail - Min(ujobs_hand_load(hand), SHARE_LOOK));

	for (uint32 at = hand->tail; at != first; at--)
	{
		UjobsCap   *cap[UJOBS_CAP_KINDS];
		int			n = ujobs_limit_of(&hand->ticket[(at - 1) % UJOBS_RING_SIZE], cap);
		bool		free = true;

		for (int i = 0; i < n; i++)
			free &= ujobs_limit_is_free(cap[i]);
		if (free)
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

/* Somebody may be at a limit: the one who frees a unit must tell at once. */
static bool
somebody_waits_for_a_limit(void)
{
	if (ujobs_guc_max_running > 0 || ujobs_party_blocked() > 0)
		return true;
	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		UjobsLane  *lane = ujobs_lane_at(i);

		if (lane->waiting > 0 && !lane->paused &&
			(lane->definition_cap->limit > 0 || lane->queue_cap->limit > 0 || lane->queue_cap->per_tenant > 0))
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

		if (lane->waiting == 0 || lane->outside || !lane_allows(lane, NULL))
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
	ujobs_party_unblock(now);
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
