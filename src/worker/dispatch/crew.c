/*
 * crew.c: step 3 of the walk: following the executors.
 *
 * A hand's tickets are kept in the order they were pushed; the executor only
 * counts how many it has finished with, so one comparison of counters tells
 * which jobs are back.
 */
#include "postgres.h"

#include <signal.h>

#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/timestamp.h"

#include "worker/dispatch/admit.h"
#include "worker/dispatch/crew.h"
#include "worker/dispatch/hand.h"
#include "worker/dispatch/recruit.h"
#include "worker/dispatch/suspect.h"

#define SLOW_COMMIT_US 100000

static UjobsArea *area;
static bool any_cancelled = false;

void
ujobs_crew_init(UjobsArea *my_area)
{
	area = my_area;
	ujobs_hand_init();
	ujobs_limit_init(my_area);
	ujobs_admit_init(my_area);
}

/*
 * Under its tenant's rate: has it begun?  The executor says so in the ring,
 * where the ticket stands until its place is given to another.
 */
static void
look_at_rate(int index, UjobsTicket *ticket, uint32 place)
{
	TimestampTz begun;

	if ((ticket->flags & UJOBS_TICKET_RATED) == 0)
		return;
	begun = area->ring[index][place % UJOBS_RING_SIZE].begun;
	if (begun == 0)
		return;
	ticket->flags &= ~UJOBS_TICKET_RATED;
	ujobs_limit_rate_began(ticket, begun);
}

/* The ticket left the executor. */
static void
gone_from(UjobsHand *hand, const UjobsTicket *ticket)
{
	ujobs_hand_return_units(hand, ticket);
	if (ticket->flags & UJOBS_TICKET_RATED)
		ujobs_limit_rate_back(ticket);
}

static void
finished_one(int index, TimestampTz now)
{
	UjobsHand  *hand = ujobs_hand_at(index);
	UjobsTicket *ticket = &hand->ticket[hand->head % UJOBS_RING_SIZE];

	look_at_rate(index, ticket, hand->head++);
	gone_from(hand, ticket);
	ujobs_suspect_ended(ticket->id);
	ujobs_hand_clear_deaths(ticket->id);
	ujobs_hand_forget(ticket->id, now);
}

/* A suspect that did not come to its end is one still. */
static bool
suspect_again(const UjobsTicket *ticket)
{
	UjobsOutstanding *o = hash_search(ujobs_hand_outstanding(), &ticket->id, HASH_FIND, NULL);

	if ((ticket->flags & UJOBS_TICKET_SUSPECT) == 0 || o == NULL || o->party == NULL)
		return false;
	ujobs_suspect_add(ticket, 0);
	ujobs_hand_drop(ticket->id);
	return true;
}

/* An executor went with tickets in its hand; the first of them may be why. */
static void
bury(int index, bool died, TimestampTz now)
{
	UjobsHand  *hand = ujobs_hand_at(index);
	bool		first = true;

	while (ujobs_hand_load(hand) > 0)
	{
		UjobsTicket *ticket = &hand->ticket[hand->head % UJOBS_RING_SIZE];
		TimestampTz not_before = now;

		look_at_rate(index, ticket, hand->head++);
		gone_from(hand, ticket);
		if (first && died && hand->state != UJOBS_SLOT_STARTING)
		{
			int			n = ujobs_hand_count_death(ticket->id);

			if (n > 1)
				not_before = now + ((int64) 100000 << Min(n, 8));
		}
		first = false;
		if (!suspect_again(ticket))
			ujobs_hand_put_back(ticket->id, not_before, now);
	}
	if (died && hand->state == UJOBS_SLOT_STARTING)
		ujobs_recruit_failed(hand->role, now);
	ujobs_hand_clear(hand);
}

static double
average(double before, double us)
{
	return before == 0 ? Max(us, 0) : 0.7 * before + 0.3 * Max(us, 0);
}

