/*
 * enqueue_store.h: new rows of the live table, step 1 of the walk of a job.
 *
 * Both functions open an identity section where they need one, write in the caller's
 * transaction, and note the hints that wake the engine at its commit.
 *
 * A key that another transaction holds uncommitted is waited for.  Above READ
 * COMMITTED a holder that the snapshot does not see raises 40001.
 */
#ifndef UJOBS_STORE_ENQUEUE_STORE_H
#define UJOBS_STORE_ENQUEUE_STORE_H

#include "store/enqueue_direct.h"

/* A random run_id; costs little. */
extern void ujobs_enqueue_run_id(pg_uuid_t *id);

extern void ujobs_enqueue_one(const UjobsEnqueueOptions *options, UjobsEnqueueItem *item);

/*
 * All items, in order of (tenant, key), so that overlapping calls never wait
 * for each other in a circle.  Items of one key share a job; ids follow the
 * order of the items.  Runs in a subtransaction of its own.
 */
extern void ujobs_enqueue_many(const UjobsEnqueueOptions *options, UjobsEnqueueItem *items, int n);

#endif							/* UJOBS_STORE_ENQUEUE_STORE_H */
