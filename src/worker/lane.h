/*
 * lane.h: the dispatcher's picture of one definition in one queue.
 *
 * Two windows on the rows: `due` holds the most urgent ones that may start,
 * `timers` the soonest of those that may not yet.  Both are bounded; what
 * does not fit stays on disk, after `cursor` and after `horizon`, and is read
 * when there is room.  `woken` has jobs whose wait is over though their rows
 * are not due: no window on the rows finds those, so all of them stay here
 * until they are handed out, each once.  Functions that read rows need a
 * transaction.
 */
#ifndef UJOBS_WORKER_LANE_H
#define UJOBS_WORKER_LANE_H

#include "model/heap.h"
#include "core/shmem.h"
#include "store/dispatch_store.h"

#define UJOBS_LANE_WINDOW 4096

typedef struct UjobsLane
{
	UjobsLaneKey key;
	UjobsHeap	due;
	UjobsHeap	timers;
	UjobsHeap	woken;
	bool		more;			/* due rows after cursor are on disk */
	UjobsCursor cursor;
	TimestampTz horizon;		/* later rows are on disk only */
	bool		seen;			/* by the rescan at hand */
	bool		paused;			/* its queue is */

	/* Of its definition, as of the last load. */
	bool		loaded;
	bool		outside;		/* programs claim it (grant.c): nothing to start here */
	Oid			role;			/* who must run it */
	int			concurrency;	/* 0 = no limit */
	int			batch;
} UjobsLane;

extern void ujobs_lane_init(void);

/* For loops: ujobs_lane_at(0) .. ujobs_lane_at(ujobs_lane_count() - 1); addresses are stable. */
extern int	ujobs_lane_count(void);
extern UjobsLane *ujobs_lane_at(int index);

/* NULL when it is not known. */
extern UjobsLane *ujobs_lane_find(const UjobsLaneKey *key);

/* Jobs that may start: how many are in memory, the most urgent, and take that one out. */
static inline int
ujobs_lane_waiting(const UjobsLane *lane)
{
	return lane->due.size + lane->woken.size;
}

extern const UjobsHeapItem *ujobs_lane_top(const UjobsLane *lane);
extern UjobsHeapItem ujobs_lane_pop(UjobsLane *lane);

/*
 * A hint: the row may start at due_at.  False when its lane is not known (a
 * rescan finds it).
 */
extern bool ujobs_lane_hint(const UjobsHint *hint, TimestampTz now);

/* The same for many rows: the windows are made to read them from disk. */
extern bool ujobs_lane_range(const UjobsHint *hint, TimestampTz now);

/* An admitted row comes back, is to be tried again at due_at, or its wait is over. */
extern void ujobs_lane_add(UjobsLane *lane, UjobsHeapItem item, TimestampTz now);

/* Moves what came due from timers to due. */
extern void ujobs_lane_fire(UjobsLane *lane, TimestampTz now);

/* Does a window want rows from disk? */
extern bool ujobs_lane_is_low(const UjobsLane *lane, TimestampTz now);

/* Reads them. */
extern void ujobs_lane_refill(UjobsLane *lane, TimestampTz now);

/* Looks for lanes that are not known yet and reads those: a fraction of a rescan. */
extern void ujobs_lane_discover(TimestampTz now);

/* Reads all lanes anew from the rows. */
extern void ujobs_lane_rescan(TimestampTz now);

/* Reads definitions and paused queues anew. */
extern void ujobs_lane_reload_definitions(void);

/* The instant of its next timer, or DT_NOEND. */
extern TimestampTz ujobs_lane_next(const UjobsLane *lane);

#endif							/* UJOBS_WORKER_LANE_H */
