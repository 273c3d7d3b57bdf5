/*
 * executors.c: step 3 of the walk: following the executors.
 *
 * An executor's tickets are kept in the order they were pushed; the executor
 * only counts how many it has finished with, so one comparison of counters
 * tells which jobs are back.
 */
#include "postgres.h"

#include <signal.h>

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/spawn.h"
#include "worker/dispatch/executors.h"
#include "worker/worker.h"

/* An executor gets about this much work ahead. */
#define AHEAD_US 4000
#define FIRST_GUESS_US 200		/* of a job's time */
#define SLOW_COMMIT_US 100000
#define RETRY_CANCEL_US 10000
#define EVICT_US (INT64CONST(5) * USECS_PER_SEC)	/* a job may go on for so long after an interrupt */
#define START_PATIENCE_US (INT64CONST(5) * USECS_PER_SEC)

static UjobsArea *area;
static UjobsExecutor *executors;	/* one per slot of the cluster */
static BackgroundWorkerHandle *handle[UJOBS_MAX_SLOTS];
static bool any_cancelled = false;

void
ujobs_executor_init(UjobsArea *my_area)
{
	area = my_area;
	executors = MemoryContextAllocZero(TopMemoryContext, UJOBS_MAX_SLOTS * sizeof(UjobsExecutor));
	ujobs_outstanding_init();
}

UjobsExecutor *
ujobs_executor_at(int index)
{
	Assert(index >= 0 && index < UJOBS_MAX_SLOTS);
	return &executors[index];
}

/* The slot is free, or another executor's; it holds no ticket. */
static void
clear(UjobsExecutor *executor)
{
	if (executor->unit != NULL)
		pfree(executor->unit);
	memset(executor, 0, sizeof(*executor));
}

/* ---- units of limits ---- */

static UjobsExecutorUnit *
find_unit(const UjobsExecutor *executor, const UjobsCap *cap)
{
	for (int i = 0; i < executor->n_units; i++)
	{
		if (executor->unit[i].cap == cap)
			return &executor->unit[i];
	}
	return NULL;
}

bool
ujobs_executor_holds(const UjobsExecutor *executor, const UjobsCap *cap)
{
	return find_unit(executor, cap) != NULL;
}

static void
take_unit(UjobsExecutor *executor, UjobsCap *cap)
{
	UjobsExecutorUnit *unit = find_unit(executor, cap);

	if (unit != NULL)
	{
		unit->count++;
		return;
	}
	if (executor->n_units == executor->unit_capacity)
	{
		executor->unit_capacity = Max(16, 2 * executor->unit_capacity);
		executor->unit = executor->unit == NULL ?
							 MemoryContextAlloc(TopMemoryContext, executor->unit_capacity *
																	  sizeof(UjobsExecutorUnit)) :
							 repalloc(executor->unit,
									  executor->unit_capacity * sizeof(UjobsExecutorUnit));
	}
	executor->unit[executor->n_units++] = (UjobsExecutorUnit) {cap, 1};
	ujobs_limit_take_executor(cap);
}

static void
return_unit(UjobsExecutor *executor, UjobsCap *cap)
{
	UjobsExecutorUnit *unit = find_unit(executor, cap);

	Assert(unit != NULL);
	if (unit == NULL || --unit->count > 0)
		return;
	*unit = executor->unit[--executor->n_units];
	ujobs_limit_return_executor(cap);
}

/* Takes or returns the units of one ticket. */
static void
change_units(UjobsExecutor *executor, const UjobsTicket *ticket,
			 void (*change)(UjobsExecutor *, UjobsCap *))
{
	UjobsCap   *cap[UJOBS_CAP_KINDS];
	int			n = ujobs_limit_of(ticket, cap);

	for (int i = 0; i < n; i++)
		change(executor, cap[i]);
}

void
ujobs_executor_recount(void)
{
	ujobs_limit_forget_executors();
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		UjobsExecutor *executor = &executors[i];

		executor->n_units = 0;
		for (uint32 at = executor->head; executor->used && at != executor->tail; at++)
			change_units(executor, &executor->ticket[at % UJOBS_RING_SIZE], take_unit);
	}
}

/* ---- tickets ---- */

/*
 * AHEAD_US of its work, one at least; and two batches, or the commit that they
 * share would be the smaller the longer it takes.  Batches of slow jobs are
 * not hoarded; a slow disk does not make a job slow.
 */
