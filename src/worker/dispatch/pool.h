/*
 * pool.h: how many executors there are: starting more, within
 * ujobs.max_workers of the cluster, and asking idle ones to leave.
 */
#ifndef UJOBS_WORKER_DISPATCH_POOL_H
#define UJOBS_WORKER_DISPATCH_POOL_H

#include "postgres.h"

#include "datatype/timestamp.h"

/*
 * Once a round, before the calls of ujobs_pool_grow: roles not named in the
 * last round wait for nothing.
 */
extern void ujobs_pool_begin_round(void);

/*
 * Jobs of the role wait.  needed: it has no executor at all, so it gets one
 * now; otherwise one is started when the wait has lasted a little.  When all
 * slots are taken an idle executor of another role or database is asked to
 * leave.
 */
extern void ujobs_pool_grow(Oid role, bool needed, TimestampTz now);

/* An executor of the role began its work, or ended before it did. */
extern void ujobs_pool_arrived(Oid role);
extern void ujobs_pool_failed(Oid role, TimestampTz now);

/* When to look again, or DT_NOEND. */
extern TimestampTz ujobs_pool_next(void);

#endif							/* UJOBS_WORKER_DISPATCH_POOL_H */
