/*
 * slot.c: step 3 of the walk, seen from shared memory.
 *
 * One writer per field: the dispatcher moves the tail, the executor the head.
 * The spinlock makes the few places consistent where both look.
 */
#include "postgres.h"

#include <signal.h>

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "core/crashmark.h"
#include "core/engine.h"
#include "core/slot.h"

#define RESERVED_US 500000			/* a dispatcher without a free slot looks ten times as often */

static inline UjobsSlot *
slot_at(int index)
{
	Assert(index >= 0 && index < UJOBS_MAX_SLOTS);
	return &ujobs_shmem_control()->slot[index];
}

/* Free, but kept for the database and role that asked for it? */
static bool
is_kept(const UjobsSlot *slot, TimestampTz now)
{
	return slot->reserved_until > now;
}

static bool
is_reserved_for(const UjobsSlot *slot, Oid database, Oid role)
{
	return slot->reserved_database == database && slot->reserved_role == role;
}

/* Is it still the executor that the caller means?  Needs the mutex. */
static inline bool
is_of(const UjobsSlot *slot, uint32 generation)
{
	return slot->generation == generation && slot->state != UJOBS_SLOT_FREE;
}

/*
 * A free slot becomes one of a process that is being started; needs slot_lock.
 * Returns its generation.
 */
static uint32
assign(UjobsSlot *slot, Oid database, Oid role, TimestampTz now)
{
	uint32		generation;

	Assert(LWLockHeldByMeInMode(ujobs_shmem_control()->slot_lock, LW_EXCLUSIVE));
	SpinLockAcquire(&slot->mutex);
	Assert(slot->state == UJOBS_SLOT_FREE);
	slot->state = UJOBS_SLOT_STARTING;
	slot->former_generation = slot->generation;
	slot->former_taken = slot->taken;
	slot->former_died = slot->died;
	generation = ++slot->generation;
	slot->database = database;
	slot->role = role;
	slot->pid = 0;
	slot->latch = NULL;
	slot->leave = slot->notify = false;
	slot->low_water = 0;
	slot->head = slot->tail = 0;
	slot->taken = slot->jobs_done = slot->work_us = 0;
	slot->committing = false;
	slot->job_id = slot->cancel_id = 0;
	slot->cancel_sent = false;
	slot->evicted_id = 0;
	if (!is_kept(slot, now))
		slot->reserved_until = 0;	/* a reservation is kept until its process is alive: its process may have to be tried again */
	slot->since = now;
	SpinLockRelease(&slot->mutex);
	pg_atomic_write_u64(&slot->interrupted_at, 0);
	pg_atomic_write_u64(&slot->memory, 0);
	return generation;
}

int
ujobs_slot_allocate(Oid database, Oid role, int max_workers, bool (*is_settled)(int index),
					uint32 *generation)
{
	UjobsControl *control = ujobs_shmem_control();
	TimestampTz now = GetCurrentTimestamp();
	int			used = 0;
	int			found = -1;

	LWLockAcquire(control->slot_lock, LW_EXCLUSIVE);
	if (control->most_until > now)
		max_workers = Min(max_workers, control->most_executors);
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		const UjobsSlot *slot = &control->slot[i];
		bool		kept = is_kept(slot, now);

		if (slot->state != UJOBS_SLOT_FREE || !is_settled(i) ||
			(kept && !is_reserved_for(slot, database, role)))
			used++;
		else if (found < 0 || kept)
			found = i;
	}
	if (found >= 0 && used < max_workers)
		*generation = assign(&control->slot[found], database, role, now);
	else
		found = -1;
	LWLockRelease(control->slot_lock);
	return found;
}

void
ujobs_slot_limit(int most, int64 us)
{
	UjobsControl *control = ujobs_shmem_control();
	TimestampTz now = GetCurrentTimestamp();

	LWLockAcquire(control->slot_lock, LW_EXCLUSIVE);
	if (control->most_until > now)
		most = Min(most, control->most_executors);
	control->most_executors = Max(most, 1);
	control->most_until = Max(control->most_until, now + us);
	LWLockRelease(control->slot_lock);
}

int
ujobs_slot_count(int *leaving)
{
	int			used = 0;

	*leaving = 0;
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		UjobsSlot	slot;

		ujobs_slot_copy(i, &slot);
		used += slot.state != UJOBS_SLOT_FREE;
		*leaving += slot.state != UJOBS_SLOT_FREE && slot.leave;
	}
	return used;
}

