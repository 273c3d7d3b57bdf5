/*
 * control_store.h: changes to jobs and queues from outside any run.
 *
 * Every function here needs an open identity section and a transaction.
 * None checks permissions and none but those that say so notes hints: the
 * caller does both.
 */
#ifndef UJOBS_STORE_CONTROL_STORE_H
#define UJOBS_STORE_CONTROL_STORE_H

#include "utils/timestamp.h"

#include "core/identity.h"
#include "model/job.h"

/* Where a job is, live or in history. */
typedef struct UjobsWhere
{
	bool		live;
	bool		own;			/* this row version was written by the current transaction */
	UjobsState	state;
	int32		definition_id;
	Oid			enqueued_role;
	TimestampTz due_at;			/* live only */
	int16		slot;			/* history only: its partition */
} UjobsWhere;

/*
 * Finds a job as of now (one fresh snapshot over both tables).  False when
 * there is none.
 */
extern bool ujobs_control_locate(int64 id, UjobsWhere *where);

typedef struct UjobsCancellation
{
	const char *reason;			/* NULL = none */
	int32		attempt;		/* the running one, 0 = not running */
	TimestampTz started_at;		/* of that attempt */
	TimestampTz finished_at;
	TimestampTz expires_at;
	int16		slot;
	bool		keep;			/* false: its history row goes when it was shown, unless it is waited for, for it */
} UjobsCancellation;

/*
 * Moves a live job to history as cancelled.  Waits for a transaction that
 * holds the row; false when the job is not live (any more).
 */
extern bool ujobs_control_cancel(int64 id, const UjobsCancellation *cancellation);

/* Removes a history row that must not be kept, and steps that it left. */
extern void ujobs_control_forget(int64 id, int16 slot);

typedef enum UjobsRestart
{
	UJOBS_RESTART_DONE,
	UJOBS_RESTART_MOVED,		/* the job is not there any more: locate it again */
	UJOBS_RESTART_KEY_HELD		/* the caller must raise: the history row is deleted */
} UjobsRestart;

typedef struct UjobsRestarted
{
	char	   *queue;
	int16		priority;
	char	   *tenant;
	char	   *key;
	int64		holder;			/* the live job that holds the key, 0 = ended meanwhile */
} UjobsRestarted;

/* A live, not leased job becomes due at `now` with attempt 0 and no error. */
extern UjobsRestart ujobs_control_restart(int64 id, TimestampTz now, UjobsIdentity *identity,
										  UjobsRestarted *out);

/* The same for a finished job, which moves back with its id, run_id and steps. */
extern UjobsRestart ujobs_control_revive(int64 id, const UjobsWhere *where, TimestampTz now,
										 UjobsIdentity *identity, UjobsRestarted *out);

/*
 * Of a live job whose row this transaction has changed: drops the step `first`
 * and all later ones.  Where a wait for an event is among them, the job's waits
 * take only events from `now` on.  False when it has no such step.
 */
extern bool ujobs_control_drop_steps(int64 id, const char *first, TimestampTz now);

/* Stores the pause; true when anything changed. */
extern bool ujobs_control_pause_queue(const char *queue, bool paused);

/* Of a queue; 0 = none. */
typedef struct UjobsQueueLimits
{
	int32		concurrency;
	int32		per_tenant;
	int32		rate_per_tenant;
	Interval   *rate_window;	/* with rate_per_tenant only */
} UjobsQueueLimits;

/* Stores them all; true when anything changed. */
extern bool ujobs_control_set_queue(const char *queue, const UjobsQueueLimits *limits);

/* Removes history rows finished before the cutoff, of one queue or (NULL) all. */
extern int64 ujobs_control_purge(TimestampTz cutoff, const char *queue);

/*
 * start_workers: the engine may run, and this database is the one in which the store is at work.
 * When the store came here by dump and restore, roles are found again by
 * their names; true in that case (the definitions changed).  old_database: the
 * database it came from by restore or copy, or InvalidOid.
 */
extern bool ujobs_control_start(Oid *old_database);

/* stop_workers: remembered until start_workers. */
extern void ujobs_control_stop(void);

#endif							/* UJOBS_STORE_CONTROL_STORE_H */
