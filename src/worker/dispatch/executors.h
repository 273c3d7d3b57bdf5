/*
 * executors.h: the executors of this database as the dispatcher sees them.
 *
 * Limits are exact because an executor runs its tickets one after another: a
 * limit of n allows tickets under it with at most n executors at a time, and
 * at most ujobs.max_running executors of a database may have any (limit.h).
 */
#ifndef UJOBS_WORKER_DISPATCH_EXECUTORS_H
#define UJOBS_WORKER_DISPATCH_EXECUTORS_H

#include "core/slot.h"
#include "worker/dispatch/limit.h"
#include "worker/dispatch/outstanding.h"

#define UJOBS_SLOW_US 5000		/* a job that runs so long is slow: no other waits behind it */
#define UJOBS_MAX_DEATHS 5		/* of executors; then their job is given up */
#define UJOBS_EXECUTOR_UNITS 48 /* limits that one executor's tickets may be under; more only when limits are new */

/* A unit of a limit that an executor holds, and how many of its tickets are under it. */
typedef struct UjobsExecutorUnit
{
	UjobsCap   *cap;
	int			count;
} UjobsExecutorUnit;

/* One executor; its tickets in the order they were pushed. */
typedef struct UjobsExecutor
{
	bool		used;
	uint32		generation;
	Oid			role;
	UjobsSlotState state;
	bool		leaving;		/* asked to go: it begins nothing more */
	uint64		done;			/* of the slot's `taken`, as of the last look */
	uint32		head;
	uint32		tail;
	UjobsTicket ticket[UJOBS_RING_SIZE];
	UjobsExecutorUnit *unit;
	int			n_units;
	int			unit_capacity;
	double		job_us;			/* moving average of a ticket's time, its share of the commit included */
	double		work_us;		/* the same without the commit */
	uint64		worked;			/* of the slot's work_us, as of the last look */
	int			batch;			/* of the last definition it was given */
	TimestampTz synced;			/* when it last finished a job or began after idling */
} UjobsExecutor;

/* What a look at one executor found, besides jobs that came back. */
typedef enum UjobsExecutorNews
{
	UJOBS_EXECUTOR_UNCHANGED,
	UJOBS_EXECUTOR_WORKED,		/* jobs came back */
	UJOBS_EXECUTOR_ARRIVED,		/* its process began; jobs may have come back, too */
	UJOBS_EXECUTOR_GONE,		/* it ended by itself, or was asked to */
	UJOBS_EXECUTOR_FAILED,		/* it ended before it began its work */
	UJOBS_EXECUTOR_DIED			/* it ended otherwise */
} UjobsExecutorNews;

extern void ujobs_executor_init(UjobsArea *area);

/* By slot; check `used`. */
extern UjobsExecutor *ujobs_executor_at(int index);

/* Tickets held, the one running included. */
static inline uint32
ujobs_executor_load(const UjobsExecutor *executor)
{
	return executor->tail - executor->head;
}

/* The ticket that runs, or runs next.  Needs a load. */
static inline const UjobsTicket *
ujobs_executor_first(const UjobsExecutor *executor)
{
	return &executor->ticket[executor->head % UJOBS_RING_SIZE];
}

/* ---- tickets ---- */

/* How many tickets it should hold, so that a wake-up pays for many jobs. */
extern int	ujobs_executor_depth(const UjobsExecutor *executor);

/* Does it hold a unit of this limit? */
extern bool ujobs_executor_holds(const UjobsExecutor *executor, const UjobsCap *cap);

/* One ticket more, with its units; false when its ring is full. */
extern bool ujobs_executor_push(int index, const UjobsTicket *ticket, UjobsTenantQueue *tq,
								UjobsHeapItem item);

/* It wakes the dispatcher when half of its depth is left; notify: after every job. */
extern void ujobs_executor_set_wakeup(int index, bool notify);

/* Takes back up to max tickets that it has not begun. */
extern void ujobs_executor_reclaim(int index, int max, UjobsReturns *returns);

/* Is its job slow, so that what waits behind it is to be taken back? */
extern bool ujobs_executor_is_slow(int index, TimestampTz now);

/* Interrupts the job, or each job that was cancelled and is not back yet. */
extern void ujobs_executor_cancel(int64 id);
extern void ujobs_executor_retry_cancels(void);

/* Ends the process of each executor whose job goes on long after a timeout or a cancel. */
extern void ujobs_executor_evict(TimestampTz now);

/* Limits changed: all units of all executors, counted from their tickets. */
extern void ujobs_executor_recount(void);

/* ---- processes ---- */

/*
 * Takes over executors that outlived a former dispatcher.  True: one of them
 * has a crashed job.
 */
extern bool ujobs_executor_adopt(void);

/* Reads what it finished, whether its process began or ended. */
extern UjobsExecutorNews ujobs_executor_look(int index, UjobsReturns *returns, TimestampTz now);

/* Registers a process for the slot, which was allocated for the role; false: no process is left. */
extern bool ujobs_executor_start(int index, uint32 generation, Oid role);

/* SIGTERM to those that there are: their jobs are given back. */
extern void ujobs_executor_terminate_all(void);

/*
 * Executors alive or being started; those of a role that are alive and stay;
 * busy ones, of a role unless it is InvalidOid.
 */
extern int	ujobs_executor_count(void);
extern int	ujobs_executor_count_role(Oid role);
extern int	ujobs_executor_count_busy(Oid role);

/* Is one of the role being started?  One that idles with another role, or -1. */
extern bool ujobs_executor_is_starting(Oid role);
extern int	ujobs_executor_idle_of_other_role(Oid role);

/* The instant by which the dispatcher must look again, or DT_NOEND. */
extern TimestampTz ujobs_executor_next(TimestampTz now);

#endif							/* UJOBS_WORKER_DISPATCH_EXECUTORS_H */
