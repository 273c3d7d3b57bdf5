/*
 * queue_counters.h: counters of what became of jobs, per queue, since the server started.
 *
 * A change of rows that ends an attempt is noted in its transaction and added
 * to shared memory when, and only when, that commits: not after a rollback,
 * not after a rollback to a savepoint before it, and not by PREPARE
 * TRANSACTION, whose COMMIT PREPARED calls nothing of ours.  A database in which
 * no engine ever started has no memory to count in.
 *
 * Queues come into a fixed table as they are first counted and stay; those
 * that find it full share one more entry.
 */
#ifndef UJOBS_CORE_QUEUE_COUNTERS_H
#define UJOBS_CORE_QUEUE_COUNTERS_H

#include "postgres.h"

#include "core/area.h"

/* When an attempt could have started, started and ended. */
typedef struct UjobsQueueCounterTimes
{
	TimestampTz due_at;
	TimestampTz started_at;		/* 0: it never did, there is nothing to measure */
	TimestampTz ended_at;
} UjobsQueueCounterTimes;

/*
 * Count this at commit.  times may be NULL: nothing ran.  May allocate and
 * attach; call inside a transaction, once the row's change is certain.
 */
extern void ujobs_queue_counter_note(const char *queue, UjobsQueueCounterOutcome outcome,
									 const UjobsQueueCounterTimes *times);

/* The upper bounds of the buckets but the last, in us. */
extern const int64 *ujobs_queue_counter_bounds(void);

/*
 * This database's entries, to be read with pg_atomic_read_u64; returns how
 * many there are.  The last is that of all other queues, with name "".
 */
extern int	ujobs_queue_counter_entries(UjobsQueueCounter **out);

#endif							/* UJOBS_CORE_QUEUE_COUNTERS_H */
