/*
 * party.h: the jobs of one tenant in one lane, or those of none.
 *
 * Two windows on the rows: `due` holds the most urgent ones that may start,
 * `timers` the soonest of those that may not yet.  Both are bounded; what
 * does not fit stays on disk, after `cursor` and after `horizon`, and is read
 * when there is room.  `woken` has jobs whose wait is over though their rows
 * are not due: no window on the rows finds those, so all of them stay here
 * until they are handed out, each once.
 *
 * A party with jobs that may start stands in its lane's heap, unless its
 * tenant is at a limit; then it waits with the tenant and costs nothing.
 * Functions that read rows need a transaction.
 */
#ifndef UJOBS_WORKER_DISPATCH_PARTY_H
#define UJOBS_WORKER_DISPATCH_PARTY_H

#include "lib/ilist.h"
#include "lib/pairingheap.h"

#include "model/heap.h"
#include "store/dispatch_store.h"
#include "worker/dispatch/limit.h"

#define UJOBS_PARTY_WINDOW 4096 /* of jobs without a tenant */
#define UJOBS_PARTY_WINDOWS 65536	/* what all tenants share */

struct UjobsLane;

typedef struct UjobsParty
{
	struct UjobsLane *lane;
	uint64		tenant_hash;	/* 0 = none */
	char	   *tenant;			/* "" = none; NULL: not known yet, and not needed so far */
	UjobsCap   *cap;			/* NULL without a tenant */
	UjobsHeap	due;
	UjobsHeap	timers;
	UjobsHeap	woken;
	bool		more;			/* due rows after cursor are on disk */
	UjobsCursor cursor;
	TimestampTz horizon;		/* later rows are on disk only */
	int64		some_id;		/* a row of it, by which its name is found */
	int			out;			/* tickets of it, and grants */
	bool		stale;			/* to be read anew from the rows */
	bool		seen;			/* by the rescan at hand */

	/* Its place in the lane's heap, by what its first job was then. */
	bool		ready;
	bool		blocked;		/* it waits with its tenant */
	pairingheap_node ready_node;
	dlist_node	blocked_node;
	UjobsHeapItem first;
	uint64		turn;
	int			counted;		/* jobs of it in lane->waiting */

	/* Its place among those that want to be looked at. */
	bool		timed;
	pairingheap_node timed_node;
	TimestampTz next;
	bool		low;			/* a window wants rows from disk */
	dlist_node	low_node;
} UjobsParty;

extern void ujobs_party_init(void);

/* Its name, once it is known. */
extern void ujobs_party_know(UjobsParty *party, const char *tenant);

extern UjobsParty *ujobs_party_create(struct UjobsLane *lane, uint64 tenant_hash, const char *tenant);

/* Not if anybody holds a pointer: out is 0, and it is empty. */
extern void ujobs_party_free(UjobsParty *party);
extern bool ujobs_party_is_empty(const UjobsParty *party);

/* All parties of tenants. */
extern int	ujobs_party_count(void);

/* Jobs that may start: how many are in memory, the most urgent, and take that one out. */
static inline int
ujobs_party_waiting(const UjobsParty *party)
{
	return party->due.size + party->woken.size;
}

extern const UjobsHeapItem *ujobs_party_top(const UjobsParty *party);
extern UjobsHeapItem ujobs_party_pop(UjobsParty *party);

/* A row may start at item.due_at: a hint, one that comes back, or one whose wait is over. */
extern void ujobs_party_add(UjobsParty *party, UjobsHeapItem item, TimestampTz now);

/* Rows from this one on may start: they are read from disk. */
extern void ujobs_party_range(UjobsParty *party, UjobsHeapItem first, TimestampTz now);

/* Reads its windows anew; or empties them, there are no rows. */
extern void ujobs_party_reread(UjobsParty *party, TimestampTz now);
extern void ujobs_party_clear(UjobsParty *party);

/* ---- its place in the lane ---- */

/* Something changed: puts it where it belongs. */
extern void ujobs_party_place(UjobsParty *party);

/* Its tenant is at a limit. */
extern void ujobs_party_block(UjobsParty *party);

/* How many are. */
extern int	ujobs_party_blocked(void);

/* Tenants that have room again: their parties take their places. */
extern void ujobs_party_unblock(TimestampTz now);

/* Which one is served first: priority, then whose turn it is, then age.  < 0: a. */
extern int	ujobs_party_compare(const UjobsParty *a, const UjobsParty *b);

/* The lane's heap is in this order, by what each was when it was placed. */
extern int	ujobs_party_order(const pairingheap_node *a, const pairingheap_node *b, void *arg);

/* When its tenant was last served. */
extern uint64 ujobs_party_turn(const UjobsParty *party);

/* Is it still this tenant's turn as it was then? */
extern bool ujobs_party_keeps_turn(const UjobsParty *party);

/* It is served: its tenant goes to the end of the line. */
extern void ujobs_party_served(UjobsParty *party);

/* ---- all of them ---- */

/* Moves what came due from timers to due. */
extern void ujobs_party_fire_all(TimestampTz now);

/*
 * Reads what windows want from disk, some of it at a time.  Opens the
 * transaction that it needs with `begin`; true: call `commit` after it.
 */
extern bool ujobs_party_refill_all(TimestampTz now, void (*begin) (void));

/* The instant by which one is to be looked at, or DT_NOEND. */
extern TimestampTz ujobs_party_next(void);

#endif							/* UJOBS_WORKER_DISPATCH_PARTY_H */
