/*
 * grant.h: jobs of programs outside, as the dispatcher sees them.
 *
 * A job is in the book from the moment it is granted to a claim until its
 * lease is over, and counts as running all that time.  Rows say what is
 * leased; grants whose transaction has not ended stand in shared memory
 * (core/claim.h), so a dispatcher that begins anew knows both.
 */
#ifndef UJOBS_WORKER_DISPATCH_GRANT_H
#define UJOBS_WORKER_DISPATCH_GRANT_H

#include "core/shmem.h"
#include "worker/dispatch/lane.h"

extern void ujobs_grant_init(UjobsArea *area);

/* Before hints are taken: who asks later is answered in a later round, with what was committed before. */
extern void ujobs_grant_begin_round(void);

/* Takes note of the fates that sessions told.  Before any of the following, in each round. */
extern void ujobs_grant_sync(TimestampTz now);

/* Is the job in the book?  Then its hints, of kind JOB or GONE, go here: the rows say whether its lease is over. */
extern bool ujobs_grant_has(int64 id);
extern void ujobs_grant_hint(const UjobsHint *hint);

/* Its wait was found to be over while it is in the book: look again when it comes back. */
extern void ujobs_grant_match_again(int64 id);

/* Are there hints to look into?  The look needs a transaction. */
extern bool ujobs_grant_is_pending(void);
extern void ujobs_grant_look(TimestampTz now);

/* Compares the book with all leases; with the rescan of lanes, in its transaction. */
extern void ujobs_grant_rescan(TimestampTz now);

/*
 * Answers the claims that can be answered, in the order in which they asked.
 * uncertain: hints were lost, so there may be more to claim than is known, and
 * nobody is told yet that there is nothing.
 */
extern void ujobs_grant_serve(bool uncertain);

/* How many count as running. */
extern int	ujobs_grant_total(void);

#endif							/* UJOBS_WORKER_DISPATCH_GRANT_H */
