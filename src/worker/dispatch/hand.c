/*
 * hand.c: the books of admission: who holds what.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "core/wakeup.h"
#include "worker/dispatch/hand.h"
#include "worker/dispatch/match.h"

typedef struct Deaths
{
	int64		id;
	int			deaths;
} Deaths;

static UjobsHand *hands;		/* one per slot of the cluster */
static HTAB *outstanding;
static Deaths deaths[32];
static int	next_death = 0;
static bool any_deaths = false;

void
ujobs_hand_init(void)
{
	HASHCTL		ctl = {.keysize = sizeof(int64), .entrysize = sizeof(UjobsOutstanding)};

	hands = MemoryContextAllocZero(TopMemoryContext, UJOBS_MAX_SLOTS * sizeof(UjobsHand));
	outstanding = hash_create("ujobs outstanding", 1024, &ctl, HASH_ELEM | HASH_BLOBS);
}

UjobsHand *
ujobs_hand_at(int slot)
{
	return &hands[slot];
}

HTAB *
ujobs_hand_outstanding(void)
{
	return outstanding;
}

/* ---- units of limits ---- */

static UjobsHandUnit *
find_unit(const UjobsHand *hand, const UjobsCap *cap)
{
	for (int i = 0; i < hand->n_units; i++)
	{
		if (hand->unit[i].cap == cap)
			return &hand->unit[i];
	}
	return NULL;
}

bool
ujobs_hand_holds(const UjobsHand *hand, const UjobsCap *cap)
{
	return find_unit(hand, cap) != NULL;
}

static void
take_unit(UjobsHand *hand, UjobsCap *cap)
{
	UjobsHandUnit *unit = find_unit(hand, cap);

	if (unit != NULL)
	{
		unit->count++;
		return;
	}
	if (hand->n_units == hand->unit_capacity)
	{
		hand->unit_capacity = Max(16, 2 * hand->unit_capacity);
		hand->unit = hand->unit == NULL ?
			MemoryContextAlloc(TopMemoryContext, hand->unit_capacity * sizeof(UjobsHandUnit)) :
			repalloc(hand->unit, hand->unit_capacity * sizeof(UjobsHandUnit));
	}
	hand->unit[hand->n_units++] = (UjobsHandUnit) {cap, 1};
	ujobs_limit_take_inside(cap);
}

static void
return_unit(UjobsHand *hand, UjobsCap *cap)
{
	UjobsHandUnit *unit = find_unit(hand, cap);

	Assert(unit != NULL);
	if (unit == NULL || --unit->count > 0)
		return;
	*unit = hand->unit[--hand->n_units];
	ujobs_limit_return_inside(cap);
}

void
ujobs_hand_take_units(UjobsHand *hand, const UjobsTicket *ticket)
{
	UjobsCap   *cap[UJOBS_CAP_KINDS];
	int			n = ujobs_limit_of(ticket, cap);

	for (int i = 0; i < n; i++)
		take_unit(hand, cap[i]);
}

void
ujobs_hand_return_units(UjobsHand *hand, const UjobsTicket *ticket)
{
	UjobsCap   *cap[UJOBS_CAP_KINDS];
	int			n = ujobs_limit_of(ticket, cap);

	for (int i = 0; i < n; i++)
		return_unit(hand, cap[i]);
}

void
ujobs_hand_recount(void)
{
	ujobs_limit_forget_inside();
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		UjobsHand  *hand = &hands[i];

		hand->n_units = 0;
		for (uint32 at = hand->head; hand->used && at != hand->tail; at++)
			ujobs_hand_take_units(hand, &hand->ticket[at % UJOBS_RING_SIZE]);
	}
}

void
ujobs_hand_clear(UjobsHand *hand)
{
	if (hand->unit != NULL)
		pfree(hand->unit);
	memset(hand, 0, sizeof(*hand));
}

/* ---- outstanding jobs ---- */

void
ujobs_hand_remember(const UjobsTicket *ticket, UjobsParty *party, UjobsHeapItem item)
{
	bool		found;
	UjobsOutstanding *o = hash_search(outstanding, &ticket->id, HASH_ENTER, &found);

	if (found && o->party != NULL)
		o->party->out--;
	o->party = party;
	o->item = item;
	if (party != NULL)
		party->out++;
	o->again = o->match_again = o->cancelled = false;
}

bool
ujobs_hand_has(int64 id)
{
	return hash_search(outstanding, &id, HASH_FIND, NULL) != NULL;
}

void
ujobs_hand_again(const UjobsHint *hint)
{
	UjobsOutstanding *o = hash_search(outstanding, &hint->id, HASH_FIND, NULL);

	if (o == NULL)
		return;
	o->again = true;
	o->hint = *hint;
}

void
ujobs_hand_match_again(int64 id)
{
	UjobsOutstanding *o = hash_search(outstanding, &id, HASH_FIND, NULL);

	if (o != NULL)
		o->match_again = true;
}

static void
remove_outstanding(UjobsOutstanding *o)
{
	if (o->party != NULL)
		o->party->out--;
	(void) hash_search(outstanding, &o->id, HASH_REMOVE, NULL);
}

/* The executor is finished with it; a hint that came meanwhile counts now. */
void
ujobs_hand_forget(int64 id, TimestampTz now)
{
	UjobsOutstanding *o = hash_search(outstanding, &id, HASH_FIND, NULL);

	if (o == NULL)
		return;
	if (o->again && !ujobs_lane_hint(&o->hint, now))
		ujobs_wakeup_rescan_now();
	if (o->match_again)
		ujobs_match_again(id);
	remove_outstanding(o);
}

void
ujobs_hand_drop(int64 id)
{
	UjobsOutstanding *o = hash_search(outstanding, &id, HASH_FIND, NULL);

	if (o != NULL)
		remove_outstanding(o);
}

/* It was not run: back to where it came from. */
void
ujobs_hand_put_back(int64 id, TimestampTz not_before, TimestampTz now)
{
	UjobsOutstanding *o = hash_search(outstanding, &id, HASH_FIND, NULL);

	if (o == NULL)
		return;
	if (o->party != NULL)
	{
		UjobsHeapItem item = o->item;

		item.due_at = Max(item.due_at, not_before);
		ujobs_party_add(o->party, item, now);
	}
	else
		ujobs_wakeup_rescan_now();	/* adopted: only the rows know its lane */
	remove_outstanding(o);
}

/* ---- deaths ---- */

int
ujobs_hand_deaths(int64 id)
{
	for (int i = 0; i < lengthof(deaths); i++)
	{
		if (deaths[i].id == id)
			return deaths[i].deaths;
	}
	return 0;
}

int
ujobs_hand_count_death(int64 id)
{
	for (int i = 0; i < lengthof(deaths); i++)
	{
		if (deaths[i].id == id)
			return ++deaths[i].deaths;
	}
	any_deaths = true;
	deaths[next_death].id = id;
	deaths[next_death].deaths = 1;
	next_death = (next_death + 1) % lengthof(deaths);
	return 1;
}

void
ujobs_hand_clear_deaths(int64 id)
{
	if (!any_deaths)
		return;
	for (int i = 0; i < lengthof(deaths); i++)
	{
		if (deaths[i].id == id)
			deaths[i].id = 0;
	}
}