static void
learn_pace(UjobsHand *hand, int n, const UjobsSlot *slot, TimestampTz now)
{
	hand->job_us = average(hand->job_us, (double) (now - hand->synced) / n);
	hand->work_us = average(hand->work_us, (double) (slot->work_us - hand->worked) / n);
	hand->worked = slot->work_us;
}

static bool
sync_hand(int index, TimestampTz now)
{
	UjobsHand  *hand = ujobs_hand_at(index);
	UjobsSlot	slot;
	int			n;

	if (!hand->used)
		return false;
	ujobs_slot_copy(index, &slot);
	if (slot.generation != hand->generation || slot.state == UJOBS_SLOT_FREE)
	{
		/* What it finished before it went. */
		for (n = slot.generation == hand->generation ? (int) (slot.taken - hand->done) : 0; n > 0; n--)
			finished_one(index, now);
		bury(index, slot.generation != hand->generation || slot.died, now);
		return true;
	}
	if (slot.state == UJOBS_SLOT_STARTING && ujobs_recruit_is_lost(index, slot.since, now))
	{
		ujobs_slot_free(index, hand->generation, true);
		bury(index, true, now);
		return true;
	}
	if (hand->state == UJOBS_SLOT_STARTING && slot.state != UJOBS_SLOT_STARTING)
		ujobs_recruit_arrived(hand->role);
	n = (int) (slot.taken - hand->done);
	hand->state = slot.state;
	hand->leaving = slot.leave;
	hand->done = slot.taken;
	if (n > 0)
		learn_pace(hand, n, &slot, now);
	if (n > 0 || ujobs_hand_load(hand) == 0)
		hand->synced = now;
	for (int i = 0; i < n; i++)
		finished_one(index, now);
	if (ujobs_hand_load(hand) > 0)
		look_at_rate(index, &hand->ticket[hand->head % UJOBS_RING_SIZE], hand->head);
	return n > 0;
}

static void
retry_cancels(void)
{
	HASH_SEQ_STATUS status;
	UjobsOutstanding *o;

	if (!any_cancelled)
		return;
	any_cancelled = false;
	hash_seq_init(&status, ujobs_hand_outstanding());
	while ((o = hash_seq_search(&status)) != NULL)
	{
		if (o->cancelled)
		{
			any_cancelled = true;
			ujobs_crew_cancel(o->id);
		}
	}
}

bool
ujobs_crew_sync(TimestampTz now)
{
	bool		changed = false;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
		changed |= sync_hand(i, now);
	retry_cancels();
	return changed;
}

void
ujobs_crew_cancel(int64 id)
{
	UjobsOutstanding *o = hash_search(ujobs_hand_outstanding(), &id, HASH_FIND, NULL);

	if (o == NULL)
		return;
	/* Admitted but perhaps not begun: tried again until its ticket is back. */
	o->cancelled = any_cancelled = true;
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		if (ujobs_hand_at(i)->used && ujobs_slot_cancel(i, id))
			return;
	}
}

void
ujobs_crew_adopt(void)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		UjobsHand  *hand = ujobs_hand_at(i);
		UjobsSlot	slot;

		ujobs_slot_copy(i, &slot);
		if (slot.state == UJOBS_SLOT_FREE || slot.database != MyDatabaseId)
			continue;
		hand->used = true;
		hand->generation = slot.generation;
		hand->role = slot.role;
		hand->state = slot.state;
		hand->done = slot.taken;
		hand->worked = slot.work_us;
		hand->synced = GetCurrentTimestamp();
		hand->head = hand->tail = (uint32) slot.taken;	/* as in the ring */
		for (uint32 n = (uint32) slot.taken; n != slot.tail; n++)
		{
			UjobsTicket ticket = area->ring[i][n % UJOBS_RING_SIZE];

			ticket.flags &= ~UJOBS_TICKET_RATED;	/* it was counted in another memory */
			hand->ticket[hand->tail++ % UJOBS_RING_SIZE] = ticket;
			ujobs_hand_take_units(hand, &ticket);
			if (ticket.flags & UJOBS_TICKET_SUSPECT)
				ujobs_suspect_adopt();
			ujobs_hand_remember(&ticket, NULL, (UjobsHeapItem) {ticket.id, 0, 0});
		}
	}
}