int
ujobs_executor_depth(const UjobsExecutor *executor)
{
	double		us = executor->job_us > 0 ? executor->job_us : FIRST_GUESS_US;
	double		depth = Max(AHEAD_US / us, 1);

	if (executor->work_us < UJOBS_SLOW_US)
		depth = Max(depth, 2 * executor->batch);
	return (int) Min(depth, UJOBS_RING_SIZE - 1);
}

bool
ujobs_executor_push(int index, const UjobsTicket *ticket, UjobsTenantQueue *tq, UjobsHeapItem item)
{
	UjobsExecutor *executor = &executors[index];

	if (ujobs_slot_push(area, index, executor->generation, ticket, 1) == 0)
		return false;
	executor->ticket[executor->tail++ % UJOBS_RING_SIZE] = *ticket;
	executor->batch = ticket->batch;
	change_units(executor, ticket, take_unit);
	ujobs_outstanding_add(ticket->id, tq, item);
	return true;
}

void
ujobs_executor_set_wakeup(int index, bool notify)
{
	ujobs_slot_set_wakeup(index, executors[index].generation,
						  ujobs_executor_depth(&executors[index]) / 2, notify);
}

/*
 * Under its tenant's rate: has it begun?  The executor says so in the ring,
 * where the ticket is until its place is given to another.
 */
static void
look_at_rate(int index, UjobsTicket *ticket, uint32 place)
{
	TimestampTz begun;

	if ((ticket->flags & UJOBS_TICKET_RATED) == 0)
		return;
	begun = area->ring[index][place % UJOBS_RING_SIZE].begun;
	if (begun == 0)
		return;
	ticket->flags &= ~UJOBS_TICKET_RATED;
	ujobs_limit_rate_began(ticket, begun);
}

/* The ticket left the executor. */
static void
leave(UjobsExecutor *executor, const UjobsTicket *ticket)
{
	change_units(executor, ticket, return_unit);
	if (ticket->flags & UJOBS_TICKET_RATED)
		ujobs_limit_rate_back(ticket);
}

void
ujobs_executor_reclaim(int index, int max, UjobsReturns *returns)
{
	UjobsExecutor *executor = &executors[index];
	UjobsTicket back[UJOBS_RING_SIZE];
	int			n = ujobs_slot_reclaim(area, index, executor->generation, back, max);

	for (int i = 0; i < n; i++)
	{
		/* Our copy knows whether its rate was counted here. */
		UjobsTicket *ticket = &executor->ticket[--executor->tail % UJOBS_RING_SIZE];

		leave(executor, ticket);
		ujobs_outstanding_put_back(ticket, 0, returns);
	}
}

/*
 * Single jobs need not wait behind a commit, another executor may be free;
 * the next batch may, for taking it apart makes more commits of it.
 */
bool
ujobs_executor_is_slow(int index, TimestampTz now)
{
	const UjobsExecutor *executor = &executors[index];
	int64		us = now - executor->synced;

	if (!executor->used || ujobs_executor_load(executor) <= 1 || us < UJOBS_SLOW_US)
		return false;
	return executor->batch <= 1 || us >= SLOW_COMMIT_US || !ujobs_slot_is_committing(index);
}

static bool
cancel_in_slot(int64 id)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		if (executors[i].used && ujobs_slot_cancel(i, executors[i].generation, id))
			return true;
	}
	return false;
}

/* Handed out but perhaps not begun: tried again until its ticket is back. */
void
ujobs_executor_cancel(int64 id)
{
	if (!ujobs_outstanding_cancel(id))
		return;
	any_cancelled = true;
	(void) cancel_in_slot(id);
}

void
ujobs_executor_retry_cancels(void)
{
	int64	   *ids;
	int			n;

	if (!any_cancelled)
		return;
	ids = ujobs_outstanding_cancelled(&n);
	for (int i = 0; i < n; i++)
		(void) cancel_in_slot(ids[i]);
	any_cancelled = n > 0;
	pfree(ids);
}

void
ujobs_executor_evict(TimestampTz now)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		int64		id = 0;

		if (executors[i].used && ujobs_slot_interrupted_at(i) != 0)
			id = ujobs_slot_evict(i, executors[i].generation, now - EVICT_US);
		if (id != 0)
			ereport(LOG, (errmsg("ending the executor of job " INT64_FORMAT
								 ", which went on after a timeout or a cancel",
								 id)));
	}
}

/* ---- what executors did ---- */

static double
average(double before, double us)
{
	return before == 0 ? Max(us, 0) : 0.7 * before + 0.3 * Max(us, 0);
}

