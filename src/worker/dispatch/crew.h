/*
 * crew.h: the executors of this database, followed.
 *
 * Limits are exact because an executor runs its tickets one after another: a
 * limit of n allows tickets under it with at most n executors at a time, and
 * ujobs.max_running executors of a database may have any at all (limit.h).
 */
#ifndef UJOBS_WORKER_DISPATCH_CREW_H
#define UJOBS_WORKER_DISPATCH_CREW_H

#include "core/slot.h"
#include "worker/dispatch/lane.h"

extern void ujobs_crew_init(UjobsArea *area);

/* Takes over executors that outlived a former dispatcher. */
extern void ujobs_crew_adopt(void);

/* Reads what executors finished, who died, who was born.  True when anything changed. */
extern bool ujobs_crew_sync(TimestampTz now);

/* The job left the live table: interrupt it. */
extern void ujobs_crew_cancel(int64 id);

/* Takes back up to max tickets that an executor has not begun. */
extern void ujobs_crew_reclaim(int index, int max, TimestampTz now);

/* Takes back tickets behind a slow job. */
extern void ujobs_crew_reclaim_slow(TimestampTz now);

/* Limits changed. */
extern void ujobs_crew_follow_limits(TimestampTz now);

/* The instant by which the dispatcher must look again, or DT_NOEND. */
extern TimestampTz ujobs_crew_next(TimestampTz now);

/* Stop: take back all that was not begun and tell everybody to leave. */
extern void ujobs_crew_dismiss(void);

/* Executors of this database that are alive or being born. */
extern int	ujobs_crew_size(void);

/* SIGTERM to those that are still there: their jobs are given back. */
extern void ujobs_crew_terminate(void);

/* For recruit: a new executor; one that idles with another role (-1: none); is one of the role being born? */
extern void ujobs_crew_born(int index, uint32 generation, Oid role);
extern int	ujobs_crew_idle_of_other_role(Oid role);
extern bool ujobs_crew_starting(Oid role);

#endif							/* UJOBS_WORKER_DISPATCH_CREW_H */
