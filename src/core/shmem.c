/*
 * shmem.c: makes and finds the two pieces of shared memory.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

#include "core/crashmark.h"
#include "core/guc.h"
#include "core/shmem.h"

static UjobsControl *control = NULL;
static UjobsArea *area = NULL;
static dsm_handle area_handle = DSM_HANDLE_INVALID;
static shmem_request_hook_type prev_request_hook = NULL;
static shmem_startup_hook_type prev_startup_hook = NULL;

static void
control_init(UjobsControl *c, LWLock *lock)
{
	memset(c, 0, sizeof(*c));
	c->lock = lock;
	pg_atomic_init_u32(&c->launcher_rung, 0);
	for (int i = 0; i < UJOBS_MAX_ENGINES; i++)
	{
		c->engine[i].area = DSM_HANDLE_INVALID;
		pg_atomic_init_u32(&c->engine[i].dirty, 0);
		pg_atomic_init_u64(&c->engine[i].starts, 0);
		pg_atomic_init_u64(&c->engine[i].dispatcher_memory, 0);
		pg_atomic_init_u32(&c->engine[i].tasks_changed, 0);
		pg_atomic_init_u64(&c->engine[i].outbox_low, PG_UINT64_MAX);
		pg_atomic_init_u32(&c->engine[i].relay_changed, 0);
	}
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		SpinLockInit(&c->slot[i].mutex);
		pg_atomic_init_u64(&c->slot[i].memory, 0);
	}
}

static Size
control_size(void)
{
	/* The lock travels with the block, so that a late start needs no tranche. */
	return MAXALIGN(sizeof(UjobsControl)) + sizeof(LWLockPadded);
}

static UjobsControl *
control_attach(void)
{
	bool		found;
	UjobsControl *c;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	c = ShmemInitStruct("ujobs", control_size(), &found);
	if (!found)
	{
		LWLockPadded *lock = (LWLockPadded *) ((char *) c + MAXALIGN(sizeof(UjobsControl)));

		LWLockInitialize(&lock->lock, LWLockNewTrancheId());
		control_init(c, &lock->lock);
		ujobs_crashmark_recover();
	}
	LWLockRelease(AddinShmemInitLock);
	LWLockRegisterTranche(c->lock->tranche, "ujobs");
	return c;
}

static void
request_hook(void)
{
	if (prev_request_hook)
		prev_request_hook();
	RequestAddinShmemSpace(control_size());
}

static void
startup_hook(void)
{
	if (prev_startup_hook)
		prev_startup_hook();
	control = control_attach();
}

void
ujobs_shmem_preload(void)
{
	prev_request_hook = shmem_request_hook;
	shmem_request_hook = request_hook;
	prev_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_hook;
}

UjobsControl *
ujobs_shmem_control(void)
{
	if (control == NULL)
		control = control_attach();
	return control;
}

UjobsEngine *
ujobs_shmem_engine(Oid database, bool create)
{
	static UjobsEngine *last = NULL;
	UjobsControl *c = ujobs_shmem_control();
	UjobsEngine *free_entry = NULL;

	/* Entries never move; one that was given to another database shows it. */
	if (last != NULL && last->database == database && last->state != UJOBS_ENGINE_NONE)
		return last;
	LWLockAcquire(c->lock, create ? LW_EXCLUSIVE : LW_SHARED);
	for (int i = 0; i < UJOBS_MAX_ENGINES; i++)
	{
		UjobsEngine *e = &c->engine[i];

		if (e->state != UJOBS_ENGINE_NONE && e->database == database)
		{
			LWLockRelease(c->lock);
			return last = e;
		}
		if (e->state == UJOBS_ENGINE_NONE && free_entry == NULL)
			free_entry = e;
	}
	if (create && free_entry != NULL)
	{
		free_entry->database = database;
		free_entry->state = UJOBS_ENGINE_DOWN;
		free_entry->since = GetCurrentTimestamp();
	}
	LWLockRelease(c->lock);
	return create ? free_entry : NULL;
}

void
ujobs_shmem_forget_engine(Oid database)
{
	UjobsControl *c = ujobs_shmem_control();
	UjobsEngine *engine = ujobs_shmem_engine(database, false);
	dsm_handle	handle = DSM_HANDLE_INVALID;

	if (engine == NULL)
		return;
	LWLockAcquire(c->lock, LW_EXCLUSIVE);
	if (engine->database == database && engine->dispatcher_pid == 0)
	{
		handle = engine->area;
		engine->area = DSM_HANDLE_INVALID;
		engine->state = UJOBS_ENGINE_NONE;
		engine->database = InvalidOid;
		engine->dispatcher_latch = NULL;
		engine->scheduler_latch = NULL;
		engine->relay_latch = NULL;
		pg_atomic_write_u64(&engine->outbox_low, PG_UINT64_MAX);
		engine->hold_until = 0;
	}
	LWLockRelease(c->lock);
	ujobs_crashmark_forget(database);
	if (handle != DSM_HANDLE_INVALID)
		dsm_unpin_segment(handle);
}

