/*
 * enqueue_bulk.h: new jobs without a statement, thousands or one, for enqueue_store.c.
 *
 * Those that take many items need an open identity section; the items are in
 * order of (tenant, key), one of each key.
 */
#ifndef UJOBS_STORE_ENQUEUE_BULK_H
#define UJOBS_STORE_ENQUEUE_BULK_H

#include "store/enqueue_store.h"

/* Fewer jobs are not worth it. */
#define UJOBS_ENQUEUE_BULK_LEAST 128

/*
 * Which keys are held, or may soon be: one entry an item, in the current
 * context.  NULL when the table is not as it was installed, so that only
 * statements may write it.
 */
extern bool *ujobs_enqueue_bulk_look(const UjobsEnqueueOptions *options, UjobsEnqueueItem **items, int n);

/*
 * Where the stretch that begins at item i ends: one of free keys that is long
 * enough (true), or one of all else up to the next such.
 */
extern bool ujobs_enqueue_bulk_stretch(const bool *taken, int n, int i, int *end);

/*
 * Inserts one job, which gets an id.  False: its key is held, or may soon be, or
 * the table is not as it was installed, and nothing is written.
 */
extern bool ujobs_enqueue_single(const UjobsEnqueueOptions *options, UjobsEnqueueItem *item);

/* The sequence of the ids of jobs. */
extern Oid	ujobs_enqueue_sequence(void);

/* The attempts that a job of the call has. */
extern int32 ujobs_enqueue_attempts(const UjobsEnqueueOptions *options);

/*
 * Inserts the items, which have ids in the order of their addresses, waiting
 * for keys in order.  Raises 23505 when somebody has taken one meanwhile.
 */
extern void ujobs_enqueue_bulk_insert(const UjobsEnqueueOptions *options, UjobsEnqueueItem **items, int n);

#endif							/* UJOBS_STORE_ENQUEUE_BULK_H */
