/*
 * wakeup.c: commit hints, step 2 of the walk of a job.
 *
 * One transaction callback per backend, registered at the first note.  At
 * XACT_EVENT_COMMIT the rows are visible to all sessions, so a process that is woken
 * finds them.  The callback neither allocates nor raises: the area was
 * attached when the note was made.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "core/waited_for.h"
#include "core/engine.h"
#include "core/wakeup.h"

#define MAX_NOTES 1024			/* beyond it jobs are noted as ranges */
#define MAX_RANGES 32
#define MAX_FINISHED 1024
#define AT_ONCE 8				/* hints or waiters copied under one hold of a spinlock */

StaticAssertDecl(UJOBS_MAX_WAITERS % AT_ONCE == 0, "waiters are looked at in whole groups");

static UjobsHint *notes = NULL;
static int64 *finished = NULL;
static UjobsHint ranges[MAX_RANGES];
static int	n_notes = 0;
static int	n_ranges = 0;
static uint64 noted = 0;
static int	n_finished = 0;
static bool note_rescan = false;
static bool note_launcher = false;
static bool note_relay = false;
static uint64 note_outbox = PG_UINT64_MAX;	/* least id, PG_UINT64_MAX = none */
static bool note_any = false;
static UjobsEngine *my_engine = NULL;	/* found at note time; entries never move */

static void
notes_clear(void)
{
	n_notes = n_ranges = n_finished = 0;
	note_rescan = note_launcher = note_relay = note_any = false;
	note_outbox = PG_UINT64_MAX;
}

/* Copies a few hints into the ring; false when it is full. */
static bool
push(UjobsArea *area, const UjobsHint *hints, int n)
{
	bool		fits;

	Assert(n <= AT_ONCE);
	SpinLockAcquire(&area->hint_lock);
	fits = area->hint_tail - area->hint_head + n <= UJOBS_HINT_RING_SIZE;
	if (fits)
	{
		for (int i = 0; i < n; i++)
			area->hint[area->hint_tail++ % UJOBS_HINT_RING_SIZE] = hints[i];
	}
	SpinLockRelease(&area->hint_lock);
	return fits;
}

static bool
push_all(UjobsArea *area, const UjobsHint *hints, int n)
{
	for (int i = 0; i < n; i += AT_ONCE)
	{
		if (!push(area, hints + i, Min(AT_ONCE, n - i)))
			return false;
	}
	return true;
}

/* Did it end in this transaction?  When more ended than were noted, any may have. */
static bool
has_finished(int64 job_id)
{
	if (n_finished == MAX_FINISHED)
		return true;
	for (int i = 0; i < n_finished; i++)
	{
		if (finished[i] == job_id)
			return true;
	}
	return false;
}

static void
wake_waiters(UjobsArea *area)
{
	UjobsWaiter some[AT_ONCE];

	if (pg_atomic_read_u32(&area->waiters) == 0)
		return;
	for (int from = 0; from < UJOBS_MAX_WAITERS; from += AT_ONCE)
	{
		SpinLockAcquire(&area->waiter_lock);
		memcpy(some, &area->waiter[from], sizeof(some));
		SpinLockRelease(&area->waiter_lock);
		/* A waiter that has gone meanwhile is woken for nothing: its latch stays valid. */
		for (int i = 0; i < AT_ONCE; i++)
		{
			if (some[i].job_id != 0 && has_finished(some[i].job_id))
				SetLatch(some[i].latch);
		}
	}
}

/*
 * Ended jobs that others wait for become hints.  True when the dispatcher
 * is to be woken.
 */
static bool
push_waited_for(UjobsArea *area)
{
	bool		any = n_finished == MAX_FINISHED;

	if (any)
		pg_atomic_write_u32(&my_engine->dirty, 1);	/* more ended than were noted */
	pg_memory_barrier();
	for (int i = 0; i < n_finished; i++)
	{
		UjobsHint	hint = {.id = finished[i], .kind = UJOBS_HINT_ENDED};

		if (!ujobs_waited_for_test(&area->waited_for, finished[i]))
			continue;
		any = true;
		if (!push(area, &hint, 1))
			pg_atomic_write_u32(&my_engine->dirty, 1);
	}
	return any;
}