static void
learn_pace(UjobsExecutor *executor, int n, const UjobsSlot *slot, TimestampTz now)
{
	executor->job_us = average(executor->job_us, (double) (now - executor->synced) / n);
	executor->work_us = average(executor->work_us, (double) (slot->work_us - executor->worked) / n);
	executor->worked = slot->work_us;
}

static void
finish_one(int index, UjobsReturns *returns)
{
	UjobsExecutor *executor = &executors[index];
	UjobsTicket *ticket = &executor->ticket[executor->head % UJOBS_RING_SIZE];

	look_at_rate(index, ticket, executor->head++);
	leave(executor, ticket);
	ujobs_outstanding_clear_deaths(ticket->id);
	ujobs_outstanding_finish(ticket->id, returns);
}

/*
 * Counts one more executor that ended with this job at hand: the job waits the
 * longer the more there were.
 */
static TimestampTz
count_death(int64 id, TimestampTz now)
{
	int			n = ujobs_outstanding_count_death(id);

	return n > 1 ? now + ((int64) 100000 << Min(n, 8)) : now;
}

/* Its process ended with tickets not finished; the first of them may be the cause. */
static UjobsExecutorNews
end(int index, bool died, UjobsReturns *returns, TimestampTz now)
{
	UjobsExecutor *executor = &executors[index];
	bool		began = executor->state != UJOBS_SLOT_STARTING;
	bool		first = true;

	while (ujobs_executor_load(executor) > 0)
	{
		UjobsTicket *ticket = &executor->ticket[executor->head % UJOBS_RING_SIZE];
		TimestampTz not_before = now;

		look_at_rate(index, ticket, executor->head++);
		leave(executor, ticket);
		if (first && died && began)
			not_before = count_death(ticket->id, now);
		first = false;
		ujobs_outstanding_put_back(ticket, not_before, returns);
	}
	clear(executor);
	if (!died)
		return UJOBS_EXECUTOR_GONE;
	return began ? UJOBS_EXECUTOR_DIED : UJOBS_EXECUTOR_FAILED;
}

/*
 * Did the process that was to take this slot end before it did?  A former
 * dispatcher's is given some seconds.
 */
static bool
is_lost(int index, TimestampTz since, TimestampTz now)
{
	pid_t		pid;

	if (handle[index] == NULL)
		return now - since > START_PATIENCE_US;
	return GetBackgroundWorkerPid(handle[index], &pid) == BGWH_STOPPED;
}

/* The executor is alive: what did it finish? */
static UjobsExecutorNews
follow(int index, const UjobsSlot *slot, UjobsReturns *returns, TimestampTz now)
{
	UjobsExecutor *executor = &executors[index];
	int			n = (int) (slot->taken - executor->done);
	bool		arrived =
		executor->state == UJOBS_SLOT_STARTING && slot->state != UJOBS_SLOT_STARTING;

	executor->state = slot->state;
	executor->leaving = slot->leave;
	executor->done = slot->taken;
	if (n > 0)
		learn_pace(executor, n, slot, now);
	if (n > 0 || ujobs_executor_load(executor) == 0)
		executor->synced = now;
	for (int i = 0; i < n; i++)
		finish_one(index, returns);
	if (ujobs_executor_load(executor) > 0)
		look_at_rate(index, &executor->ticket[executor->head % UJOBS_RING_SIZE], executor->head);
	if (arrived)
		return UJOBS_EXECUTOR_ARRIVED;
	return n > 0 ? UJOBS_EXECUTOR_WORKED : UJOBS_EXECUTOR_UNCHANGED;
}

UjobsExecutorNews
ujobs_executor_look(int index, UjobsReturns *returns, TimestampTz now)
{
	UjobsExecutor *executor = &executors[index];
	UjobsSlot	slot;
	bool		known;

	if (!executor->used)
		return UJOBS_EXECUTOR_UNCHANGED;
	known = ujobs_slot_copy_of(index, executor->generation, &slot);
	if (slot.state == UJOBS_SLOT_FREE)
	{
		/* What it finished before it ended. */
		for (int n = known ? (int) (slot.taken - executor->done) : 0; n > 0; n--)
			finish_one(index, returns);
		return end(index, slot.died, returns, now);
	}
	if (slot.state == UJOBS_SLOT_STARTING && is_lost(index, slot.since, now) &&
		ujobs_slot_free_lost(index, executor->generation))
		return end(index, true, returns, now);
	return follow(index, &slot, returns, now);
}

/* ---- processes ---- */

/*
 * The tickets in its ring that it has not finished with; true when one is of a
 * crashed job.
 */
