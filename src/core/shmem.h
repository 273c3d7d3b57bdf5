/*
 * shmem.h: the shared-memory contract between backends and processes.
 *
 * Two pieces.  UjobsControl is small and lives in the main segment (it fits
 * into the reserve that a server keeps for libraries loaded late, so nothing
 * here needs shared_preload_libraries).  Each database with an engine has a
 * UjobsArea, a pinned dynamic segment that its dispatcher makes.
 *
 * Locks, in this order: control->lock (engines and slots come and go), then
 * one slot's spinlock (who runs what, and its ring), then area->hint_lock.
 * A claim's mutex (core/claim.h) is taken alone.
 * Nothing under a spinlock can raise, allocate or wait.
 *
 * Everything here is a hint or a process's own state: after a crash it is
 * zero, and rows say what is true.
 */
#ifndef UJOBS_CORE_SHMEM_H
#define UJOBS_CORE_SHMEM_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/dsm.h"
#include "storage/ipc.h"			/* exit callbacks give slots and engines back */
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/spin.h"

#include "core/awaited.h"
#include "core/claim.h"
#include "core/flight.h"
#include "core/tally.h"

#define UJOBS_MAX_SLOTS 64
#define UJOBS_MAX_ENGINES 48
#define UJOBS_RING_SIZE 256		/* admitted ids of one executor; power of two */
#define UJOBS_HINT_RING_SIZE 8192	/* power of two */
#define UJOBS_MAX_WAITERS 128

/* What a commit tells the dispatcher. */
typedef enum UjobsHintKind
{
	UJOBS_HINT_JOB,				/* a row may start at due_at */
	UJOBS_HINT_RANGE,			/* many rows of a lane and priority, from (due_at, id) on */
	UJOBS_HINT_GONE,			/* the job left the live table: interrupt its run */
	UJOBS_HINT_DEFINITIONS,		/* definitions, grants or queues changed */
	UJOBS_HINT_TASKS,			/* tasks changed: passed on to the scheduler */
	UJOBS_HINT_CONFIG,			/* start_workers, stop_workers */
	UJOBS_HINT_EVENT,			/* an event was published: id is the event's */
	UJOBS_HINT_WAIT,			/* the job is suspended at a wait */
	UJOBS_HINT_ENDED			/* the job ended, and may be awaited */
} UjobsHintKind;

typedef struct UjobsHint
{
	int64		id;
	TimestampTz due_at;
	int32		definition_id;
	uint32		queue_hash;		/* ujobs_queue_hash() of the queue's name */
	uint64		tenant_hash;	/* ujobs_tenant_hash(); 0 = none */
	int16		priority;
	uint8		kind;			/* UjobsHintKind */
} UjobsHint;

/* One admitted job in an executor's ring. */
typedef struct UjobsTicket
{
	int64		id;
	int32		definition_id;
	int16		flags;
	int16		batch;			/* how many of its definition may share a transaction */
	uint64		tenant_hash;	/* with queue_hash: whose units of limits it takes */
	uint32		queue_hash;
	TimestampTz begun;			/* UJOBS_TICKET_RATED only: when its job began, 0 = not yet */
} UjobsTicket;

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
 * all under mutex but for the latch, which never changes while alive.
 */
typedef struct UjobsSlot
{
	slock_t		mutex;
	UjobsSlotState state;
	uint32		generation;		/* grows at each birth */
	Oid			database;
	Oid			role;
	pid_t		pid;
	Latch	   *latch;
	bool		leave;			/* go when the job at hand is done */
	Oid			heir_database;	/* whom it is kept for when it leaves, until heir_until */
	Oid			heir_role;
	TimestampTz heir_until;
	bool		died;			/* free because its process was ended or failed */
	bool		notify;			/* ring the dispatcher after every job */
	uint32		low_water;		/* ring the dispatcher when so few are left */
	uint32		head;			/* next to run */
	uint32		tail;			/* next free */
	uint64		taken;			/* tickets finished with, ever */
	uint64		jobs_done;
	uint64		work_us;		/* of handlers, ever; waiting for a commit is not work */
	bool		committing;		/* the handlers of the tickets at hand have returned */
	int64		job_id;			/* running now, 0 = none */
	int64		cancel_id;		/* interrupt this job if it still runs */
	int32		definition_id;
	int32		attempt;
	TimestampTz job_started;
	TimestampTz since;			/* state as of */
	pg_atomic_uint64 memory;	/* bytes allocated, 0 = not told yet */
} UjobsSlot;

typedef enum UjobsEngineState
{
	UJOBS_ENGINE_NONE,			/* slot not in use */
	UJOBS_ENGINE_DOWN,			/* database known, no dispatcher alive */
	UJOBS_ENGINE_RUNNING,
	UJOBS_ENGINE_DRAINING,		/* stop_workers: in-flight work may finish */
	UJOBS_ENGINE_STOPPED,		/* by hand, remembered in the store */
	UJOBS_ENGINE_PAUSED			/* the store is in a strange home */
} UjobsEngineState;

