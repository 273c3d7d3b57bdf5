/*
 * waits.h: suspended jobs whose wait is over: by events, or by ends of jobs
 * that they wait for.
 *
 * Hints of both sides are gathered and looked at together once a round, each
 * kind with a snapshot taken after its hints were: so whichever of publisher
 * and waiter committed last, its look finds the other.
 */
#ifndef UJOBS_WORKER_DISPATCH_WAITS_H
#define UJOBS_WORKER_DISPATCH_WAITS_H

#include "core/shmem.h"
#include "store/match_store.h"

extern void ujobs_wait_init(UjobsArea *area);

/* A hint of kind EVENT, WAIT or ENDED. */
extern void ujobs_wait_hint(const UjobsHint *hint);

/* The job ran while its wait was found to be over: look again what it waits for now. */
extern void ujobs_wait_again(int64 job_id);

/* Is there anything to look at? */
extern bool ujobs_wait_is_pending(void);

/*
 * Looks at one kind of what is pending: the jobs that may go on, in the
 * caller's context.  False when nothing is pending.  Needs a transaction.
 */
extern bool ujobs_wait_look(TimestampTz now, UjobsMatches *found);

/* The same for all waits, after hints were lost.  Needs a transaction. */
extern UjobsMatches ujobs_wait_look_at_all(TimestampTz now);

#endif							/* UJOBS_WORKER_DISPATCH_WAITS_H */
