/*
 * tenant_queue.h: the jobs of one tenant in one lane, or those of none.
 *
 * A window on the rows (window.h), and the jobs whose wait is over though
 * their rows are not due (`woken`): no window finds those, so all of them are
 * kept until they are handed out, each once.
 *
 * A tenant queue with jobs that may start is in its lane's heap, unless its
 * tenant is at a limit; then it waits in the tenant's list and costs nothing.
 * Of the tenant queues of one priority the tenant that was served longest ago
 * is next (round robin), whatever the lane; then the oldest job.
 *
 * Functions that read rows need a transaction.
 */
#ifndef UJOBS_WORKER_DISPATCH_TENANT_QUEUE_H
#define UJOBS_WORKER_DISPATCH_TENANT_QUEUE_H

#include "lib/ilist.h"
#include "lib/pairingheap.h"

#include "worker/dispatch/lane.h"
#include "worker/dispatch/window.h"

#define UJOBS_PLAIN_WINDOW 4096 /* of jobs without a tenant */
#define UJOBS_TENANT_WINDOWS 65536	/* what all tenants share */

typedef struct UjobsTenantQueue
{
	UjobsLane  *lane;
	uint64		tenant_hash;	/* 0 = none */
	char	   *tenant;			/* "" = none; NULL: not known yet, and not needed so far */
	UjobsCap   *cap;			/* NULL without a tenant */
	UjobsWindow window;
	UjobsHeap	woken;
	int64		some_id;		/* a row of it, by which its tenant's name is found */
	int			holders;		/* tickets and grants that point here */
	bool		stale;			/* to be read anew from the rows */
	bool		seen;			/* by the rescan that runs */

	/* Its place in the lane's heap, by what its first job was then. */
	bool		ready;
	bool		blocked;		/* it is in its tenant's list instead */
	pairingheap_node ready_node;
	dlist_node	blocked_node;
	UjobsHeapItem first;
	uint64		served;			/* ujobs_tenant_queue_served_at() */
	int			counted;		/* jobs of it in lane->waiting */

	/* Its place among those to be looked at. */
	bool		timed;
	pairingheap_node timed_node;
	TimestampTz next;
	bool		wants_rows;		/* its window is to be filled from disk */
	dlist_node	wants_rows_node;
} UjobsTenantQueue;

extern void ujobs_tenant_queue_init(void);

/* `tenant` is the name, or NULL when only the hash is known; "" and 0: jobs without a tenant. */
extern UjobsTenantQueue *ujobs_tenant_queue_create(UjobsLane *lane, uint64 tenant_hash,
												   const char *tenant);

/* Needs `holders` to be 0. */
extern void ujobs_tenant_queue_free(UjobsTenantQueue *tq);

/* No jobs in memory, and none known of on disk. */
extern bool ujobs_tenant_queue_is_empty(const UjobsTenantQueue *tq);

/* All tenant queues of tenants. */
extern int	ujobs_tenant_queue_count(void);

/* The rescan saw the tenant in the lane: its rows are read in the rounds that follow. */
extern void ujobs_tenant_queue_mark_seen(UjobsTenantQueue *tq, const char *tenant);

/* Jobs that may start: how many are in memory, the most urgent, and take that one out. */
static inline int
ujobs_tenant_queue_waiting(const UjobsTenantQueue *tq)
{
	return tq->window.due.size + tq->woken.size;
}

extern const UjobsHeapItem *ujobs_tenant_queue_top(const UjobsTenantQueue *tq);
extern UjobsHeapItem ujobs_tenant_queue_pop(UjobsTenantQueue *tq);

/* A row may start at item.due_at: a hint, one that comes back, or one whose wait is over. */
extern void ujobs_tenant_queue_add(UjobsTenantQueue *tq, UjobsHeapItem item, TimestampTz now);

/* Rows from this one on may start: they are read from disk. */
extern void ujobs_tenant_queue_add_range(UjobsTenantQueue *tq, UjobsHeapItem first,
										 TimestampTz now);

/* Reads its window anew; or empties it, there are no rows. */
extern void ujobs_tenant_queue_reread(UjobsTenantQueue *tq, TimestampTz now);
extern void ujobs_tenant_queue_clear(UjobsTenantQueue *tq);

/* ---- its place in the lane ---- */

/* Something changed: puts it where it belongs. */
extern void ujobs_tenant_queue_place(UjobsTenantQueue *tq);

/*
 * The tenant queue to be served next in the lane: none whose tenant is at a
 * limit.  NULL when there is none.  Limits of the lane are the caller's.
 */
extern UjobsTenantQueue *ujobs_tenant_queue_best(UjobsLane *lane, TimestampTz now);

/* How many wait for their tenant's limit. */
extern int	ujobs_tenant_queue_blocked(void);

/* Tenants below their limits again: their queues take their places. */
extern void ujobs_tenant_queue_unblock(TimestampTz now);

/* Which one is served first: priority, round robin, age.  < 0: a. */
extern int	ujobs_tenant_queue_compare(const UjobsTenantQueue *a, const UjobsTenantQueue *b);

/* The number of the last time that its tenant was served. */
extern uint64 ujobs_tenant_queue_served_at(const UjobsTenantQueue *tq);

/* It is served: its tenant is the last of the round robin. */
extern void ujobs_tenant_queue_serve(UjobsTenantQueue *tq);

/* ---- all of them ---- */

/* Moves what came due from timers to due. */
extern void ujobs_tenant_queue_fire_all(TimestampTz now);

/* Does a window want rows from disk?  Fills some of them; needs a transaction. */
extern bool ujobs_tenant_queue_wants_rows(void);
extern void ujobs_tenant_queue_refill_some(TimestampTz now);

/* The instant by which one is to be looked at, or DT_NOEND. */
extern TimestampTz ujobs_tenant_queue_next(void);

#endif							/* UJOBS_WORKER_DISPATCH_TENANT_QUEUE_H */