/* A SIGINT for the job that ended is underway: afterwards it can meet no other job. */
static void
await_signal(UjobsSlot *slot)
{
	bool		sent = false;

	while (!sent)
	{
		SpinLockAcquire(&slot->mutex);
		sent = slot->cancel_sent;
		SpinLockRelease(&slot->mutex);
		if (!sent)
			pg_usleep(50);
	}
	pg_usleep(1);				/* a return from the kernel: what was sent is delivered by then */
}

/* This executor ends: no cancel finds its job any more, and none is underway. */
static void
end_cancels(UjobsSlot *slot)
{
	bool		pending;

	SpinLockAcquire(&slot->mutex);
	slot->job_id = 0;
	pending = slot->cancel_id != 0;
	SpinLockRelease(&slot->mutex);
	if (pending)
		await_signal(slot);
}

/*
 * Under slot_lock, so that the slot is not given to another executor before
 * its entry in the crash marker is cleared.
 */
static bool
free_slot(int index, uint32 generation, bool died, bool if_starting)
{
	UjobsSlot  *slot = slot_at(index);
	UjobsControl *control = ujobs_shmem_control();
	TimestampTz now = GetCurrentTimestamp();
	bool		freed;

	if (slot->pid == MyProcPid)
		end_cancels(slot);
	ujobs_crashmark_attach();
	LWLockAcquire(control->slot_lock, LW_EXCLUSIVE);
	SpinLockAcquire(&slot->mutex);
	freed = is_of(slot, generation) && (!if_starting || slot->state == UJOBS_SLOT_STARTING);
	if (freed)
	{
		if (slot->reserved_until != 0)
			slot->reserved_until = now + RESERVED_US;
		slot->state = UJOBS_SLOT_FREE;
		slot->died = died;
		slot->pid = 0;
		slot->latch = NULL;
		slot->job_id = slot->cancel_id = 0;
	}
	SpinLockRelease(&slot->mutex);
	if (freed)
		ujobs_crashmark_set(index, slot->database, 0);
	LWLockRelease(control->slot_lock);
	return freed;
}

void
ujobs_slot_free(int index, uint32 generation, bool died)
{
	(void) free_slot(index, generation, died, false);
}

bool
ujobs_slot_free_lost(int index, uint32 generation)
{
	return free_slot(index, generation, true, true);
}

bool
ujobs_slot_attach(int index, uint32 generation)
{
	UjobsSlot  *slot = slot_at(index);
	TimestampTz now = GetCurrentTimestamp();
	bool		mine;

	SpinLockAcquire(&slot->mutex);
	mine = slot->generation == generation && slot->state == UJOBS_SLOT_STARTING;
	if (mine)
	{
		slot->state = UJOBS_SLOT_IDLE;
		slot->reserved_until = 0;
		slot->pid = MyProcPid;
		slot->latch = MyLatch;
		slot->since = now;
	}
	SpinLockRelease(&slot->mutex);
	return mine;
}

int
ujobs_slot_push(UjobsArea *area, int index, uint32 generation, const UjobsTicket *tickets, int n)
{
	UjobsSlot  *slot = slot_at(index);
	int			pushed = 0;

	SpinLockAcquire(&slot->mutex);
	if (!is_of(slot, generation))
		n = 0;
	/* Tickets taken but not done keep their place: a new dispatcher reads them there. */
	while (pushed < n && slot->tail - (uint32) slot->taken < UJOBS_RING_SIZE)
		area->ring[index][slot->tail++ % UJOBS_RING_SIZE] = tickets[pushed++];
	SpinLockRelease(&slot->mutex);
	return pushed;
}

int
ujobs_slot_reclaim(UjobsArea *area, int index, uint32 generation, UjobsTicket *out, int max)
{
	UjobsSlot  *slot = slot_at(index);
	int			n = 0;

	SpinLockAcquire(&slot->mutex);
	if (!is_of(slot, generation))
		max = 0;
	while (n < max && slot->tail != slot->head)
		out[n++] = area->ring[index][--slot->tail % UJOBS_RING_SIZE];
	SpinLockRelease(&slot->mutex);
	return n;
}

bool
ujobs_slot_peek(UjobsArea *area, int index, UjobsTicket *out)
{
	UjobsSlot  *slot = slot_at(index);
	bool		any;

	SpinLockAcquire(&slot->mutex);
	any = slot->head != slot->tail && !slot->leave;
	if (any)
		*out = area->ring[index][slot->head % UJOBS_RING_SIZE];
	SpinLockRelease(&slot->mutex);
	return any;
}

/* Its state changed just now. */
static void
note_change(UjobsSlot *slot)
{
	TimestampTz now = GetCurrentTimestamp();

	SpinLockAcquire(&slot->mutex);
	slot->since = now;
	SpinLockRelease(&slot->mutex);
}

