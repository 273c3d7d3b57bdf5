/*
 * hand.h: one executor as the dispatcher sees it, and the jobs that executors have.
 *
 * Private to the dispatcher's files: crew.c follows the executors, admit.c
 * gives them work, both through what stands here.
 */
#ifndef UJOBS_WORKER_HAND_H
#define UJOBS_WORKER_HAND_H

#include "utils/hsearch.h"

#include "core/slot.h"
#include "worker/lane.h"

#define UJOBS_SLOW_US 5000		/* a job that runs so long is slow: nothing waits behind it */
#define UJOBS_MAX_DEATHS 5		/* of executors; then their job is blamed */
#define UJOBS_HAND_KINDS 16		/* definitions that one ring may mix */

/* How many tickets of a definition an executor holds. */
typedef struct UjobsHandKind
{
	int32		definition_id;
	int			count;
} UjobsHandKind;

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
	UjobsHandKind kind[UJOBS_HAND_KINDS];
	int			n_kinds;
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
	UjobsLane  *lane;			/* NULL: adopted, its lane is found at the next rescan */
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

extern UjobsHandKind *ujobs_hand_kind(UjobsHand *hand, int32 definition_id);	/* NULL: none */
extern void ujobs_hand_kind_add(UjobsHand *hand, int32 definition_id);
extern void ujobs_hand_kind_remove(UjobsHand *hand, int32 definition_id);

/* How many executors hold tickets of the definition: its running jobs are at most so many. */
extern int	ujobs_hand_holders(int32 definition_id);

/* A ticket goes out; is finished with; comes back unrun (not to start before that instant). */
extern void ujobs_hand_remember(const UjobsTicket *ticket, UjobsLane *lane, UjobsHeapItem item);
extern void ujobs_hand_forget(int64 id, TimestampTz now);
extern void ujobs_hand_put_back(int64 id, TimestampTz not_before, TimestampTz now);

/* Is the job with an executor?  Then a hint is kept until it comes back. */
extern bool ujobs_hand_has(int64 id);
extern void ujobs_hand_again(const UjobsHint *hint);

/* The same for a wait that is over: look what it waits for when it comes back. */
extern void ujobs_hand_match_again(int64 id);

/* How often an executor died with the job in its hand. */
extern int	ujobs_hand_deaths(int64 id);
extern int	ujobs_hand_count_death(int64 id);
extern void ujobs_hand_clear_deaths(int64 id);

#endif							/* UJOBS_WORKER_HAND_H */
