/*
 * turn.c: step 3 of the walk: which party is served first.
 *
 * Priority decides, then whose turn it is, then age.  A tenant's turn is the
 * number of the last time it was served, in whatever lane: who was served
 * longest ago is next, so a tenant with one job does not wait behind the many
 * of another.  Jobs without a tenant take turns as if they had one.
 */
#include "postgres.h"

#include "worker/dispatch/party.h"

static uint64 turns = 0;
static uint64 turn_of_none = 0;

uint64
ujobs_party_turn(const UjobsParty *party)
{
	return party->cap != NULL ? party->cap->turn : turn_of_none;
}

static int
compare_first(const UjobsHeapItem *a, uint64 turn_a, const UjobsHeapItem *b, uint64 turn_b)
{
	if (a->priority != b->priority)
		return a->priority < b->priority ? -1 : 1;
	if (turn_a != turn_b)
		return turn_a < turn_b ? -1 : 1;
	return ujobs_heap_compare(UJOBS_HEAP_BY_URGENCY, a, b);
}

/* A pairing heap has its greatest on top. */
int
ujobs_party_order(const pairingheap_node *a, const pairingheap_node *b, void *arg)
{
	const UjobsParty *x = pairingheap_const_container(UjobsParty, ready_node, a);
	const UjobsParty *y = pairingheap_const_container(UjobsParty, ready_node, b);

	return -compare_first(&x->first, x->turn, &y->first, y->turn);
}

int
ujobs_party_compare(const UjobsParty *a, const UjobsParty *b)
{
	return compare_first(ujobs_party_top(a), ujobs_party_turn(a), ujobs_party_top(b), ujobs_party_turn(b));
}

bool
ujobs_party_keeps_turn(const UjobsParty *party)
{
	return party->turn == ujobs_party_turn(party);
}

void
ujobs_party_served(UjobsParty *party)
{
	if (party->cap != NULL)
		party->cap->turn = ++turns;
	else
		turn_of_none = ++turns;
}