int
ujobs_slot_take(UjobsArea *area, int index, UjobsTicket *out, int max)
{
	UjobsSlot  *slot = slot_at(index);
	UjobsSlotState before;
	UjobsSlotState after;
	int			n = 0;

	Assert(slot->pid == MyProcPid);
	SpinLockAcquire(&slot->mutex);
	before = slot->state;
	while (n < max && slot->head != slot->tail && !slot->leave)
	{
		UjobsTicket *t = &area->ring[index][slot->head % UJOBS_RING_SIZE];

		if (n > 0 &&
			(t->definition_id != out[0].definition_id || t->flags != 0 || out[0].flags != 0))
			break;
		out[n++] = *t;
		slot->head++;
	}
	slot->state = after = n > 0 ? UJOBS_SLOT_BUSY : UJOBS_SLOT_IDLE;
	SpinLockRelease(&slot->mutex);
	if (after != before)
		note_change(slot);
	return n;
}

bool
ujobs_slot_done(int index, int n, int jobs)
{
	UjobsSlot  *slot = slot_at(index);
	bool		tell;

	SpinLockAcquire(&slot->mutex);
	slot->taken += n;
	slot->jobs_done += jobs;
	tell = slot->notify || slot->tail - slot->head <= slot->low_water;
	SpinLockRelease(&slot->mutex);
	return tell;
}

void
ujobs_slot_begin_job(int index, const UjobsTicket *ticket, int32 attempt, TimestampTz at)
{
	UjobsSlot  *slot = slot_at(index);
	UjobsArea  *area = (ticket->flags & UJOBS_TICKET_RATED) ? ujobs_engine_area_attached() : NULL;
	bool		unsent;			/* a cancel of the batch's job before this one */

	Assert(slot->pid == MyProcPid);
	ujobs_crashmark_set(index, slot->database, ticket->id);
	SpinLockAcquire(&slot->mutex);
	unsent = slot->cancel_id != 0 && !slot->cancel_sent;
	slot->job_id = ticket->id;
	slot->cancel_id = 0;
	slot->cancel_sent = false;
	pg_atomic_write_u64(&slot->interrupted_at, 0);
	/* Such a ticket is taken alone, so it is the last one that was. */
	if (area != NULL)
		area->ring[index][(slot->head - 1) % UJOBS_RING_SIZE].begun = at;
	slot->definition_id = ticket->definition_id;
	slot->attempt = attempt;
	slot->job_started = at;
	SpinLockRelease(&slot->mutex);
	if (unsent)
		await_signal(slot);		/* it meets this batch and none after it */
}

void
ujobs_slot_worked(int index, TimestampTz began)
{
	UjobsSlot  *slot = slot_at(index);
	TimestampTz now = GetCurrentTimestamp();

	SpinLockAcquire(&slot->mutex);
	slot->work_us += Max(now - began, 0);
	slot->committing = true;
	SpinLockRelease(&slot->mutex);
}

bool
ujobs_slot_end_job(int index)
{
	UjobsSlot  *slot = slot_at(index);
	bool		failed = slot->job_id != 0 && !slot->committing;	/* only this process writes them */
	TimestampTz now = failed ? GetCurrentTimestamp() : 0;
	bool		cancelled;

	SpinLockAcquire(&slot->mutex);
	cancelled = slot->cancel_id != 0 && slot->cancel_id == slot->job_id;
	if (failed)
		slot->work_us += Max(now - slot->job_started, 0);	/* its time counts all the same */
	slot->job_id = 0;
	slot->committing = false;
	pg_atomic_write_u64(&slot->interrupted_at, 0);
	SpinLockRelease(&slot->mutex);
	if (cancelled)
		await_signal(slot);
	ujobs_crashmark_set(index, slot->database, 0);
	return cancelled;
}

/*
 * The signal is sent after the lock is released; the executor does not go on
 * to another job before it was (docs/decisions/017).
 */
bool
ujobs_slot_cancel(int index, uint32 generation, int64 job_id)
{
	UjobsSlot  *slot = slot_at(index);
	TimestampTz now = GetCurrentTimestamp();
	pid_t		pid = 0;

	SpinLockAcquire(&slot->mutex);
	if (is_of(slot, generation) && slot->state == UJOBS_SLOT_BUSY && slot->job_id == job_id)
		pid = slot->pid;
	if (pid != 0)
	{
		slot->cancel_id = job_id;
		slot->cancel_sent = false;
		if (pg_atomic_read_u64(&slot->interrupted_at) == 0)
			pg_atomic_write_u64(&slot->interrupted_at, now);
	}
	SpinLockRelease(&slot->mutex);
	if (pid == 0)
		return false;
	kill(pid, SIGINT);
	SpinLockAcquire(&slot->mutex);
	slot->cancel_sent = true;
	SpinLockRelease(&slot->mutex);
	return true;
}

