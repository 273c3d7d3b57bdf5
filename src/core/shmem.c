/*
 * shmem.c: makes and finds the control block.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

#include "core/crashmark.h"
#include "core/shmem.h"

static UjobsControl *control = NULL;
static shmem_request_hook_type prev_request_hook = NULL;
static shmem_startup_hook_type prev_startup_hook = NULL;

#define N_LOCKS 2

static void
control_init(UjobsControl *c, LWLockPadded *locks)
{
	int			tranche = LWLockNewTrancheId();

	memset(c, 0, sizeof(*c));
	for (int i = 0; i < N_LOCKS; i++)
		LWLockInitialize(&locks[i].lock, tranche);
	c->engine_lock = &locks[0].lock;
	c->slot_lock = &locks[1].lock;
	pg_atomic_init_u32(&c->launcher_asked, 0);
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
		pg_atomic_init_u64(&c->slot[i].interrupted_at, 0);
		pg_atomic_init_u64(&c->slot[i].memory, 0);
	}
}

static Size
control_size(void)
{
	/* The locks are part of it, so that a late start needs no tranche. */
	return MAXALIGN(sizeof(UjobsControl)) + N_LOCKS * sizeof(LWLockPadded);
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
		control_init(c, (LWLockPadded *) ((char *) c + MAXALIGN(sizeof(UjobsControl))));
		ujobs_crashmark_recover();
	}
	LWLockRelease(AddinShmemInitLock);
	LWLockRegisterTranche(c->engine_lock->tranche, "ujobs");
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