/* Tickets that were not begun go back to their lanes. */
void
ujobs_crew_reclaim(int index, int max, TimestampTz now)
{
	UjobsHand  *hand = ujobs_hand_at(index);
	UjobsTicket back[UJOBS_RING_SIZE];
	int			n = ujobs_slot_reclaim(area, index, back, max);

	for (int i = 0; i < n; i++)
	{
		hand->tail--;
		/* Our copy knows whether its rate was counted here. */
		gone_from(hand, &hand->ticket[hand->tail % UJOBS_RING_SIZE]);
		ujobs_hand_put_back(back[i].id, 0, now);
	}
}

/*
 * Single jobs need not wait behind a commit, another executor may be free;
 * the next batch may, for taking it apart makes more commits of it.
 */
static bool
keeps_waiting(int index, int64 us)
{
	if (us < UJOBS_SLOW_US)
		return false;
	return ujobs_hand_at(index)->batch <= 1 || us >= SLOW_COMMIT_US || !ujobs_slot_is_committing(index);
}

void
ujobs_crew_reclaim_slow(TimestampTz now)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		UjobsHand  *hand = ujobs_hand_at(i);

		if (hand->used && ujobs_hand_load(hand) > 1 && keeps_waiting(i, now - hand->synced))
			ujobs_crew_reclaim(i, UJOBS_RING_SIZE, now);
	}
}

TimestampTz
ujobs_crew_next(TimestampTz now)
{
	TimestampTz next = ujobs_admit_next();

	if (any_cancelled)
		next = Min(next, now + 10000);
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		if (ujobs_hand_at(i)->used && ujobs_hand_load(ujobs_hand_at(i)) > 1)
			next = Min(next, Max(ujobs_hand_at(i)->synced + UJOBS_SLOW_US, now + 1000));
	}
	return next;
}

/* Who holds what is counted anew; over a limit only what was begun stays with executors. */
void
ujobs_crew_follow_limits(TimestampTz now)
{
	ujobs_hand_recount();
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		if (ujobs_hand_at(i)->used && ujobs_limit_any())
			ujobs_crew_reclaim(i, UJOBS_RING_SIZE, now);
	}
}

int
ujobs_crew_size(void)
{
	int			n = 0;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
		n += ujobs_hand_at(i)->used;
	return n;
}

void
ujobs_crew_dismiss(void)
{
	TimestampTz now = GetCurrentTimestamp();

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		if (!ujobs_hand_at(i)->used)
			continue;
		ujobs_crew_reclaim(i, UJOBS_RING_SIZE, now);
		ujobs_slot_ask_leave(i);
	}
}

void
ujobs_crew_terminate(void)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		UjobsSlot	slot;

		if (!ujobs_hand_at(i)->used)
			continue;
		ujobs_slot_copy(i, &slot);
		if (slot.generation == ujobs_hand_at(i)->generation && slot.pid != 0)
			kill(slot.pid, SIGTERM);
	}
}

void
ujobs_crew_born(int index, uint32 generation, Oid role)
{
	UjobsHand  *hand = ujobs_hand_at(index);

	ujobs_hand_clear(hand);
	hand->used = true;
	hand->generation = generation;
	hand->role = role;
	hand->state = UJOBS_SLOT_STARTING;
	hand->synced = GetCurrentTimestamp();
}

int
ujobs_crew_idle_of_other_role(Oid role)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		UjobsHand  *hand = ujobs_hand_at(i);

		if (hand->used && hand->role != role && hand->state == UJOBS_SLOT_IDLE && !hand->leaving &&
			ujobs_hand_load(hand) == 0)
			return i;
	}
	return -1;
}

bool
ujobs_crew_starting(Oid role)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		UjobsHand  *hand = ujobs_hand_at(i);

		if (hand->used && hand->role == role && hand->state == UJOBS_SLOT_STARTING && !hand->leaving)
			return true;
	}
	return false;
}
