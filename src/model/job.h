/*
 * job.h: the words as C types.  Pure data, shared by every floor above core.
 */
#ifndef UJOBS_MODEL_JOB_H
#define UJOBS_MODEL_JOB_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "nodes/pg_list.h"
#include "utils/jsonb.h"
#include "utils/uuid.h"

typedef enum UjobsKind
{
	UJOBS_KIND_ATOMIC,			/* a function: one transaction */
	UJOBS_KIND_DURABLE,			/* a procedure: each step commits */
	UJOBS_KIND_EXTERNAL,		/* programs claim it */
	UJOBS_KIND_COMMAND			/* one SQL statement at top level */
} UjobsKind;

/* job.state and job_history.state, as stored. */
typedef enum UjobsState
{
	UJOBS_STATE_PENDING = 'p',
	UJOBS_STATE_SUSPENDED = 's',
	UJOBS_STATE_LEASED = 'l',
	UJOBS_STATE_DONE = 'd',
	UJOBS_STATE_DEAD = 'x',
	UJOBS_STATE_CANCELLED = 'c'
} UjobsState;

typedef enum UjobsBackoff
{
	UJOBS_BACKOFF_EXPONENTIAL,
	UJOBS_BACKOFF_LINEAR,
	UJOBS_BACKOFF_FIXED
} UjobsBackoff;

/* A retry policy, decoded.  Durations in microseconds. */
typedef struct UjobsRetry
{
	int32		attempts;
	UjobsBackoff backoff;
	int64		delay;
	int64		max_delay;
	bool		jitter;
	bool		dead_letter;
	int			n_terminal;
	char		(*terminal)[6]; /* SQLSTATEs, or two-character classes */
} UjobsRetry;

/* A row of ujobs_internal.definition, decoded, with its grants. */
typedef struct UjobsDefinition
{
	int32		id;
	char	   *name;
	UjobsKind	kind;
	char	   *handler;		/* function name, or the command's text; NULL if external */
	Oid			owner;
	char	   *owner_name;
	char	   *key_template;
	char	   *tenant_template;	/* NULL = none */
	Jsonb	   *input_schema;
	UjobsRetry	retry;
	char	   *queue;
	int16		priority;
	int32		concurrency;	/* 0 = no limit */
	int64		timeout;		/* us, 0 = ujobs.default_timeout */
	int64		step_timeout;	/* us, 0 = none */
	int32		batch;
	int64		retention;		/* us, -1 = by setting */
	bool		dropped;
	int			n_enqueuers;
	Oid		   *enqueuers;		/* roles granted enqueue; InvalidOid is PUBLIC */
	int			n_workers;
	Oid		   *workers;		/* roles granted work */
	struct UjobsTemplate *key_parsed;	/* of the templates above */
	struct UjobsTemplate *tenant_parsed;	/* NULL = none */
	struct UjobsSchema *schema; /* of input_schema; NULL = none, or not yet needed */
} UjobsDefinition;

/* A row of ujobs_internal.job as a run needs it. */
typedef struct UjobsJob
{
	int64		id;
	int32		definition_id;
	int32		revision;
	UjobsState	state;
	int32		attempt;		/* as recorded; once begun, the running one */
	int32		max_attempts;
	int16		priority;
	TimestampTz due_at;
	TimestampTz started_at;		/* as recorded: of a suspended or leased job, else 0 */
	pg_uuid_t	run_id;
	char	   *queue;
	char	   *tenant;			/* "" = none */
	char	   *enqueued_by;
	char	   *traceparent;
	Jsonb	   *input;
	TimestampTz events_since;	/* published from then on, events count for its waits */
	struct HeapTupleData *row;	/* as fetched; its version is what a finish deletes */
	bool		resumed;		/* goes on with the attempt recorded, begins none */
} UjobsJob;

/* How an attempt ended. */
typedef enum UjobsOutcomeKind
{
	UJOBS_OUTCOME_DONE,
	UJOBS_OUTCOME_RETRY,		/* again at due_at */
	UJOBS_OUTCOME_DEAD,
	UJOBS_OUTCOME_CANCELLED,	/* attempts exhausted with deadLetter false */
	UJOBS_OUTCOME_GIVEN_BACK,	/* interrupted through no fault of its own: as if never begun */
	UJOBS_OUTCOME_SUSPENDED,	/* its handler or owner is missing */
	UJOBS_OUTCOME_NOT_OURS		/* the row is gone or changed: nothing to do */
} UjobsOutcomeKind;

#endif							/* UJOBS_MODEL_JOB_H */
