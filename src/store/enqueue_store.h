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

#include "model/job.h"

typedef enum UjobsOnConflict
{
	UJOBS_CONFLICT_DEDUPE,		/* give the live job */
	UJOBS_CONFLICT_ERROR,		/* UJ009 */
	UJOBS_CONFLICT_REPLACE		/* change it if it never began, else UJ009 */
} UjobsOnConflict;

/* What all jobs of one call have in common; checked, with defaults filled in. */
typedef struct UjobsEnqueueOptions
{
	const UjobsDefinition *definition;
	const char *queue;
	const char *enqueued_by;	/* NULL = nobody named */
	const char *traceparent;	/* NULL = none */
	TimestampTz now;			/* by the clock seam */
	TimestampTz run_at;
	Oid			role;			/* who calls */
	int16		priority;
	UjobsOnConflict on_conflict;
	int32		max_attempts;	/* 0 = by the definition's retry policy */
	const pg_uuid_t *run_id;	/* NULL = a new one; only with ujobs_enqueue_one */
} UjobsEnqueueOptions;

typedef struct UjobsEnqueued
{
	int64		id;				/* 0 = none: it went to a broker */
	pg_uuid_t	run_id;
	bool		deduped;
} UjobsEnqueued;

/* One job of a call, and what became of it. */
typedef struct UjobsEnqueueItem
{
	Jsonb	   *input;
	const char *tenant;			/* "" = none */
	const char *key;
	UjobsEnqueued result;
} UjobsEnqueueItem;

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
