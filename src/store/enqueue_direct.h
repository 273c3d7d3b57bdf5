/*
 * enqueue_direct.h: new jobs without a statement, thousands or one, for enqueue_store.c.
 *
 * Those that take many items need an open identity section; the items are in
 * order of (tenant, key), one of each key.
 */
#ifndef UJOBS_STORE_ENQUEUE_DIRECT_H
#define UJOBS_STORE_ENQUEUE_DIRECT_H

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
	const char *enqueued_by;	/* NULL = none */
	const char *traceparent;	/* NULL = none */
	TimestampTz now;			/* by the clock seam */
	TimestampTz run_at;
	Oid			role;			/* who calls */
	int16		priority;
	UjobsOnConflict on_conflict;
	int64		own_job;		/* whose handler this session runs; 0 = none */
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

/* Fewer jobs are not worth it. */
#define UJOBS_ENQUEUE_DIRECT_LEAST 128

/*
 * Which keys are held, or may soon be: one entry an item, in the current
 * context.  NULL when the table is not as it was installed, so that only
 * statements may write it.
 */
extern bool *ujobs_enqueue_direct_look(const UjobsEnqueueOptions *options, UjobsEnqueueItem **items,
									   int n);

/*
 * Where the stretch that begins at item i ends: one of free keys that is long
 * enough (true), or one of all else up to the next such.
 */
extern bool ujobs_enqueue_direct_stretch(const bool *taken, int n, int i, int *end);

/*
 * Inserts one job, which gets an id.  False: its key is held, or may soon be, or
 * the table is not as it was installed, and nothing is written.
 */
extern bool ujobs_enqueue_direct_one(const UjobsEnqueueOptions *options, UjobsEnqueueItem *item);

/* The sequence of the ids of jobs. */
extern Oid	ujobs_enqueue_direct_sequence(void);

/* The attempts that a job of the call has. */
extern int32 ujobs_enqueue_direct_attempts(const UjobsEnqueueOptions *options);

/*
 * Inserts the items, which have ids in the order of their addresses, waiting
 * for keys in order.  Raises 23505 when another transaction has taken one meanwhile.
 */
extern void ujobs_enqueue_direct_insert(const UjobsEnqueueOptions *options,
										UjobsEnqueueItem **items, int n);

#endif							/* UJOBS_STORE_ENQUEUE_DIRECT_H */
