/*
 * crash_guard.h: jobs that were in flight when the server crashed.
 *
 * Any of them may be the cause, and would crash the server again.  They run
 * one by one on probation, each for a while with nothing beside it, before
 * anything else does: a second crash then tells which of them it was.
 */
#ifndef UJOBS_WORKER_DISPATCH_CRASH_GUARD_H
#define UJOBS_WORKER_DISPATCH_CRASH_GUARD_H

#include "postgres.h"

#include "core/crashmark.h"
#include "core/slot.h"

/* So long a job on probation runs alone; then it is trusted, and others may start. */
#define UJOBS_PROBATION_US (INT64CONST(2) * USECS_PER_SEC)

/*
 * At the start, for each job of the crash marker: decides whether it goes on
 * probation, and whether its attempt counts.  running: an executor has it.
 */
extern void ujobs_crash_guard_examine(const UjobsCrashedJob *crashed, bool running);

/* Jobs that do not wait for a probation here, but are marked: a former dispatcher's. */
extern void ujobs_crash_guard_adopt(void);

/* The job waits for a probation run; of the ticket its id, definition, queue and tenant count. */
extern void ujobs_crash_guard_add(const UjobsTicket *of, TimestampTz due_at);

/* The job's run ended, whatever the outcome. */
extern void ujobs_crash_guard_end(int64 id);

/* Was any job in flight at a crash, since this process began? */
extern bool ujobs_crash_guard_is_active(void);

/* Does the job wait for its probation run? */
extern bool ujobs_crash_guard_has(int64 id);

/* The n-th of those that wait and are due, or NULL. */
extern UjobsTicket *ujobs_crash_guard_due(int n, TimestampTz now);

/* It begins its probation run; its row is gone; it ran alone for long enough. */
extern void ujobs_crash_guard_begin(int64 id);
extern void ujobs_crash_guard_forget(int64 id);
extern void ujobs_crash_guard_trust(int64 id);

/* When the next one comes due, or DT_NOEND. */
extern TimestampTz ujobs_crash_guard_next(TimestampTz now);

#endif							/* UJOBS_WORKER_DISPATCH_CRASH_GUARD_H */