/* The engine of one database; fields under control->lock unless atomic. */
typedef struct UjobsEngine
{
	Oid			database;
	UjobsEngineState state;
	pid_t		dispatcher_pid;
	Latch	   *volatile dispatcher_latch;	/* valid memory for ever, maybe stale; see ujobs_wakeup_ring */
	pid_t		scheduler_pid;
	Latch	   *volatile scheduler_latch;	/* as dispatcher_latch */
	pg_atomic_uint32 tasks_changed; /* the scheduler reads its tasks again */
	pid_t		relay_pid;
	Latch	   *volatile relay_latch;	/* as dispatcher_latch */
	pg_atomic_uint64 outbox_low;	/* least outbox id committed since the relay looked; UINT64_MAX = none */
	pg_atomic_uint32 relay_changed; /* sinks, consumers or definitions changed */
	dsm_handle	area;			/* DSM_HANDLE_INVALID before the first start */
	TimestampTz since;
	TimestampTz asked_at;		/* when somebody last asked for a dispatcher */
	TimestampTz hold_until;		/* DDL on the database: nobody starts before */
	bool		no_worker;		/* max_worker_processes is exhausted */
	pg_atomic_uint32 dirty;		/* hints were lost: rescan */
	pg_atomic_uint64 starts;	/* dispatchers started, ever */
	pg_atomic_uint64 dispatcher_memory;	/* bytes allocated, 0 = not told yet */
} UjobsEngine;

typedef struct UjobsControl
{
	LWLock	   *lock;
	pid_t		launcher_pid;
	Latch	   *volatile launcher_latch;
	pg_atomic_uint32 launcher_rung;	/* look at the databases again */
	int			most_executors; /* until most_until, for processes are short */
	TimestampTz most_until;
	UjobsEngine engine[UJOBS_MAX_ENGINES];
	UjobsSlot	slot[UJOBS_MAX_SLOTS];
} UjobsControl;

/* Somebody in wait_for_job. */
typedef struct UjobsWaiter
{
	int64		job_id;			/* 0 = free */
	Latch	   *latch;
} UjobsWaiter;

/*
 * How a limit that somebody holds units of stands, for those who ask why a job
 * waits: as many as tenants whose jobs the dispatcher knows.  The dispatcher
 * alone writes; readers take a glance without a lock.
 */
#define UJOBS_CAPS_SHOWN 20480

typedef struct UjobsCapShown
{
	uint32		kind;			/* UjobsCapShownKind */
	uint32		of;				/* definition id, or the queue's hash */
	uint64		tenant_hash;
	int32		used;			/* units */
	TimestampTz until;			/* its rate allows nothing more before; 0 = not at its rate */
} UjobsCapShown;

typedef enum UjobsCapShownKind
{
	UJOBS_SHOWN_NOTHING,
	UJOBS_SHOWN_DEFINITION,
	UJOBS_SHOWN_QUEUE,
	UJOBS_SHOWN_TENANT
} UjobsCapShownKind;

/* Per-database memory. */
typedef struct UjobsArea
{
	slock_t		hint_lock;
	uint32		hint_head;
	uint32		hint_tail;
	slock_t		waiter_lock;
	pg_atomic_uint32 waiters;	/* in use; 0 lets a finish skip the list */
	UjobsWaiter waiter[UJOBS_MAX_WAITERS];
	UjobsTallies tallies;
	UjobsAwaited awaited;
	UjobsClaims claims;
	UjobsCapShown caps[UJOBS_CAPS_SHOWN];
	UjobsFlight flight[UJOBS_FLIGHTS];	/* of the outbox (core/flight.h) */
	int32		running;		/* inside and outside, when ujobs.max_running was last looked at */
	UjobsHint	hint[UJOBS_HINT_RING_SIZE];
	UjobsTicket ring[UJOBS_MAX_SLOTS][UJOBS_RING_SIZE];
} UjobsArea;

/* Called by _PG_init when preloaded: reserves the main segment's part. */
extern void ujobs_shmem_preload(void);

/* The control block; made on first use.  May take AddinShmemInitLock. */
extern UjobsControl *ujobs_shmem_control(void);

/*
 * The engine entry of a database, or NULL.  create: take a free entry when
 * there is none (NULL when all are taken).  Caller must not hold control->lock.
 */
extern UjobsEngine *ujobs_shmem_engine(Oid database, bool create);

/* The database or its extension is gone: frees the entry and lets the segment go. */
extern void ujobs_shmem_forget_engine(Oid database);

/*
 * This database's area, attached for the life of the process, or NULL while
 * no dispatcher ever ran here.  With create (dispatcher only) it is made.
 * May raise on out of memory; call it before commit, never in a callback.
 */
extern UjobsArea *ujobs_shmem_area(bool create);

/* The area if this process has attached it already; never raises. */
extern UjobsArea *ujobs_shmem_area_attached(void);

/* A stable hash of a queue's name, for hints. */
extern uint32 ujobs_queue_hash(const char *queue);

/* The same of a tenant's, so long that it stands for the name; 0 for "" (none). */
extern uint64 ujobs_tenant_hash(const char *tenant);

/* Is a dispatcher alive and serving this database? */
extern bool ujobs_shmem_engine_serves(void);

/* Somebody asks for one: for a moment it is to be expected. */
extern void ujobs_shmem_ask_engine(Oid database);

/* None is, but one is to be expected: somebody asked for it, or a launcher keeps it. */
extern bool ujobs_shmem_engine_is_coming(void);

/* The slot that runs a job of this database now, or -1. */
extern int	ujobs_shmem_find_running(int64 job_id, UjobsSlot *copy);

#endif							/* UJOBS_CORE_SHMEM_H */
