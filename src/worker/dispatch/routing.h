/*
 * routing.h: from a job's id to the part that has it: an executor, a program
 * outside, the crash guard, or its tenant queue.
 */
#ifndef UJOBS_WORKER_DISPATCH_ROUTING_H
#define UJOBS_WORKER_DISPATCH_ROUTING_H

#include "store/match_store.h"
#include "worker/dispatch/outstanding.h"

/* A hint of kind JOB, RANGE or GONE.  False when its lane is not known. */
extern bool ujobs_routing_hint(const UjobsHint *hint, TimestampTz now);

/* Is the job with an executor, a program or the crash guard?  Then it is not handed out. */
extern bool ujobs_routing_is_taken(const UjobsHeapItem *item);

/* These jobs need wait no longer.  Frees the array; needs a transaction. */
extern void ujobs_routing_wake(UjobsMatches matches, TimestampTz now);

/* These jobs came back: to their queues, or not; empties the list. */
extern void ujobs_routing_take_back(UjobsReturns *returns, TimestampTz now);

#endif							/* UJOBS_WORKER_DISPATCH_ROUTING_H */
