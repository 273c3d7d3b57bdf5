/*
 * trial.h: one attempt inside a client's transaction.
 */
#ifndef UJOBS_RUN_TRIAL_H
#define UJOBS_RUN_TRIAL_H

#include "model/job.h"

typedef struct UjobsTrial
{
	UjobsOutcomeKind outcome;	/* NOT_OURS: nothing happened */
	TimestampTz due_at;			/* of RETRY and SUSPENDED */
	const char *error;			/* the error's message, or the reason; NULL = none */
} UjobsTrial;

/*
 * Runs the handler in a subtransaction, as the current user, who must be the
 * definition's owner, and settles the outcome in the transaction around it.
 * job->attempt is the running one; the caller holds the row's lock.  Memory
 * from the current context.
 *
 * A handler's error is an outcome; a cancel of the client's statement is
 * raised again.
 */
extern void ujobs_trial_run(const UjobsJob *job, UjobsTrial *trial);

#endif							/* UJOBS_RUN_TRIAL_H */
