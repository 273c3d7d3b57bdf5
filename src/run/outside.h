/*
 * outside.h: an attempt that a program outside makes: how it ends, and its steps.
 *
 * In every function the job is held by ujobs_lease_hold in this transaction
 * (its row is locked, the lease is the caller's); there is no open identity
 * section.  Ends write what the end of an attempt inside writes.
 */
#ifndef UJOBS_RUN_OUTSIDE_H
#define UJOBS_RUN_OUTSIDE_H

#include "model/step.h"
#include "store/job_store.h"
#include "store/lease_store.h"

/* Done, with this result (NULL: SQL NULL). */
extern void ujobs_outside_done(UjobsJob *job, int64 lease, Jsonb *result);

typedef enum UjobsDeadLetter
{
	UJOBS_DEAD_LETTER_BY_POLICY,
	UJOBS_DEAD_LETTER_NOW,
	UJOBS_DEAD_LETTER_NEVER		/* an exhausted job ends cancelled, as with deadLetter false */
} UjobsDeadLetter;

typedef struct UjobsNack
{
	const char *error;			/* NULL: none was given */
	int64		delay;			/* us; -1: by the policy */
	bool		counts;			/* the attempt was one */
	bool		park;			/* until delay is over, or somebody retries it */
	UjobsDeadLetter dead_letter;
} UjobsNack;

/* Failed or given back: the new state, as users read it. */
extern const char *ujobs_outside_nack(UjobsJob *job, const UjobsNack *nack);

/* The lease ran out: the attempt has failed. */
extern void ujobs_outside_expire(UjobsJob *job, const UjobsLease *lease);

/* ---- steps ---- */

/* The output of a completed step; false when it is not completed. */
extern bool ujobs_outside_step_get(const UjobsJob *job, const char *name, Jsonb **output);

/* The step is completed with this output.  UJ012 when its name is that of a sleep or a wait. */
extern void ujobs_outside_step_put(const UjobsJob *job, const char *name, Jsonb *output);

/*
 * A sleep begins (to end at wake_at), goes on, or is over.  True: the job is
 * suspended until *wake_at, and the lease is gone.
 */
extern bool ujobs_outside_step_suspend(const UjobsJob *job, const char *name, TimestampTz *wake_at);

typedef enum UjobsOutsideWait
{
	UJOBS_OUTSIDE_SUSPENDED,	/* and the lease is gone */
	UJOBS_OUTSIDE_RECEIVED,
	UJOBS_OUTSIDE_TIMEOUT
} UjobsOutsideWait;

/* The same for a wait for an event. */
extern UjobsOutsideWait ujobs_outside_step_await(const UjobsJob *job, const char *name, const UjobsStep *wait,
												 Jsonb **payload);

#endif							/* UJOBS_RUN_OUTSIDE_H */
