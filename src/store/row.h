/*
 * row.h: the columns of the hot tables by number, and a job decoded.
 *
 * The numbers follow sql/10_tables.sql; lint compares them.
 */
#ifndef UJOBS_STORE_ROW_H
#define UJOBS_STORE_ROW_H

#include "access/htup.h"
#include "access/tupdesc.h"

#include "model/job.h"

typedef enum UjobsJobColumn
{
	UJOBS_JOB_ID,
	UJOBS_JOB_DUE_AT,
	UJOBS_JOB_RUN_AT,
	UJOBS_JOB_CREATED_AT,
	UJOBS_JOB_DEFINITION_ID,
	UJOBS_JOB_REVISION,
	UJOBS_JOB_ENQUEUED_ROLE,
	UJOBS_JOB_ATTEMPT,
	UJOBS_JOB_MAX_ATTEMPTS,
	UJOBS_JOB_PRIORITY,
	UJOBS_JOB_STATE,
	UJOBS_JOB_RUN_ID,
	UJOBS_JOB_QUEUE,
	UJOBS_JOB_TENANT_ID,
	UJOBS_JOB_IDEMPOTENCY_KEY,
	UJOBS_JOB_INPUT,
	UJOBS_JOB_STARTED_AT,
	UJOBS_JOB_LAST_ERROR,
	UJOBS_JOB_REASON,
	UJOBS_JOB_ENQUEUED_BY,
	UJOBS_JOB_TRACEPARENT,
	UJOBS_JOB_EVENTS_SINCE,
	UJOBS_JOB_COLUMNS
} UjobsJobColumn;

typedef enum UjobsHistoryColumn
{
	UJOBS_HISTORY_ID,
	UJOBS_HISTORY_RUN_AT,
	UJOBS_HISTORY_CREATED_AT,
	UJOBS_HISTORY_STARTED_AT,
	UJOBS_HISTORY_FINISHED_AT,
	UJOBS_HISTORY_EXPIRES_AT,
	UJOBS_HISTORY_DEFINITION_ID,
	UJOBS_HISTORY_ENQUEUED_ROLE,
	UJOBS_HISTORY_ATTEMPT,
	UJOBS_HISTORY_MAX_ATTEMPTS,
	UJOBS_HISTORY_SLOT,
	UJOBS_HISTORY_PRIORITY,
	UJOBS_HISTORY_STATE,
	UJOBS_HISTORY_RUN_ID,
	UJOBS_HISTORY_QUEUE,
	UJOBS_HISTORY_TENANT_ID,
	UJOBS_HISTORY_IDEMPOTENCY_KEY,
	UJOBS_HISTORY_INPUT,
	UJOBS_HISTORY_RESULT,
	UJOBS_HISTORY_LAST_ERROR,
	UJOBS_HISTORY_REASON,
	UJOBS_HISTORY_ENQUEUED_BY,
	UJOBS_HISTORY_TRACEPARENT,
	UJOBS_HISTORY_EVENTS_SINCE,
	UJOBS_HISTORY_STEPS,
	UJOBS_HISTORY_LEASE,
	UJOBS_HISTORY_COLUMNS
} UjobsHistoryColumn;

typedef enum UjobsStepColumn
{
	UJOBS_STEP_JOB_ID,
	UJOBS_STEP_STARTED_AT,
	UJOBS_STEP_COMPLETED_AT,
	UJOBS_STEP_SEQ,
	UJOBS_STEP_ATTEMPTS,
	UJOBS_STEP_STATUS,
	UJOBS_STEP_NAME,
	UJOBS_STEP_WAKE_AT,
	UJOBS_STEP_SINCE,
	UJOBS_STEP_EVENT_ID,
	UJOBS_STEP_CHILD_ID,
	UJOBS_STEP_EVENT,
	UJOBS_STEP_MATCH,
	UJOBS_STEP_OUTPUT,
	UJOBS_STEP_ERROR,
	UJOBS_STEP_COLUMNS
} UjobsStepColumn;

typedef enum UjobsLeaseColumn
{
	UJOBS_LEASE_JOB_ID,
	UJOBS_LEASE_LEASE,
	UJOBS_LEASE_VISIBLE_AT,
	UJOBS_LEASE_WORKER,
	UJOBS_LEASE_COLUMNS
} UjobsLeaseColumn;

/* Decodes a row of job into the current context; it keeps a pointer to the row. */
extern UjobsJob *ujobs_row_to_job(HeapTuple row, TupleDesc desc);

/*
 * Starts a history row from a job's row: what it takes over is copied, the
 * rest is NULL for the caller to set.
 */
extern void ujobs_row_to_history(HeapTuple row, TupleDesc desc, Datum *values, bool *nulls);

/*
 * Notes for the dispatcher that the row may start at due_at; of the job id,
 * definition_id, queue, tenant and priority are read.
 */
extern void ujobs_row_announce(const UjobsJob *job, TimestampTz due_at);

#endif							/* UJOBS_STORE_ROW_H */
