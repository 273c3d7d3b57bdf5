/*
 * external_step.h: the remembered steps of a job that a program outside runs.
 *
 * In every function the job is held by ujobs_lease_hold in this transaction
 * (its row is locked, the lease is the caller's); there is no open identity
 * section.
 */
#ifndef UJOBS_RUN_EXTERNAL_STEP_H
#define UJOBS_RUN_EXTERNAL_STEP_H

#include "model/step.h"
#include "store/job_store.h"

/* The output of a completed step; false when it is not completed. */
extern bool ujobs_external_step_get(const UjobsJob *job, const char *name, Jsonb **output);

/* The step is completed with this output.  UJ012 when its name is that of a sleep or a wait. */
extern void ujobs_external_step_put(const UjobsJob *job, const char *name, Jsonb *output);

/*
 * A sleep begins (to end at wake_at), goes on, or is over.  True: the job is
 * suspended until *wake_at, and the lease is gone.
 */
extern bool ujobs_external_step_suspend(const UjobsJob *job, const char *name,
										TimestampTz *wake_at);

typedef enum UjobsExternalWait
{
	UJOBS_EXTERNAL_SUSPENDED,	/* and the lease is gone */
	UJOBS_EXTERNAL_RECEIVED,
	UJOBS_EXTERNAL_TIMEOUT
} UjobsExternalWait;

/* The same for a wait for an event. */
extern UjobsExternalWait ujobs_external_step_await(const UjobsJob *job, const char *name,
												   const UjobsStep *wait, Jsonb **payload);

#endif							/* UJOBS_RUN_EXTERNAL_STEP_H */
