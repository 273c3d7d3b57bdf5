/*
 * drain_attempt.h: one attempt inside a client's transaction.
 */
#ifndef UJOBS_RUN_DRAIN_ATTEMPT_H
#define UJOBS_RUN_DRAIN_ATTEMPT_H

#include "model/job.h"

typedef struct UjobsDrainAttempt
{
	UjobsOutcomeKind outcome;	/* NOT_OURS: nothing happened */
	TimestampTz due_at;			/* of RETRY and SUSPENDED */
	const char *error;			/* the error's message, or the reason; NULL = none */
} UjobsDrainAttempt;

/*
 * Runs the handler in a subtransaction, as the current user, who must be the
 * definition's owner, and settles the outcome in the transaction around it.
 * job->attempt is the running one; the caller holds the row's lock.  Memory
 * from the current context.
 *
 * A handler's error is an outcome; a cancel of the client's statement is
 * raised again.
 */
extern void ujobs_drain_attempt_run(const UjobsJob *job, UjobsDrainAttempt *attempt);

#endif							/* UJOBS_RUN_DRAIN_ATTEMPT_H */
