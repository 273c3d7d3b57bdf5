/*
 * match.h: waits that are over: events, children, and who is woken by them.
 *
 * Hints of both sides are gathered and looked at together once a round, each
 * kind with a snapshot taken after its hints were: so whichever of publisher
 * and waiter committed last, its look finds the other.
 */
#ifndef UJOBS_WORKER_DISPATCH_MATCH_H
#define UJOBS_WORKER_DISPATCH_MATCH_H

#include "core/shmem.h"

extern void ujobs_match_init(UjobsArea *area);

/* A hint of kind EVENT, WAIT or ENDED. */
extern void ujobs_match_note(const UjobsHint *hint);

/* The job ran while its wait was found to be over: look again what it waits for now. */
extern void ujobs_match_again(int64 job_id);

/* Is there anything to look at? */
extern bool ujobs_match_is_pending(void);

/* Looks, and hands the jobs to their lanes.  Needs a transaction. */
extern void ujobs_match_round(TimestampTz now);

/* The same for all waits, after hints were lost.  Needs a transaction. */
extern void ujobs_match_everything(TimestampTz now);

#endif							/* UJOBS_WORKER_DISPATCH_MATCH_H */
