/*
 * engine.c: engines, their processes and their segments.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "core/crashmark.h"
#include "core/engine.h"

#define COMING_US (INT64CONST(3) * USECS_PER_SEC)

static UjobsArea *area = NULL;
static dsm_handle area_handle = DSM_HANDLE_INVALID;

static void
lock(LWLockMode mode)
{
	Assert(!LWLockHeldByMe(ujobs_shmem_control()->engine_lock));
	LWLockAcquire(ujobs_shmem_control()->engine_lock, mode);
}

static void
unlock(void)
{
	LWLockRelease(ujobs_shmem_control()->engine_lock);
}

/* ---- entries ---- */

static UjobsEngine *
find(Oid database, UjobsEngine **free_entry)
{
	UjobsControl *control = ujobs_shmem_control();

	for (int i = 0; i < UJOBS_MAX_ENGINES; i++)
	{
		UjobsEngine *engine = &control->engine[i];

		if (engine->state != UJOBS_ENGINE_NONE && engine->database == database)
			return engine;
		if (engine->state == UJOBS_ENGINE_NONE && *free_entry == NULL)
			*free_entry = engine;
	}
	return NULL;
}

static UjobsEngine *
find_or_take(Oid database, bool take)
{
	static UjobsEngine *last = NULL;
	UjobsEngine *free_entry = NULL;
	UjobsEngine *engine;

	if (last != NULL && last->database == database && last->state != UJOBS_ENGINE_NONE)
		return last;
	lock(take ? LW_EXCLUSIVE : LW_SHARED);
	engine = find(database, &free_entry);
	if (engine == NULL && take && free_entry != NULL)
	{
		engine = free_entry;
		engine->database = database;
		engine->state = UJOBS_ENGINE_DOWN;
		engine->since = GetCurrentTimestamp();
	}
	unlock();
	if (engine != NULL)
		last = engine;
	return engine;
}

UjobsEngine *
ujobs_engine_find(Oid database)
{
	return find_or_take(database, false);
}

UjobsEngine *
ujobs_engine_get(Oid database)
{
	return find_or_take(database, true);
}

bool
ujobs_engine_forget(Oid database)
{
	UjobsEngine *engine = ujobs_engine_find(database);
	dsm_handle	handle = DSM_HANDLE_INVALID;
	bool		freed;

	if (engine == NULL)
		return true;
	lock(LW_EXCLUSIVE);
	freed = engine->database == database && engine->dispatcher_pid == 0;
	if (freed)
	{
		handle = engine->area;
		engine->area = DSM_HANDLE_INVALID;
		engine->state = UJOBS_ENGINE_NONE;
		engine->database = InvalidOid;
		engine->dispatcher_latch = NULL;
		engine->scheduler_latch = NULL;
		engine->relay_latch = NULL;
		pg_atomic_write_u64(&engine->outbox_low, PG_UINT64_MAX);
		engine->hold_until = engine->asked_at = 0;
		engine->no_worker = false;
		pg_atomic_write_u32(&engine->dirty, 0);
		pg_atomic_write_u32(&engine->relay_changed, 0);
		pg_atomic_write_u32(&engine->tasks_changed, 0);
	}
	unlock();
	if (freed)
		ujobs_crashmark_forget(database);
	if (handle != DSM_HANDLE_INVALID)
		dsm_unpin_segment(handle);
	return freed;
}

pid_t
ujobs_engine_copy_all(UjobsEngine *copies)
{
	UjobsControl *control = ujobs_shmem_control();
	pid_t		launcher;

	lock(LW_SHARED);
	memcpy(copies, control->engine, sizeof(control->engine));
	launcher = control->launcher_pid;
	unlock();
	return launcher;
}

/* ---- state ---- */

void
ujobs_engine_set_state(UjobsEngine *engine, UjobsEngineState state)
{
	lock(LW_EXCLUSIVE);
	engine->state = state;
	engine->since = GetCurrentTimestamp();
	unlock();
}

bool
ujobs_engine_begin(UjobsEngine *engine, bool (*may_begin) (int wanted), int wanted)
{
	bool		may;

	lock(LW_EXCLUSIVE);
	may = may_begin(wanted);
	if (may)
	{
		engine->state = UJOBS_ENGINE_RUNNING;
		engine->since = GetCurrentTimestamp();
		engine->no_worker = false;
	}
	unlock();
	return may;
}

void
ujobs_engine_set_shortage(UjobsEngine *engine, bool no_worker)
{
	if (engine->no_worker == no_worker)
		return;
	lock(LW_EXCLUSIVE);
	engine->no_worker = no_worker;
	unlock();
}

void
ujobs_engine_hold(UjobsEngine *engine, TimestampTz until)
{
	lock(LW_EXCLUSIVE);
	engine->hold_until = until;
	unlock();
}

