/*
 * engine.h: the engines of the cluster's databases, and the memory of this one's.
 *
 * An engine is what serves a database: a dispatcher, a scheduler, perhaps a
 * relay, each an entry that one process takes.  Entries never move, so that a
 * pointer to one stays valid; one that was given to another database shows it.
 * No function here may be called with engine_lock held.
 */
#ifndef UJOBS_CORE_ENGINE_H
#define UJOBS_CORE_ENGINE_H

#include "storage/ipc.h"			/* exit callbacks leave entries */

#include "core/shmem.h"

/*
 * The entry of a database, or NULL; get: a free entry is taken when there is
 * none (NULL: all are taken).
 */
extern UjobsEngine *ujobs_engine_find(Oid database);
extern UjobsEngine *ujobs_engine_get(Oid database);

/*
 * The database or its extension is gone: frees the entry and lets the segment
 * go.  False: a dispatcher is still alive there, and nothing was changed.
 */
extern bool ujobs_engine_forget(Oid database);

/*
 * Copies of all entries, UJOBS_MAX_ENGINES, as they were at one instant; and
 * the launcher's pid, 0 = none.
 */
extern pid_t ujobs_engine_copy_all(UjobsEngine *copies);

/* ---- state ---- */

extern void ujobs_engine_set_state(UjobsEngine *engine, UjobsEngineState state);

/*
 * The engine runs from now on, if `may_begin` says so under the lock, under
 * which all engines count the same free processes.
 */
extern bool ujobs_engine_begin(UjobsEngine *engine, bool (*may_begin) (int wanted), int wanted);

/* max_worker_processes is exhausted, or is not any more. */
extern void ujobs_engine_set_shortage(UjobsEngine *engine, bool no_worker);

/* DDL on the database: no process of its starts before that instant (0: any may). */
extern void ujobs_engine_hold(UjobsEngine *engine, TimestampTz until);

/* A session asks for an engine: for a moment it is to be expected. */
extern void ujobs_engine_ask(Oid database);

/* Is a dispatcher alive and serving this database?  None is, but is one to be expected? */
extern bool ujobs_engine_serves(void);
extern bool ujobs_engine_is_coming(void);

/* ---- processes ---- */

/* This process takes the entry; false: another process has it. */
extern bool ujobs_engine_enter_process(pid_t *pid, Latch *volatile *latch);

/* It leaves it; false: it had it not. */
extern bool ujobs_engine_leave_process(pid_t *pid);

/* The dispatcher leaves; an engine that was at work is down then. */
extern void ujobs_engine_leave_dispatcher(UjobsEngine *engine);

/* This process is the launcher; it is not any more.  Is there one? */
extern void ujobs_engine_take_launcher(void);
extern void ujobs_engine_leave_launcher(void);

/*
 * Sets the latch of a process, if there is one.  The process may have ended: the
 * latch is valid memory for ever, and another process is woken for nothing.
 */
extern void ujobs_engine_wake(Latch *volatile *latch);

/* The launcher looks at the databases again. */
extern void ujobs_engine_wake_launcher(void);

/* ---- the database's memory ---- */

/*
 * This database's area, attached for the life of the process, or NULL while no
 * dispatcher ever ran here; create (dispatcher only): it is made.  Both may
 * raise on out of memory: before commit, never in a callback.
 */
extern UjobsArea *ujobs_engine_area(void);
extern UjobsArea *ujobs_engine_create_area(void);

/* The area if this process has attached it already; never raises. */
extern UjobsArea *ujobs_engine_area_attached(void);

#endif							/* UJOBS_CORE_ENGINE_H */