static bool
publish_finished(UjobsArea *area)
{
	if (n_finished == 0)
		return false;
	if (area == NULL)
	{
		/* A dispatcher that begins now may look before our commit. */
		pg_atomic_write_u32(&my_engine->dirty, 1);
		return false;
	}
	wake_waiters(area);
	return push_waited_for(area);
}

/* Lowers the relay's mark.  Who reads it clears it first and reads rows then. */
static void
lower_outbox(UjobsEngine *engine, uint64 id)
{
	uint64		now = pg_atomic_read_u64(&engine->outbox_low);

	while (id < now && !pg_atomic_compare_exchange_u64(&engine->outbox_low, &now, id))
		;
}

static void
publish_to_relay(void)
{
	if (note_outbox == PG_UINT64_MAX && !note_relay)
		return;
	if (note_relay)
		pg_atomic_write_u32(&my_engine->relay_changed, 1);
	lower_outbox(my_engine, note_outbox);
	pg_memory_barrier();
	ujobs_engine_wake(&my_engine->relay_latch);
	if (note_relay && my_engine->relay_pid == 0)
		ujobs_engine_wake(&my_engine->dispatcher_latch);	/* now there may be something for one to do */
}

static void
publish(void)
{
	UjobsArea  *area = ujobs_engine_area_attached();
	bool		waited_for;

	if (note_launcher)
	{
		(void) ujobs_engine_get(MyDatabaseId);	/* a look before this commit may have found nothing here */
		ujobs_engine_wake_launcher();
	}
	if (my_engine == NULL)
		return;
	publish_to_relay();
	waited_for = publish_finished(area);
	if (n_notes == 0 && !note_rescan && !waited_for)
		return;
	if (area == NULL || !push_all(area, notes, n_notes) || !push_all(area, ranges, n_ranges) ||
		note_rescan)
		pg_atomic_write_u32(&my_engine->dirty, 1);
	pg_memory_barrier();
	ujobs_engine_wake(&my_engine->dispatcher_latch);
}

static void
at_xact_event(XactEvent event, void *arg)
{
	if (!note_any)
		return;
	switch (event)
	{
		case XACT_EVENT_COMMIT:
			publish();
			notes_clear();
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:	/* COMMIT PREPARED asks for a rescan */
			notes_clear();
			break;
		default:
			break;
	}
}

/* Everything the callback needs, made while raising is still allowed. */
static void
note_prepare(void)
{
	Assert(IsTransactionState());
	if (notes == NULL)
	{
		notes = MemoryContextAlloc(TopMemoryContext, MAX_NOTES * sizeof(UjobsHint));
		finished = MemoryContextAlloc(TopMemoryContext, MAX_FINISHED * sizeof(int64));
		RegisterXactCallback(at_xact_event, NULL);
	}
	if (!note_any)
	{
		/* An engine that starts after this scans after our commit or is told by dirty. */
		my_engine = ujobs_engine_get(MyDatabaseId);
		(void) ujobs_engine_area();
		note_any = true;
	}
}

/* One more job than is worth a hint: its lane has rows from the least of them on. */
static void
note_range(const UjobsHint *hint)
{
	for (int i = 0; i < n_ranges; i++)
	{
		UjobsHint  *range = &ranges[i];

		if (range->definition_id != hint->definition_id || range->queue_hash != hint->queue_hash ||
			range->tenant_hash != hint->tenant_hash || range->priority != hint->priority)
			continue;
		if (hint->due_at < range->due_at || (hint->due_at == range->due_at && hint->id < range->id))
		{
			range->due_at = hint->due_at;
			range->id = hint->id;
		}
		return;
	}
	if (n_ranges == MAX_RANGES)
	{
		note_rescan = true;
		return;
	}
	ranges[n_ranges] = *hint;
	ranges[n_ranges++].kind = UJOBS_HINT_RANGE;
}

void
ujobs_wakeup_note(const UjobsHint *hint)
{
	note_prepare();
	noted++;
	if (n_notes < MAX_NOTES)
		notes[n_notes++] = *hint;
	else if (hint->kind == UJOBS_HINT_JOB)
		note_range(hint);
	else
		note_rescan = true;
}

void
ujobs_wakeup_note_wait(int64 job_id)
{
	UjobsHint	hint = {.id = job_id, .kind = UJOBS_HINT_WAIT};

	ujobs_wakeup_note(&hint);
}

