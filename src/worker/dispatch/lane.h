/*
 * lane.h: the dispatcher's picture of one definition in one queue.
 *
 * One owner, one limit.  The jobs of a lane are in its tenant queues
 * (tenant_queue.h); those that may start are in the heap `ready`.  Lanes are
 * few and are looked through one by one; tenant queues may be many thousands
 * and are not.
 */
#ifndef UJOBS_WORKER_DISPATCH_LANE_H
#define UJOBS_WORKER_DISPATCH_LANE_H

#include "lib/pairingheap.h"

#include "store/dispatch_store.h"
#include "worker/dispatch/limit.h"

struct UjobsTenantQueue;

typedef struct UjobsLane
{
	UjobsLaneKey key;
	uint32		queue_hash;
	pairingheap ready;			/* tenant queues; an upper bound of how urgent each is */
	int64		waiting;		/* jobs of those in memory */
	struct UjobsTenantQueue *plain; /* of the jobs without a tenant */
	bool		seen;			/* by the rescan that runs */
	bool		paused;			/* its queue is */

	/* Of its definition, as of the last load. */
	bool		loaded;
	bool		outside;		/* programs claim its jobs: no executor takes them */
	Oid			role;			/* the role whose executors run it; InvalidOid: outside */
	int			batch;
	UjobsCap   *definition_cap;
	UjobsCap   *queue_cap;
} UjobsLane;

extern void ujobs_lane_init(void);

/* For loops: ujobs_lane_at(0) .. ujobs_lane_at(ujobs_lane_count() - 1); addresses are stable. */
extern int	ujobs_lane_count(void);
extern UjobsLane *ujobs_lane_at(int index);

/* Made when it is not known: then `ready` has no order and `plain` is NULL. */
extern UjobsLane *ujobs_lane_get(const UjobsLaneKey *key);

/* NULL when it is not known. */
extern UjobsLane *ujobs_lane_find(int32 definition_id, const char *queue);
extern UjobsLane *ujobs_lane_find_hash(int32 definition_id, uint32 queue_hash);

/*
 * May one more of the lane start, by the limits of its definition and queue,
 * beside all that run?
 */
static inline bool
ujobs_lane_allows(const UjobsLane *lane)
{
	return !lane->paused && lane->loaded &&
		ujobs_limit_is_free(lane->definition_cap) && ujobs_limit_is_free(lane->queue_cap);
}

/* Reads definitions and queues for the lanes from that one on.  Needs a transaction. */
extern void ujobs_lane_load(int first);

#endif							/* UJOBS_WORKER_DISPATCH_LANE_H */
