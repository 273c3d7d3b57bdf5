/*
 * worker.h: what every process of the engine has in common: start, the wait
 * between two pieces of work, end.
 */
#ifndef UJOBS_WORKER_WORKER_H
#define UJOBS_WORKER_WORKER_H

#include "postgres.h"

#include "libpq/pqsignal.h"

#include "datatype/timestamp.h"

#include "core/wake_pipe.h"
#include "core/engine.h"

/* What RegisterDynamicBackgroundWorker carries to an executor, in bgw_extra. */
typedef struct UjobsExecutorSpec
{
	Oid			database;
	Oid			role;
	uint32		generation;
} UjobsExecutorSpec;

/*
 * A SIGINT that is no pg_cancel_backend: lock_timeout interrupts its own
 * process in this way.  For processes that no other may interrupt.
 */
extern void ujobs_worker_own_cancel(SIGNAL_ARGS);

/* Did lock_timeout send the SIGINT at hand? */
extern bool ujobs_worker_is_own_cancel(void);

/*
 * The entry in shared memory is the lock of what there is once per database: a
 * process that finds another one there ends.  Afterwards its latch can be set
 * by others.  at_exit runs when the process ends, with or without the entry.
 */
extern void ujobs_worker_enter(pid_t *pid, Latch *volatile *latch, pg_on_exit_callback at_exit);

/* Asks the process that has the entry to end. */
extern void ujobs_worker_end(pid_t pid);

/* In a transaction of its own: is there an extension in this database? */
extern bool ujobs_worker_extension_is_here(void);

/* Handlers first, then unblock; SIGHUP reloads. */
extern void ujobs_worker_signals(pqsigfunc on_terminate, pqsigfunc on_cancel);

/*
 * After connecting: real clock, and settings that neither a role nor a
 * database can change: read committed, read-write, no statement timeouts.
 */
extern void ujobs_worker_settle_session(const char *application_name);

/*
 * Connects a process that runs no user code, as the bootstrap superuser, and
 * settles its session.
 */
extern void ujobs_worker_connect(Oid database, const char *application_name,
								 const char *lock_timeout);

/*
 * The one latch wait: at most timeout_ms (-1: for ever), then interrupts and
 * reload.  Returns early when the latch is set.
 */
extern void ujobs_worker_wait(long timeout_ms);

/* The same of a process with threads, which write to the pipe. */
extern void ujobs_worker_wait_pipe(UjobsWakePipe *pipe, long timeout_ms);

/* Milliseconds from now until then, rounded up; 0 when past; at most an hour. */
extern long ujobs_worker_ms_until(TimestampTz then);

/* A transaction of the engine's own around its statements; the memory context is the caller's again after it. */
extern void ujobs_worker_begin(void);
extern void ujobs_worker_commit(void);

/* After a PG_CATCH at the top of a process: aborts and cleans up; logs nothing. */
extern void ujobs_worker_recover(MemoryContext context);

/*
 * Runs a piece of work in a transaction of its own.  NULL: it committed; else
 * the error that aborted it, in the current context.
 */
typedef void (*UjobsWork) (void *arg);
extern ErrorData *ujobs_worker_try(UjobsWork work, void *arg);

#endif							/* UJOBS_WORKER_WORKER_H */
