/*
 * shmem.h: the control block, the part of shared memory that all databases share.
 *
 * It lives in the main segment and fits into the reserve that a server keeps
 * for libraries loaded late, so nothing here needs shared_preload_libraries.
 * Each database with an engine has besides a UjobsArea (area.h).
 *
 * Locks, and the one file that takes each:
 *
 *     engine_lock (LWLock)      engine.c   engines, their processes and segments, the launcher
 *     slot_lock (LWLock)        slot.c     slots are allocated and freed
 *     slot->mutex (spinlock)    slot.c     one executor and its ring
 *     area->hint_lock           wakeup.c   the ring of hints
 *     area->waiter_lock         wakeup.c   sessions in wait_for_job
 *     claim->lock (LWLock)      claim.c    one place of the claims
 *     counters->lock (LWLock)   queue_counters.c  a queue comes into the table
 *
 * None is taken while another one of these is held, but for slot->mutex under
 * slot_lock.  Under a spinlock are plain loads and stores of a few cache
 * lines: nothing that can raise, allocate, sleep, fault or call the kernel.
 */
#ifndef UJOBS_CORE_SHMEM_H
#define UJOBS_CORE_SHMEM_H

#include "core/area.h"

#include "storage/dsm.h"

#define UJOBS_MAX_ENGINES 48

typedef enum UjobsSlotState
{
	UJOBS_SLOT_FREE,
	UJOBS_SLOT_STARTING,		/* registered, not yet alive */
	UJOBS_SLOT_IDLE,			/* alive, its ring is empty */
	UJOBS_SLOT_BUSY
} UjobsSlotState;

/*
 * One executor.  Written by the dispatcher of its database (birth, tail of
 * the ring, leave, cancel) and by the executor (head, job, counters, death),
 * all under mutex but for the latch, which never changes while alive.  Each
 * has cache lines of its own: neighbours are written at every job.
 */
typedef struct pg_attribute_aligned(PG_CACHE_LINE_SIZE) UjobsSlot
{
	slock_t		mutex;
	UjobsSlotState state;
	uint32		generation;		/* grows at each birth */
	Oid			database;
	Oid			role;
	pid_t		pid;
	Latch	   *latch;
	bool		leave;			/* go when the job at hand is done */
	Oid			reserved_database;	/* whom it is kept for when it leaves, until reserved_until */
	Oid			reserved_role;
	TimestampTz reserved_until;
	bool		died;			/* free because its process was ended or failed */
	bool		notify;			/* wake the dispatcher after every job */
	uint32		low_water;		/* wake the dispatcher when so few are left */
	uint32		head;			/* next to run */
	uint32		tail;			/* next free */
	uint64		taken;			/* tickets finished with, ever */
	uint32		former_generation;	/* of the executor that had the slot before, and what it left */
	uint64		former_taken;
	bool		former_died;
	uint64		jobs_done;
	uint64		work_us;		/* of handlers, ever; waiting for a commit is not work */
	bool		committing;		/* the handlers of the tickets at hand have returned */
	int64		job_id;			/* running now, 0 = none */
	int64		cancel_id;		/* a SIGINT for this job is being sent */
	bool		cancel_sent;	/* it was: the executor waits for this before its next job */
	int64		evicted_id;		/* its process is ended because this job ignored an interrupt; 0 = not */
	int32		definition_id;
	int32		attempt;
	TimestampTz job_started;
	TimestampTz since;			/* state as of */
	pg_atomic_uint64 interrupted_at;	/* when its job was told to end, 0 = it was not */
	pg_atomic_uint64 memory;	/* bytes allocated, 0 = not told yet */
} UjobsSlot;

typedef enum UjobsEngineState
{
	UJOBS_ENGINE_NONE,			/* slot not in use */
	UJOBS_ENGINE_DOWN,			/* database known, no dispatcher alive */
	UJOBS_ENGINE_RUNNING,
	UJOBS_ENGINE_DRAINING,		/* stop_workers: in-flight work may finish */
	UJOBS_ENGINE_STOPPED,		/* by hand, remembered in the store */
	UJOBS_ENGINE_PAUSED			/* the store was restored or copied from another database */
} UjobsEngineState;

/* The engine of one database; fields are written under engine_lock unless atomic. */
typedef struct UjobsEngine
{
	Oid			database;
	UjobsEngineState state;
	pid_t		dispatcher_pid;
	Latch	   *volatile dispatcher_latch;	/* valid memory for ever, maybe stale; see ujobs_engine_wake */
	pid_t		scheduler_pid;
	Latch	   *volatile scheduler_latch;	/* as dispatcher_latch */
	pg_atomic_uint32 tasks_changed; /* the scheduler reads its tasks again */
	pid_t		relay_pid;
	Latch	   *volatile relay_latch;	/* as dispatcher_latch */
	pg_atomic_uint64 outbox_low;	/* least outbox id committed since the relay looked; UINT64_MAX = none */
	pg_atomic_uint32 relay_changed; /* sinks, consumers or definitions changed */
	dsm_handle	area;			/* DSM_HANDLE_INVALID before the first start */
	TimestampTz since;
	TimestampTz asked_at;		/* when a session last asked for a dispatcher */
	TimestampTz hold_until;		/* DDL on the database: no process starts before */
	bool		no_worker;		/* max_worker_processes is exhausted */
	pg_atomic_uint32 dirty;		/* hints were lost: rescan */
	pg_atomic_uint64 starts;	/* dispatchers started, ever */
	pg_atomic_uint64 dispatcher_memory;	/* bytes allocated, 0 = not told yet */
} UjobsEngine;

typedef struct UjobsControl
{
	LWLock	   *engine_lock;
	LWLock	   *slot_lock;
	pid_t		launcher_pid;
	Latch	   *volatile launcher_latch;	/* as dispatcher_latch */
	pg_atomic_uint32 launcher_asked; /* look at the databases again */
	int			most_executors; /* until most_until, for processes are short; under slot_lock */
	TimestampTz most_until;
	UjobsEngine engine[UJOBS_MAX_ENGINES];
	UjobsSlot	slot[UJOBS_MAX_SLOTS];
} UjobsControl;

/* Called by _PG_init when preloaded: reserves the main segment's part. */
extern void ujobs_shmem_preload(void);

/* The control block; made on first use.  May take AddinShmemInitLock. */
extern UjobsControl *ujobs_shmem_control(void);

#endif							/* UJOBS_CORE_SHMEM_H */
