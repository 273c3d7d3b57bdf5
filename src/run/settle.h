/*
 * settle.h: from an error to what happens to the job.
 */
#ifndef UJOBS_RUN_SETTLE_H
#define UJOBS_RUN_SETTLE_H

#include "core/noreturn.h"
#include "store/job_store.h"

/* last_error as stored: sqlstate, name, message, detail, hint, context, each capped. */
extern Jsonb *ujobs_settle_error(const ErrorData *error);

/*
 * Decides a failed attempt.  definition may be NULL (gone: cancelled).  Fills *verdict; memory from the
 * current context.
 */
extern void ujobs_settle_failure(const UjobsDefinition *definition, const UjobsJob *job,
								 const ErrorData *error, TimestampTz now, UjobsVerdict *verdict);

/* In all of them job->attempt is the running attempt. */

/* The job cannot run now: handler or owner missing (UJ025).  Looked at again later. */
extern void ujobs_settle_missing(const UjobsJob *job, const char *what, TimestampTz now,
								 UjobsVerdict *verdict);

/* The definition was dropped, or never was. */
extern void ujobs_settle_dropped(const UjobsJob *job, UjobsVerdict *verdict);

/* The row is gone or changed: raises, so that nothing of the attempt happened. */
pg_noreturn extern void ujobs_settle_not_ours(void);

/* A made-up error, for failures that are not exceptions of the handler. */
extern ErrorData *ujobs_settle_make_error(int sqlerrcode, const char *message);

/* One line in the server's log if the job is a dead letter now.  In a transaction. */
extern void ujobs_settle_log(const UjobsJob *job, const UjobsVerdict *verdict);

#endif							/* UJOBS_RUN_SETTLE_H */
