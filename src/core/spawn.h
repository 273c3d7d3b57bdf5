/*
 * spawn.h: how the engine's processes are registered, and the birth of a dispatcher.
 *
 * A dispatcher is started by the launcher, and by start_workers on a server
 * that has not preloaded the library.
 */
#ifndef UJOBS_CORE_SPAWN_H
#define UJOBS_CORE_SPAWN_H

#include "postgres.h"

#include "access/transam.h"
#include "postmaster/bgworker.h"

/*
 * What all of them have in common: the name "ujobs KIND", the entry point
 * ujobs_KIND_main, and a database connection after recovery.  Never restarted
 * by the postmaster unless the caller changes that.
 */
extern void ujobs_spawn_describe(BackgroundWorker *worker, const char *kind, Datum arg);

/*
 * Registers the process.  wait_for is the transaction whose outcome it must
 * know before it reads the store, or InvalidFullTransactionId.  restart: the
 * postmaster starts it again 2 s after it fails, for want of a launcher.
 * False when max_worker_processes is exhausted.
 */
extern bool ujobs_spawn_dispatcher(Oid database, FullTransactionId wait_for, bool restart);

/*
 * The dispatcher, once connected and outside a transaction: waits for the end
 * of the transaction that spawned it.  False when that was rolled back: it
 * must go (exit code 0, which is not restarted).
 */
extern bool ujobs_spawn_confirmed(void);

/* Is a launcher alive that keeps the engines? */
extern bool ujobs_spawn_has_launcher(void);

#endif							/* UJOBS_CORE_SPAWN_H */
