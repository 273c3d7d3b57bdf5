/*
 * dispatch_store.h: what the dispatcher reads.  It never writes jobs.
 *
 * A lane is one definition in one queue.  Each function opens its own
 * identity section; the caller holds a transaction.
 */
#ifndef UJOBS_STORE_DISPATCH_STORE_H
#define UJOBS_STORE_DISPATCH_STORE_H

#include "core/identity.h"
#include "model/heap.h"
#include "model/job.h"

typedef struct UjobsLaneKey
{
	int32		definition_id;
	char		queue[NAMEDATALEN];
	const char *tenant;			/* whose rows are read; "" = those without one */
} UjobsLaneKey;

/* A place in a lane's order; rows after it are not in memory. */
typedef struct UjobsCursor
{
	int16		priority;
	TimestampTz due_at;
	int64		id;
} UjobsCursor;

/* The first lane after `key` that has rows (start: id PG_INT32_MIN, queue ""); false: none. */
extern bool ujobs_dispatch_next_lane(UjobsLaneKey *key);

/*
 * Up to max due rows after the cursor, best first; moves the cursor to the
 * last one read.  Fewer than max: all of them are read.
 */
extern int	ujobs_dispatch_due(const UjobsLaneKey *lane, UjobsCursor *cursor, TimestampTz now,
							   UjobsHeapItem *out, int max);

/*
 * The soonest rows that are not yet due, at most max per priority.  *horizon
 * is set to the instant up to which they are complete.
 */
extern List *ujobs_dispatch_future(const UjobsLaneKey *lane, TimestampTz now, int max,
								   TimestampTz *horizon);

/*
 * A tenant's rows, due or not, best first; fewer than max: these are all.
 */
extern int	ujobs_dispatch_tenant_rows(const UjobsLaneKey *lane, UjobsHeapItem *out, int max);

/* Up to max tenants (char *) that have rows in the lane, in order. */
extern List *ujobs_dispatch_tenants(const UjobsLaneKey *lane, int max);

/* Has the definition jobs without a tenant? */
extern bool ujobs_dispatch_has_plain(const UjobsLaneKey *lane);

/* The tenant of a live job, or NULL. */
extern char *ujobs_dispatch_tenant_of(int64 id);

/* A queue that was paused or limited. */
/* Those of the jobs that have no row any more (int64 *). */
extern List *ujobs_dispatch_gone(const int64 *ids, int n);

typedef struct UjobsQueueRow
{
	char		name[NAMEDATALEN];
	bool		paused;
	int			concurrency;	/* 0 = no limit, as the others */
	int			per_tenant;
	int			rate_per_tenant;
	int64		rate_window;	/* us */
} UjobsQueueRow;

/* All of them (UjobsQueueRow *). */
extern List *ujobs_dispatch_queues(void);
extern bool ujobs_dispatch_is_paused(const List *queues, const char *name);

#endif							/* UJOBS_STORE_DISPATCH_STORE_H */