void
ujobs_engine_ask(Oid database)
{
	UjobsEngine *engine = ujobs_engine_get(database);

	if (engine == NULL)
		return;
	lock(LW_EXCLUSIVE);
	engine->asked_at = GetCurrentTimestamp();
	unlock();
}

bool
ujobs_engine_serves(void)
{
	UjobsEngine *engine = ujobs_engine_find(MyDatabaseId);

	return engine != NULL && engine->dispatcher_pid != 0 &&
		engine->state == UJOBS_ENGINE_RUNNING;
}

bool
ujobs_engine_is_coming(void)
{
	UjobsEngine *engine = ujobs_engine_find(MyDatabaseId);

	if ((engine == NULL || engine->state == UJOBS_ENGINE_DOWN) &&
		ujobs_shmem_control()->launcher_pid != 0)
		return true;
	return engine != NULL && (engine->state == UJOBS_ENGINE_RUNNING ||
							  GetCurrentTimestamp() - engine->asked_at < COMING_US);
}

/* ---- processes ---- */

bool
ujobs_engine_enter_process(pid_t *pid, Latch *volatile *latch)
{
	bool		is_free;

	lock(LW_EXCLUSIVE);
	is_free = *pid == 0;
	if (is_free)
	{
		*pid = MyProcPid;
		*latch = MyLatch;
	}
	unlock();
	return is_free;
}

bool
ujobs_engine_leave_process(pid_t *pid)
{
	bool		mine;

	lock(LW_EXCLUSIVE);
	mine = *pid == MyProcPid;
	if (mine)
		*pid = 0;
	unlock();
	return mine;
}

void
ujobs_engine_leave_dispatcher(UjobsEngine *engine)
{
	lock(LW_EXCLUSIVE);
	if (engine->dispatcher_pid == MyProcPid)
	{
		engine->dispatcher_pid = 0;
		if (engine->state == UJOBS_ENGINE_RUNNING || engine->state == UJOBS_ENGINE_DRAINING)
			engine->state = UJOBS_ENGINE_DOWN;
	}
	unlock();
}

void
ujobs_engine_take_launcher(void)
{
	UjobsControl *control = ujobs_shmem_control();

	lock(LW_EXCLUSIVE);
	control->launcher_latch = MyLatch;
	control->launcher_pid = MyProcPid;
	unlock();
}

void
ujobs_engine_leave_launcher(void)
{
	(void) ujobs_engine_leave_process(&ujobs_shmem_control()->launcher_pid);
}

/* Read once: DROP EXTENSION may clear the place between a test and a second look. */
void
ujobs_engine_wake(Latch *volatile *latch)
{
	Latch	   *there = *latch;

	if (there != NULL)
		SetLatch(there);
}

void
ujobs_engine_wake_launcher(void)
{
	UjobsControl *control = ujobs_shmem_control();

	pg_atomic_write_u32(&control->launcher_asked, 1);
	ujobs_engine_wake(&control->launcher_latch);
}

/* ---- the database's memory ---- */

static UjobsArea *
map(dsm_segment *segment)
{
	dsm_pin_mapping(segment);
	area = dsm_segment_address(segment);
	area_handle = dsm_segment_handle(segment);
	return area;
}

static UjobsArea *
create(UjobsEngine *engine)
{
	dsm_segment *segment = dsm_create(sizeof(UjobsArea), 0);

	/* A fresh segment is zero-filled. */
	ujobs_area_init(dsm_segment_address(segment), ujobs_shmem_control()->engine_lock->tranche);
	dsm_pin_segment(segment);
	map(segment);
	lock(LW_EXCLUSIVE);
	engine->area = area_handle;
	unlock();
	return area;
}

/* Mapped already, and of this engine? */
static bool
is_current(const UjobsEngine *engine)
{
	return area != NULL && engine != NULL && engine->area == area_handle;
}

static UjobsArea *
attach(UjobsEngine *engine)
{
	dsm_segment *segment;

	/*
	 * The extension was dropped and made again: its new engine has another
	 * segment.  The old one stays mapped, for pointers to it are held.
	 */
	area = NULL;
	if (engine == NULL || engine->area == DSM_HANDLE_INVALID)
		return NULL;
	segment = dsm_attach(engine->area);
	if (segment == NULL)
		elog(ERROR, "could not attach to the ujobs segment of database %u", MyDatabaseId);
	return map(segment);
}

UjobsArea *
ujobs_engine_area(void)
{
	UjobsEngine *engine = ujobs_engine_find(MyDatabaseId);

	return is_current(engine) ? area : attach(engine);
}

UjobsArea *
ujobs_engine_create_area(void)
{
	UjobsEngine *engine = ujobs_engine_get(MyDatabaseId);

	if (is_current(engine) || attach(engine) != NULL)
		return area;
	return engine == NULL ? NULL : create(engine);
}

UjobsArea *
ujobs_engine_area_attached(void)
{
	return area;
}