static bool
adopt_tickets(int index, const UjobsSlot *slot)
{
	UjobsExecutor *executor = &executors[index];
	bool		any_crashed = false;

	executor->head = executor->tail = (uint32) slot->taken; /* as in the ring */
	for (uint32 at = (uint32) slot->taken; at != slot->tail; at++)
	{
		UjobsTicket ticket = area->ring[index][at % UJOBS_RING_SIZE];

		ticket.flags &= ~UJOBS_TICKET_RATED;	/* it was counted in another memory */
		executor->ticket[executor->tail++ % UJOBS_RING_SIZE] = ticket;
		change_units(executor, &ticket, take_unit);
		any_crashed |= (ticket.flags & UJOBS_TICKET_PROBATION) != 0;
		ujobs_outstanding_add(ticket.id, NULL, (UjobsHeapItem) {ticket.id, 0, 0});
	}
	return any_crashed;
}

bool
ujobs_executor_adopt(void)
{
	bool		any_crashed = false;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		UjobsExecutor *executor = &executors[i];
		UjobsSlot	slot;

		ujobs_slot_copy(i, &slot);
		if (slot.state == UJOBS_SLOT_FREE || slot.database != MyDatabaseId)
			continue;
		executor->used = true;
		executor->generation = slot.generation;
		executor->role = slot.role;
		executor->state = slot.state;
		executor->done = slot.taken;
		executor->worked = slot.work_us;
		executor->synced = GetCurrentTimestamp();
		any_crashed |= adopt_tickets(i, &slot);
	}
	return any_crashed;
}

static bool
register_process(int index, uint32 generation, Oid role)
{
	BackgroundWorker worker;
	UjobsExecutorSpec spec = {MyDatabaseId, role, generation};
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	bool		registered;

	ujobs_spawn_describe(&worker, "executor", Int32GetDatum(index));
	worker.bgw_notify_pid = MyProcPid;
	memcpy(worker.bgw_extra, &spec, sizeof(spec));
	if (handle[index] != NULL)
		pfree(handle[index]);
	handle[index] = NULL;
	registered = RegisterDynamicBackgroundWorker(&worker, &handle[index]);
	MemoryContextSwitchTo(old);
	return registered;
}

bool
ujobs_executor_start(int index, uint32 generation, Oid role)
{
	UjobsExecutor *executor = &executors[index];

	if (!register_process(index, generation, role))
		return false;
	clear(executor);
	executor->used = true;
	executor->generation = generation;
	executor->role = role;
	executor->state = UJOBS_SLOT_STARTING;
	executor->synced = GetCurrentTimestamp();
	return true;
}

void
ujobs_executor_terminate_all(void)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		UjobsSlot	slot;

		if (!executors[i].used)
			continue;
		ujobs_slot_copy(i, &slot);
		if (slot.generation == executors[i].generation && slot.pid != 0)
			kill(slot.pid, SIGTERM);
	}
}

int
ujobs_executor_count(void)
{
	int			n = 0;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
		n += executors[i].used;
	return n;
}

int
ujobs_executor_count_role(Oid role)
{
	int			n = 0;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		const UjobsExecutor *executor = &executors[i];

		n += executor->used && executor->role == role && executor->state != UJOBS_SLOT_STARTING &&
			 !executor->leaving;
	}
	return n;
}

int
ujobs_executor_count_busy(Oid role)
{
	int			n = 0;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
		n += executors[i].used && ujobs_executor_load(&executors[i]) > 0 &&
			(!OidIsValid(role) || executors[i].role == role);
	return n;
}

bool
ujobs_executor_is_starting(Oid role)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		const UjobsExecutor *executor = &executors[i];

		if (executor->used && executor->role == role && executor->state == UJOBS_SLOT_STARTING &&
			!executor->leaving)
			return true;
	}
	return false;
}

int
ujobs_executor_idle_of_other_role(Oid role)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		const UjobsExecutor *executor = &executors[i];

		if (executor->used && executor->role != role && executor->state == UJOBS_SLOT_IDLE &&
			!executor->leaving && ujobs_executor_load(executor) == 0)
			return i;
	}
	return -1;
}

TimestampTz
ujobs_executor_next(TimestampTz now)
{
	TimestampTz next = any_cancelled ? now + RETRY_CANCEL_US : DT_NOEND;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		if (executors[i].used && ujobs_executor_load(&executors[i]) > 1)
			next = Min(next, Max(executors[i].synced + UJOBS_SLOW_US, now + 1000));
		if (executors[i].used && ujobs_slot_interrupted_at(i) != 0)
			next = Min(next, Max(ujobs_slot_interrupted_at(i) + EVICT_US, now + EVICT_US / 10));
	}
	return next;
}
