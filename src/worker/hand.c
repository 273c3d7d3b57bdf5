/*
 * hand.c: the books of admission: who holds what.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "core/wakeup.h"
#include "worker/hand.h"
#include "worker/match.h"

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

UjobsHandKind *
ujobs_hand_kind(UjobsHand *hand, int32 definition_id)
{
	for (int i = 0; i < hand->n_kinds; i++)
	{
		if (hand->kind[i].definition_id == definition_id)
			return &hand->kind[i];
	}
	return NULL;
}

void
ujobs_hand_kind_add(UjobsHand *hand, int32 definition_id)
{
	UjobsHandKind *kind = ujobs_hand_kind(hand, definition_id);

	if (kind == NULL)
	{
		kind = &hand->kind[hand->n_kinds++];
		kind->definition_id = definition_id;
		kind->count = 0;
	}
	kind->count++;
}

void
ujobs_hand_kind_remove(UjobsHand *hand, int32 definition_id)
{
	UjobsHandKind *kind = ujobs_hand_kind(hand, definition_id);

	if (--kind->count == 0)
		*kind = hand->kind[--hand->n_kinds];
}

int
ujobs_hand_holders(int32 definition_id)
{
	int			n = 0;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
		n += hands[i].used && ujobs_hand_kind(&hands[i], definition_id) != NULL;
	return n;
}

/* ---- outstanding jobs ---- */

void
ujobs_hand_remember(const UjobsTicket *ticket, UjobsLane *lane, UjobsHeapItem item)
{
	bool		found;
	UjobsOutstanding *o = hash_search(outstanding, &ticket->id, HASH_ENTER, &found);

	o->lane = lane;
	o->item = item;
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
	(void) hash_search(outstanding, &id, HASH_REMOVE, NULL);
}

/* It was not run: back to where it came from. */
void
ujobs_hand_put_back(int64 id, TimestampTz not_before, TimestampTz now)
{
	UjobsOutstanding *o = hash_search(outstanding, &id, HASH_FIND, NULL);

	if (o == NULL)
		return;
	if (o->lane != NULL)
	{
		UjobsHeapItem item = o->item;

		item.due_at = Max(item.due_at, not_before);
		ujobs_lane_add(o->lane, item, now);
	}
	else
		ujobs_wakeup_rescan_now();	/* adopted: only the rows know its lane */
	(void) hash_search(outstanding, &id, HASH_REMOVE, NULL);
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
