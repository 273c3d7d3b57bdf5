/*
 * recruit.h: starting executors, within ujobs.max_workers of the cluster.
 */
#ifndef UJOBS_WORKER_DISPATCH_RECRUIT_H
#define UJOBS_WORKER_DISPATCH_RECRUIT_H

#include "postgres.h"

#include "datatype/timestamp.h"

/*
 * Jobs of the role wait.  needed: it has no executor at all, so one is owed
 * to it now; otherwise one is started when the wait has lasted a little.
 * Makes room by asking an idle executor of another role or database to leave.
 */
extern void ujobs_recruit(Oid role, bool needed, TimestampTz now);

/*
 * Did the process that was to fill this slot, taken at `since`, die before it
 * arrived?  One that a former dispatcher registered is given a few seconds.
 */
extern bool ujobs_recruit_is_lost(int slot, TimestampTz since, TimestampTz now);

/* Follow-up from the crew: the executor of this role arrived, or failed to. */
extern void ujobs_recruit_arrived(Oid role);
extern void ujobs_recruit_failed(Oid role, TimestampTz now);

/* No role waits: forget how long they have. Called once per round before recruiting. */
extern void ujobs_recruit_round(void);

/* When to look again, or DT_NOEND. */
extern TimestampTz ujobs_recruit_next(void);

#endif							/* UJOBS_WORKER_DISPATCH_RECRUIT_H */
