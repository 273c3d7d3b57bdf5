/*
 * intake.h: messages of a broker become jobs of this store.
 */
#ifndef UJOBS_RUN_INTAKE_H
#define UJOBS_RUN_INTAKE_H

#include "postgres.h"

#include "datatype/timestamp.h"

typedef enum UjobsIntakeFate
{
	UJOBS_INTAKE_JOB,			/* job_id is the new job, or the live one that holds its key */
	UJOBS_INTAKE_KNOWN,			/* it was taken in before */
	UJOBS_INTAKE_PARKED,		/* is in the inbox with the reason */
	UJOBS_INTAKE_LATER			/* not now: nothing was written, let it be delivered again */
} UjobsIntakeFate;

typedef struct UjobsIntake
{
	const char *message_id;
	const char *queue;			/* that it was taken from; its job goes there */
	int32		sink_id;
	const char *payload;		/* JSON text in UTF-8 */
	size_t		payload_size;
	UjobsIntakeFate fate;
	int64		job_id;
} UjobsIntake;

/*
 * Takes them in, all of one queue and sink, in the caller's transaction: jobs and inbox rows together, so
 * once it commits all but LATER may be acknowledged.  Set a short lock_timeout
 * before: a message whose key another transaction holds is then left for
 * later.  Raises what is no fault of a message (no disk, a cancel): then
 * nothing is known of any of them.
 */
extern void ujobs_intake_take(UjobsIntake *messages, int n, TimestampTz now);

/*
 * Tries parked messages again whose job is defined here by now, at most max,
 * in order of ids from after on ("" = the first).  In the caller's
 * transaction.  Returns the last id that was looked at (palloc'd), NULL when
 * there are no more.
 */
extern char *ujobs_intake_retry_parked(const char *after, int max, TimestampTz now);

#endif							/* UJOBS_RUN_INTAKE_H */
