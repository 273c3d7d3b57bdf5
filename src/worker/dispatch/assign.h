/*
 * assign.h: which job goes to whom now.  The only part that knows all others.
 */
#ifndef UJOBS_WORKER_DISPATCH_ASSIGN_H
#define UJOBS_WORKER_DISPATCH_ASSIGN_H

#include "core/shmem.h"

/*
 * Of all parts; takes over what a former dispatcher handed out; then examines
 * the jobs of the crash marker.
 */
extern void ujobs_assign_init(UjobsArea *area);
extern void ujobs_assign_adopt(void);
extern void ujobs_assign_examine_crash(void);

/* ---- one round, in this order ---- */

/* What executors finished, whose process began or ended. */
extern void ujobs_assign_look_at_executors(TimestampTz now);

/* A hint that concerns a job; false when its lane is not known. */
extern bool ujobs_assign_hint(const UjobsHint *hint, TimestampTz now);

/* What sessions with claims told; after the hints. */
extern void ujobs_assign_look_at_claims(TimestampTz now);

/* Reads all lanes and leases anew; looks at all waits.  Both need a transaction. */
extern void ujobs_assign_rescan(TimestampTz now);
extern void ujobs_assign_look_at_all_waits(TimestampTz now);

/* Moves what came due; are rows to be read?  Reads them; needs a transaction. */
extern bool ujobs_assign_wants_rows(TimestampTz now);
extern void ujobs_assign_read_rows(TimestampTz now);

/* Hands out as much as limits and rings allow, and starts executors where work waits. */
extern void ujobs_assign_round(TimestampTz now);

/*
 * Answers the claims that can be answered, in the order in which they asked.
 * uncertain: hints were lost, so there may be more to claim than is known, and
 * no claim is told yet that there is nothing.
 */
extern void ujobs_assign_answer_claims(bool uncertain);

/* The instant by which the next round must be, or DT_NOEND. */
extern TimestampTz ujobs_assign_next(TimestampTz now);

/* ---- stop ---- */

/* Takes back all that was not begun and asks every executor to leave. */
extern void ujobs_assign_dismiss(void);

#endif							/* UJOBS_WORKER_DISPATCH_ASSIGN_H */
