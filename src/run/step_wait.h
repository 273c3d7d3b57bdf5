/*
 * step_wait.h: steps that suspend the job: sleeps, waits for events and for jobs.
 */
#ifndef UJOBS_RUN_STEP_WAIT_H
#define UJOBS_RUN_STEP_WAIT_H

#include "run/step.h"

typedef struct UjobsStepSleep
{
	const char *name;			/* NULL: derived from what */
	const char *what;
	TimestampTz wake_at;
	const char *fault;			/* of its duration, a sentence; only a sleep that begins asks for it */
} UjobsStepSleep;

extern void ujobs_step_wait_sleep(const UjobsStepCall *call, const UjobsStepSleep *sleep);

typedef struct UjobsStepWait
{
	const char *event;
	const char *match;			/* NULL: any */
	int64		child_id;		/* or a job */
	TimestampTz deadline;		/* DT_NOEND: none */
	const char *fault;			/* of its timeout, a sentence; only a wait that begins asks for it */
	bool		required;
} UjobsStepWait;

/* Raises UJ003 for a name or a match that no event has. */
extern void ujobs_step_wait_check_event(const char *event, const char *match);

/*
 * The payload or outcome; NULL: the deadline came first.  Raises UJ018 for a
 * job that is not there, UJ014 when it came too late and is required.
 */
extern Jsonb *ujobs_step_wait(const UjobsStepCall *call, const char *name,
							  const UjobsStepWait *wait);

#endif							/* UJOBS_RUN_STEP_WAIT_H */