void
ujobs_wakeup_note_event(int64 event_id)
{
	UjobsHint	hint = {.id = event_id, .kind = UJOBS_HINT_EVENT};

	ujobs_wakeup_note(&hint);
}

uint64
ujobs_wakeup_noted(void)
{
	return noted;
}

void
ujobs_wakeup_note_finished(int64 job_id)
{
	note_prepare();
	if (n_finished < MAX_FINISHED)
		finished[n_finished++] = job_id;
}

void
ujobs_wakeup_note_outbox(int64 outbox_id)
{
	note_prepare();
	note_outbox = Min(note_outbox, (uint64) outbox_id);
}

void
ujobs_wakeup_note_relay(void)
{
	note_prepare();
	note_relay = true;
}

int64
ujobs_wakeup_take_outbox(UjobsEngine *engine)
{
	uint64		low = pg_atomic_exchange_u64(&engine->outbox_low, PG_UINT64_MAX);

	return low > PG_INT64_MAX ? PG_INT64_MAX : (int64) low;
}

bool
ujobs_wakeup_take_relay(UjobsEngine *engine)
{
	return pg_atomic_exchange_u32(&engine->relay_changed, 0) != 0;
}

void
ujobs_wakeup_note_rescan(void)
{
	note_prepare();
	noted++;
	note_rescan = true;
}

void
ujobs_wakeup_note_launcher(void)
{
	note_prepare();
	note_launcher = true;
}

void
ujobs_wakeup_rescan_now(void)
{
	UjobsEngine *engine = ujobs_engine_find(MyDatabaseId);

	if (engine == NULL)
		return;
	pg_atomic_write_u32(&engine->dirty, 1);
	pg_atomic_write_u32(&engine->relay_changed, 1);
	lower_outbox(engine, 0);
	ujobs_engine_wake(&engine->dispatcher_latch);
	ujobs_engine_wake(&engine->relay_latch);
}

void
ujobs_wakeup_dispatcher(void)
{
	if (my_engine == NULL || my_engine->database != MyDatabaseId)
		my_engine = ujobs_engine_find(MyDatabaseId);
	if (my_engine != NULL)
		ujobs_engine_wake(&my_engine->dispatcher_latch);
}

int
ujobs_wakeup_wait(int64 job_id)
{
	UjobsArea  *area = ujobs_engine_area();
	int			index = -1;

	if (area == NULL)
		return -1;
	SpinLockAcquire(&area->waiter_lock);
	for (int i = 0; i < UJOBS_MAX_WAITERS && index < 0; i++)
	{
		if (area->waiter[i].job_id == 0)
		{
			area->waiter[i].job_id = job_id;
			area->waiter[i].latch = MyLatch;
			index = i;
		}
	}
	SpinLockRelease(&area->waiter_lock);
	if (index >= 0)
		pg_atomic_fetch_add_u32(&area->waiters, 1);
	return index;
}

void
ujobs_wakeup_unwait(int index)
{
	UjobsArea  *area = ujobs_engine_area_attached();

	if (index < 0 || area == NULL)
		return;
	SpinLockAcquire(&area->waiter_lock);
	area->waiter[index].job_id = 0;
	SpinLockRelease(&area->waiter_lock);
	pg_atomic_fetch_sub_u32(&area->waiters, 1);
}

static int
take_some(UjobsArea *area, UjobsHint *hints, int max)
{
	int			n = 0;

	SpinLockAcquire(&area->hint_lock);
	while (n < Min(max, AT_ONCE) && area->hint_head != area->hint_tail)
		hints[n++] = area->hint[area->hint_head++ % UJOBS_HINT_RING_SIZE];
	SpinLockRelease(&area->hint_lock);
	return n;
}

int
ujobs_wakeup_take(UjobsHint *hints, int max)
{
	UjobsArea  *area = ujobs_engine_area_attached();
	int			n = 0;
	int			some;

	do
	{
		some = take_some(area, hints + n, max - n);
		n += some;
	} while (some == AT_ONCE && n < max);
	return n;
}

bool
ujobs_wakeup_take_dirty(UjobsEngine *engine)
{
	return pg_atomic_exchange_u32(&engine->dirty, 0) != 0;
}
