/*
 * choice.h: which tenant queue is served next, for an executor or a claim.
 *
 * Decides and changes nothing, but that tenant queues at their tenant's limit
 * are set aside.
 */
#ifndef UJOBS_WORKER_DISPATCH_CHOICE_H
#define UJOBS_WORKER_DISPATCH_CHOICE_H

#include "core/claim.h"
#include "worker/dispatch/executors.h"
#include "worker/dispatch/lane.h"
#include "worker/dispatch/tenant_queue.h"

typedef struct UjobsChoice
{
	UjobsTenantQueue *best;
	UjobsTenantQueue *second;	/* of another lane, or one at its tenant's limit */
} UjobsChoice;

/* Has the executor space for units of one more ticket? */
static inline bool
ujobs_choice_has_units(const UjobsExecutor *executor)
{
	return executor->n_units <= UJOBS_EXECUTOR_UNITS - UJOBS_CAP_KINDS;
}

/*
 * May the lane's definition and queue give the executor (NULL: one that has
 * nothing) one job more?
 */
extern bool ujobs_choice_lane_allows(const UjobsLane *lane, const UjobsExecutor *executor);

/* The same, and its tenant. */
extern bool ujobs_choice_allows(UjobsTenantQueue *tq, const UjobsExecutor *executor,
								TimestampTz now);

/* By priority, round robin of tenants, and age. */
extern UjobsChoice ujobs_choice_for_executor(const UjobsExecutor *executor, TimestampTz now);

/* The same among the queues of a claim and the definitions that its role may work, or NULL. */
extern UjobsTenantQueue *ujobs_choice_for_claim(const UjobsClaimAsk *ask, TimestampTz now);

#endif							/* UJOBS_WORKER_DISPATCH_CHOICE_H */