void
ujobs_slot_note_timeout(int index)
{
	UjobsSlot  *slot = slot_at(index);

	if (pg_atomic_read_u64(&slot->interrupted_at) == 0)
		pg_atomic_write_u64(&slot->interrupted_at, GetCurrentTimestamp());
}

TimestampTz
ujobs_slot_interrupted_at(int index)
{
	return (TimestampTz) pg_atomic_read_u64(&slot_at(index)->interrupted_at);
}

int64
ujobs_slot_evict(int index, uint32 generation, TimestampTz interrupted_before)
{
	UjobsSlot  *slot = slot_at(index);
	pid_t		pid = 0;
	int64		job_id = 0;

	SpinLockAcquire(&slot->mutex);
	if (is_of(slot, generation) && slot->job_id != 0 && !slot->committing && slot->evicted_id == 0 &&
		pg_atomic_read_u64(&slot->interrupted_at) != 0 &&
		ujobs_slot_interrupted_at(index) < interrupted_before)
	{
		slot->evicted_id = job_id = slot->job_id;
		pid = slot->pid;
	}
	SpinLockRelease(&slot->mutex);
	if (pid != 0)
		kill(pid, SIGTERM);
	return job_id;
}

int64
ujobs_slot_evicted_job(int index)
{
	return slot_at(index)->evicted_id;
}

void
ujobs_slot_set_wakeup(int index, uint32 generation, uint32 low_water, bool notify)
{
	UjobsSlot  *slot = slot_at(index);

	SpinLockAcquire(&slot->mutex);
	if (is_of(slot, generation))
	{
		slot->low_water = low_water;
		slot->notify = notify;
	}
	SpinLockRelease(&slot->mutex);
}

bool
ujobs_slot_is_committing(int index)
{
	return slot_at(index)->committing;	/* one byte: as of some instant of now */
}

void
ujobs_slot_copy(int index, UjobsSlot *copy)
{
	UjobsSlot  *slot = slot_at(index);

	SpinLockAcquire(&slot->mutex);
	*copy = *slot;
	SpinLockRelease(&slot->mutex);
}

bool
ujobs_slot_copy_of(int index, uint32 generation, UjobsSlot *copy)
{
	bool		known = true;

	ujobs_slot_copy(index, copy);
	if (copy->generation == generation)
		return true;
	known = copy->former_generation == generation;
	copy->state = UJOBS_SLOT_FREE;
	copy->taken = copy->former_taken;
	copy->died = !known || copy->former_died;
	return known;
}

pg_atomic_uint64 *
ujobs_slot_memory(int index)
{
	return &slot_at(index)->memory;
}

void
ujobs_slot_ask_leave(int index, uint32 generation)
{
	UjobsSlot  *slot = slot_at(index);

	SpinLockAcquire(&slot->mutex);
	if (is_of(slot, generation))
	{
		slot->leave = true;
		slot->reserved_until = 0;
	}
	SpinLockRelease(&slot->mutex);
	ujobs_slot_wake(index);
}

void
ujobs_slot_ask_leave_for(int index, uint32 generation, Oid database, Oid role)
{
	UjobsSlot  *slot = slot_at(index);

	SpinLockAcquire(&slot->mutex);
	if (is_of(slot, generation))
	{
		slot->leave = true;
		slot->reserved_database = database;
		slot->reserved_role = role;
		slot->reserved_until = DT_NOEND;	/* until it is free: then for RESERVED_US */
	}
	SpinLockRelease(&slot->mutex);
	ujobs_slot_wake(index);
}

void
ujobs_slot_wake(int index)
{
	Latch	   *latch = slot_at(index)->latch;

	if (latch != NULL)
		SetLatch(latch);
}

void
ujobs_slot_terminate_all(Oid database)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		UjobsSlot	slot;

		ujobs_slot_copy(i, &slot);
		if (slot.state != UJOBS_SLOT_FREE && slot.database == database && slot.pid != 0)
			kill(slot.pid, SIGTERM);
	}
}

int
ujobs_slot_find_running(int64 job_id, UjobsSlot *copy)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		UjobsSlot	slot;

		if (slot_at(i)->job_id != job_id)
			continue;			/* a stale miss is one the caller could have seen */
		ujobs_slot_copy(i, &slot);
		if (slot.database != MyDatabaseId || slot.state != UJOBS_SLOT_BUSY || slot.job_id != job_id)
			continue;
		if (copy != NULL)
			*copy = slot;
		return i;
	}
	return -1;
}
