/*
 * lane.h: the dispatcher's picture of one definition in one queue.
 *
 * One owner, one limit; its jobs by tenant (party.h), those that may start in
 * a heap: priority, then whose turn it is, then age.  Lanes are few and are
 * looked through one by one; parties may be many thousands and are not.
 */
#ifndef UJOBS_WORKER_DISPATCH_LANE_H
#define UJOBS_WORKER_DISPATCH_LANE_H

#include "worker/dispatch/party.h"

/* More tenants with jobs wait on disk until others are through. */
#define UJOBS_MAX_PARTIES 20000

typedef struct UjobsLane
{
	UjobsLaneKey key;
	uint32		queue_hash;
	pairingheap ready;			/* parties; an upper bound of how urgent each is */
	int64		waiting;		/* jobs of those in memory */
	UjobsParty *plain;			/* of the jobs without a tenant */
	bool		seen;			/* by the rescan at hand */
	bool		paused;			/* its queue is */

	/* Of its definition, as of the last load. */
	bool		loaded;
	bool		outside;		/* programs claim it: no executor takes it */
	Oid			role;			/* who must run it; InvalidOid: outside */
	int			batch;
	UjobsCap   *definition_cap;
	UjobsCap   *queue_cap;
} UjobsLane;

extern void ujobs_lane_init(void);

/* For loops: ujobs_lane_at(0) .. ujobs_lane_at(ujobs_lane_count() - 1); addresses are stable. */
extern int	ujobs_lane_count(void);
extern UjobsLane *ujobs_lane_at(int index);

/* NULL when it is not known. */
extern UjobsLane *ujobs_lane_find(const UjobsLaneKey *key);
extern UjobsLane *ujobs_lane_find_hash(int32 definition_id, uint32 queue_hash);

/* The tenant's party there, made when it is not known; NULL: there are too many. */
extern UjobsParty *ujobs_lane_party(UjobsLane *lane, uint64 tenant_hash);

/*
 * The party to be served next: none at a limit of its tenant.  NULL when there
 * is none.  Limits of the lane are the caller's business.
 */
extern UjobsParty *ujobs_lane_best(UjobsLane *lane, TimestampTz now);

/*
 * A hint: the row may start at due_at.  False when its lane is not known (a
 * rescan finds it).
 */
extern bool ujobs_lane_hint(const UjobsHint *hint, TimestampTz now);

/* The same for many rows: the windows are made to read them from disk. */
extern bool ujobs_lane_range(const UjobsHint *hint, TimestampTz now);

/* Looks for lanes that are not known yet and reads those: a fraction of a rescan. */
extern void ujobs_lane_discover(TimestampTz now);

/* Reads all lanes anew from the rows, tenants in the rounds that follow. */
extern void ujobs_lane_rescan(TimestampTz now);

/* Reads definitions and queues anew. */
extern void ujobs_lane_reload_definitions(void);

#endif							/* UJOBS_WORKER_DISPATCH_LANE_H */
