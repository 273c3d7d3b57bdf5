/*
 * step.h: a remembered part of a durable job as C types.
 */
#ifndef UJOBS_MODEL_STEP_H
#define UJOBS_MODEL_STEP_H

#include "postgres.h"

#include "datatype/timestamp.h"

/* job_step.status, as stored. */
typedef enum UjobsStepStatus
{
	UJOBS_STEP_COMPLETED = 'c',
	UJOBS_STEP_SLEEPING = 's',
	UJOBS_STEP_WAITING = 'w',
	UJOBS_STEP_FAILED = 'f'		/* run again by the next attempt */
} UjobsStepStatus;

/*
 * A finished job whose steps sum to more bytes than this keeps them as rows:
 * jsonb holds no array beyond 256 MB.
 */
#define UJOBS_ARCHIVE_MAX 67108864
#define UJOBS_ARCHIVE_STEP 500		/* what a step counts besides its output and error */

#define UJOBS_MAX_STEP_BYTES 1000	/* of a step's name */
#define UJOBS_MAX_EVENT_BYTES 1000	/* of an event's name, and of a match */

/* A row of ujobs_internal.job_step.  What is 0 or NULL is NULL in the row. */
typedef struct UjobsStep
{
	int32		seq;			/* order in which steps were first recorded, from 1 */
	int32		attempts;
	UjobsStepStatus status;
	char	   *name;
	TimestampTz started_at;
	TimestampTz completed_at;
	TimestampTz wake_at;		/* end of a sleep, deadline of a wait (DT_NOEND: none) */
	TimestampTz since;			/* of a wait for an event */
	int64		event_id;
	int64		child_id;
	char	   *event;
	char	   *match;
	struct varlena *output;		/* jsonb as stored: perhaps a toast pointer */
	struct varlena *error;
} UjobsStep;

typedef enum UjobsStepKind
{
	UJOBS_STEP_KIND_COMMAND,	/* of step_run, step_begin or step_put */
	UJOBS_STEP_KIND_SLEEP,
	UJOBS_STEP_KIND_EVENT,
	UJOBS_STEP_KIND_CHILD
} UjobsStepKind;

static inline UjobsStepKind
ujobs_step_kind(const UjobsStep *step)
{
	if (step->child_id != 0)
		return UJOBS_STEP_KIND_CHILD;
	if (step->event != NULL)
		return UJOBS_STEP_KIND_EVENT;
	return step->wake_at != 0 ? UJOBS_STEP_KIND_SLEEP : UJOBS_STEP_KIND_COMMAND;
}

#endif							/* UJOBS_MODEL_STEP_H */
