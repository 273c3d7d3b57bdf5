/*
 * hand.h: one executor as the dispatcher sees it, and the jobs that executors have.
 *
 * Private to the dispatcher's files: crew.c follows the executors, admit.c
 * gives them work, both through what stands here.
 */
#ifndef UJOBS_WORKER_DISPATCH_HAND_H
#define UJOBS_WORKER_DISPATCH_HAND_H

#include "utils/hsearch.h"

#include "core/slot.h"
#include "worker/dispatch/lane.h"

#define UJOBS_SLOW_US 5000		/* a job that runs so long is slow: nothing waits behind it */
#define UJOBS_MAX_DEATHS 5		/* of executors; then their job is blamed */
#define UJOBS_HAND_UNITS 48		/* limits that one ring may be under; more only when limits are new */

/* A unit of a limit that an executor holds, and how many of its tickets are under it. */
typedef struct UjobsHandUnit
{
	UjobsCap   *cap;
	int			count;
} UjobsHandUnit;

/* One executor; its tickets in the order they were pushed. */
typedef struct UjobsHand
{
	bool		used;
	uint32		generation;
	Oid			role;
	UjobsSlotState state;
	bool		leaving;		/* asked to go: it begins nothing more */
	uint64		done;			/* of the slot's `taken`, as of the last sync */
	uint32		head;
	uint32		tail;
	UjobsTicket ticket[UJOBS_RING_SIZE];
	UjobsHandUnit *unit;
	int			n_units;
	int			unit_capacity;
	double		job_us;			/* moving average of a ticket's time, its share of the commit included */
	double		work_us;		/* the same without the commit */
	uint64		worked;			/* of the slot's work_us, as of the last sync */
	int			batch;			/* of the last definition it was given */
	TimestampTz synced;			/* when it last finished a job or began after idling */
} UjobsHand;

/* A job that an executor has. */
typedef struct UjobsOutstanding
{
	int64		id;
	UjobsParty *party;			/* NULL: adopted, its lane is found at the next rescan */
	UjobsHeapItem item;
	bool		again;			/* a hint came while it was with an executor */
	bool		match_again;	/* its wait was over while it was with an executor */
	bool		cancelled;
	UjobsHint	hint;
} UjobsOutstanding;

extern void ujobs_hand_init(void);

/* By slot; check `used`. */
extern UjobsHand *ujobs_hand_at(int slot);
extern HTAB *ujobs_hand_outstanding(void);

/* Tickets held, the one running included. */
static inline uint32
ujobs_hand_load(const UjobsHand *hand)
{
	return hand->tail - hand->head;
}

/* Does it hold a unit of this limit? */
extern bool ujobs_hand_holds(const UjobsHand *hand, const UjobsCap *cap);

/* A ticket goes to it, or leaves it: units are taken, or returned. */
extern void ujobs_hand_take_units(UjobsHand *hand, const UjobsTicket *ticket);
extern void ujobs_hand_return_units(UjobsHand *hand, const UjobsTicket *ticket);

/* Limits changed: all units of all executors, counted from their tickets. */
extern void ujobs_hand_recount(void);

/* The slot is nobody's any more; it holds no ticket. */
extern void ujobs_hand_clear(UjobsHand *hand);

/* A ticket goes out; is finished with; comes back unrun (not to start before that instant). */
extern void ujobs_hand_remember(const UjobsTicket *ticket, UjobsParty *party, UjobsHeapItem item);
extern void ujobs_hand_forget(int64 id, TimestampTz now);
extern void ujobs_hand_put_back(int64 id, TimestampTz not_before, TimestampTz now);

/* A ticket that comes back in another way. */
extern void ujobs_hand_drop(int64 id);

/* Is the job with an executor?  Then a hint is kept until it comes back. */
extern bool ujobs_hand_has(int64 id);
extern void ujobs_hand_again(const UjobsHint *hint);

/* The same for a wait that is over: look what it waits for when it comes back. */
extern void ujobs_hand_match_again(int64 id);

/* How often an executor died with the job in its hand. */
extern int	ujobs_hand_deaths(int64 id);
extern int	ujobs_hand_count_death(int64 id);
extern void ujobs_hand_clear_deaths(int64 id);

#endif							/* UJOBS_WORKER_DISPATCH_HAND_H */
