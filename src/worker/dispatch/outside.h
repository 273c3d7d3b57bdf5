/*
 * outside.h: jobs of programs outside, as the dispatcher sees them.
 *
 * A job is known here from the moment it is granted to a claim until its
 * lease is over, and counts as running all that time.  Rows say what is
 * leased; grants whose transaction has not ended are in shared memory
 * (core/claim.h), so a dispatcher that begins anew knows both.
 */
#ifndef UJOBS_WORKER_DISPATCH_OUTSIDE_H
#define UJOBS_WORKER_DISPATCH_OUTSIDE_H

#include "core/claim.h"
#include "core/shmem.h"
#include "store/lease_store.h"
#include "worker/dispatch/outstanding.h"

extern void ujobs_outside_init(UjobsArea *area);

/*
 * Before hints are taken: a later claim is answered in a later round, with
 * what was committed before.
 */
extern void ujobs_outside_begin_round(void);

/* Takes note of the fates that sessions told.  Before any of the following, in each round. */
extern void ujobs_outside_sync(UjobsReturns *returns, TimestampTz now);

/*
 * Is the job granted or leased?  Then its hints, of kind JOB or GONE, go here:
 * the rows say whether its lease is over.
 */
extern bool ujobs_outside_has(int64 id);
extern void ujobs_outside_hint(const UjobsHint *hint);

/* Its wait was found to be over while it is here: look again when it comes back. */
extern void ujobs_outside_wait_is_over(int64 id);

/* Are there hints to look into?  Reads their rows; needs a transaction. */
extern bool ujobs_outside_is_pending(void);
extern void ujobs_outside_look(UjobsReturns *returns);

/*
 * Compares what is known with all leases.  Returns those (UjobsLeased *) that
 * were not known: the caller tells their tenant queues by
 * ujobs_outside_place, tq NULL when it cannot be known.  Needs a transaction.
 */
extern List *ujobs_outside_rescan(UjobsReturns *returns);
extern void ujobs_outside_place(const UjobsLeased *leased, UjobsTenantQueue *tq);

/* How many count as running. */
extern int	ujobs_outside_count(void);

/* ---- answering claims ---- */

/*
 * The places of the claims that ask, at most UJOBS_MAX_CLAIMS, those that
 * asked first first; returns their number.
 */
extern int	ujobs_outside_asking(int *places);

/* A copy of one; false when it does not ask any more. */
extern bool ujobs_outside_read(int place, UjobsClaim *copy);

/* The number-th job of an answer: from now on it counts as running. */
extern UjobsGrant ujobs_outside_grant(int place, int number, const UjobsTicket *ticket,
									  UjobsTenantQueue *tq, UjobsHeapItem item);

/* Gives the claim its grants; if it does not ask any more they come back. */
extern void ujobs_outside_answer(int place, const UjobsGrant *grants, int n, bool found,
								 UjobsReturns *returns);

#endif							/* UJOBS_WORKER_DISPATCH_OUTSIDE_H */
