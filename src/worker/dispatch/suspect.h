/*
 * suspect.h: jobs that were running when the server crashed.
 *
 * They run one by one, each for a while with nothing beside it, before
 * anything else does: a second crash then tells which of them it was.
 */
#ifndef UJOBS_WORKER_DISPATCH_SUSPECT_H
#define UJOBS_WORKER_DISPATCH_SUSPECT_H

#include "postgres.h"

#include "core/slot.h"

/* Of the ticket the job and whose it is count. */
extern void ujobs_suspect_add(const UjobsTicket *of, TimestampTz due_at);

/* The job is not one to wait for a trial, but was one: a former dispatcher's, or found innocent. */
extern void ujobs_suspect_adopt(void);

/* It came to its end, whatever that was. */
extern void ujobs_suspect_ended(int64 id);

/* Is it waiting for its turn? */
extern bool ujobs_suspect_waits(int64 id);

/* Starts the next one when it may.  True: nothing else is to be started now. */
extern bool ujobs_suspect_serve(TimestampTz now);

/* When the next one comes due, or DT_NOEND. */
extern TimestampTz ujobs_suspect_next(TimestampTz now);

#endif							/* UJOBS_WORKER_DISPATCH_SUSPECT_H */