static UjobsArea *
area_map(dsm_segment *segment)
{
	dsm_pin_mapping(segment);
	area = dsm_segment_address(segment);
	area_handle = dsm_segment_handle(segment);
	return area;
}

static UjobsArea *
area_create(UjobsEngine *engine)
{
	dsm_segment *segment = dsm_create(sizeof(UjobsArea), 0);
	UjobsArea  *a = dsm_segment_address(segment);

	/* A fresh segment is zero-filled. */
	SpinLockInit(&a->hint_lock);
	SpinLockInit(&a->waiter_lock);
	pg_atomic_init_u32(&a->waiters, 0);
	ujobs_tally_init(&a->tallies);
	ujobs_awaited_init(&a->awaited);
	ujobs_claim_init(&a->claims);
	dsm_pin_segment(segment);
	area_map(segment);
	LWLockAcquire(ujobs_shmem_control()->lock, LW_EXCLUSIVE);
	engine->area = area_handle;
	LWLockRelease(ujobs_shmem_control()->lock);
	return a;
}

UjobsArea *
ujobs_shmem_area(bool create)
{
	UjobsEngine *engine = ujobs_shmem_engine(MyDatabaseId, create);
	dsm_segment *segment;

	if (area != NULL && engine != NULL && engine->area == area_handle)
		return area;
	/*
	 * The extension was dropped and made again: its new engine has another
	 * segment.  The old one stays mapped, for those who hold a pointer to it.
	 */
	area = NULL;
	if (engine == NULL)
		return NULL;
	if (engine->area == DSM_HANDLE_INVALID)
		return create ? area_create(engine) : NULL;
	segment = dsm_attach(engine->area);
	if (segment == NULL)
		elog(ERROR, "could not attach to the ujobs segment of database %u", MyDatabaseId);
	return area_map(segment);
}

UjobsArea *
ujobs_shmem_area_attached(void)
{
	return area;
}

uint32
ujobs_queue_hash(const char *queue)
{
	return hash_bytes((const unsigned char *) queue, strlen(queue));
}

uint64
ujobs_tenant_hash(const char *tenant)
{
	uint64		hash;

	if (tenant[0] == '\0')
		return 0;
	hash = hash_bytes_extended((const unsigned char *) tenant, strlen(tenant), 0);
	return hash == 0 ? 1 : hash;
}

bool
ujobs_shmem_engine_serves(void)
{
	UjobsEngine *engine = ujobs_shmem_engine(MyDatabaseId, false);

	return engine != NULL && engine->dispatcher_pid != 0 &&
		engine->state == UJOBS_ENGINE_RUNNING;
}

void
ujobs_shmem_ask_engine(Oid database)
{
	UjobsEngine *engine = ujobs_shmem_engine(database, true);

	if (engine != NULL)
		engine->asked_at = GetCurrentTimestamp();
}

bool
ujobs_shmem_engine_is_coming(void)
{
	UjobsEngine *engine = ujobs_shmem_engine(MyDatabaseId, false);

	if (engine == NULL || engine->state == UJOBS_ENGINE_DOWN)
	{
		if (ujobs_shmem_control()->launcher_pid != 0)
			return true;
	}
	return engine != NULL && (engine->state == UJOBS_ENGINE_RUNNING ||
							  GetCurrentTimestamp() - engine->asked_at < 3 * USECS_PER_SEC);
}

int
ujobs_shmem_find_running(int64 job_id, UjobsSlot *copy)
{
	UjobsControl *c = ujobs_shmem_control();

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		UjobsSlot  *slot = &c->slot[i];
		bool		hit;

		if (slot->job_id != job_id)
			continue;			/* a stale miss is one the caller could have seen */
		SpinLockAcquire(&slot->mutex);
		hit = slot->database == MyDatabaseId && slot->state == UJOBS_SLOT_BUSY &&
			slot->job_id == job_id;
		if (hit && copy != NULL)
			*copy = *slot;
		SpinLockRelease(&slot->mutex);
		if (hit)
			return i;
	}
	return -1;
}
