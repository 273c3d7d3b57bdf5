/*
 * queues.h: all lanes and tenant queues: where a job belongs, and what the
 * rows say is there.
 */
#ifndef UJOBS_WORKER_DISPATCH_QUEUES_H
#define UJOBS_WORKER_DISPATCH_QUEUES_H

#include "worker/dispatch/tenant_queue.h"

/* Of limits, lanes and tenant queues, too. */
extern void ujobs_queue_init(UjobsArea *area);

/*
 * The tenant's queue in the lane, made when it is not known.  NULL: there are
 * too many; a rescan finds it.
 */
extern UjobsTenantQueue *ujobs_queue_of(UjobsLane *lane, uint64 tenant_hash);

/* The same by names; looks for a lane that is not known yet.  Needs a transaction. */
extern UjobsTenantQueue *ujobs_queue_find(int32 definition_id, const char *queue,
										  uint64 tenant_hash, TimestampTz now);

/*
 * A hint: the row may start at due_at; or a range of rows from it on.  False
 * when the lane is not known: ujobs_queue_discover finds it.
 */
extern bool ujobs_queue_hint(const UjobsHint *hint, TimestampTz now);

/*
 * Looks for lanes that are not known yet and reads those: a fraction of a
 * rescan.  Needs a transaction.
 */
extern void ujobs_queue_discover(TimestampTz now);

/* Reads all lanes anew from the rows, tenants in the rounds that follow.  Needs a transaction. */
extern void ujobs_queue_rescan(TimestampTz now);

/* Due jobs in memory that an executor of this role could have now by the limits of their lanes. */
extern int64 ujobs_queue_waiting_for(Oid role);

/*
 * May jobs wait for a limit, so that an executor that frees a unit is to wake
 * the dispatcher at once?
 */
extern bool ujobs_queue_waits_for_limit(void);

#endif							/* UJOBS_WORKER_DISPATCH_QUEUES_H */
