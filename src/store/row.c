/*
 * row.c: between tuples and structs.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "core/hash.h"
#include "core/wakeup.h"
#include "store/row.h"

/* Which column of job goes into which of job_history. */
static const struct
{
	UjobsJobColumn from;
	UjobsHistoryColumn to;
}			taken_over[] = {
	{UJOBS_JOB_ID, UJOBS_HISTORY_ID},
	{UJOBS_JOB_RUN_AT, UJOBS_HISTORY_RUN_AT},
	{UJOBS_JOB_CREATED_AT, UJOBS_HISTORY_CREATED_AT},
	{UJOBS_JOB_DEFINITION_ID, UJOBS_HISTORY_DEFINITION_ID},
	{UJOBS_JOB_ENQUEUED_ROLE, UJOBS_HISTORY_ENQUEUED_ROLE},
	{UJOBS_JOB_MAX_ATTEMPTS, UJOBS_HISTORY_MAX_ATTEMPTS},
	{UJOBS_JOB_PRIORITY, UJOBS_HISTORY_PRIORITY},
	{UJOBS_JOB_RUN_ID, UJOBS_HISTORY_RUN_ID},
	{UJOBS_JOB_QUEUE, UJOBS_HISTORY_QUEUE},
	{UJOBS_JOB_TENANT, UJOBS_HISTORY_TENANT},
	{UJOBS_JOB_KEY, UJOBS_HISTORY_KEY},
	{UJOBS_JOB_INPUT, UJOBS_HISTORY_INPUT},
	{UJOBS_JOB_ENQUEUED_BY, UJOBS_HISTORY_ENQUEUED_BY},
	{UJOBS_JOB_TRACEPARENT, UJOBS_HISTORY_TRACEPARENT},
	{UJOBS_JOB_EVENTS_SINCE, UJOBS_HISTORY_EVENTS_SINCE},
};

static char *
text_or_null(Datum value, bool isnull)
{
	return isnull ? NULL : TextDatumGetCString(value);
}

UjobsJob *
ujobs_row_to_job(HeapTuple row, TupleDesc desc)
{
	UjobsJob   *job = palloc0(sizeof(UjobsJob));
	Datum		v[UJOBS_JOB_COLUMNS];
	bool		null[UJOBS_JOB_COLUMNS];

	if (desc->natts != UJOBS_JOB_COLUMNS)
		elog(ERROR, "the table of jobs has %d columns, this library knows %d", desc->natts, UJOBS_JOB_COLUMNS);
	heap_deform_tuple(row, desc, v, null);
	job->row = row;
	job->id = DatumGetInt64(v[UJOBS_JOB_ID]);
	job->due_at = DatumGetTimestampTz(v[UJOBS_JOB_DUE_AT]);
	job->definition_id = DatumGetInt32(v[UJOBS_JOB_DEFINITION_ID]);
	job->revision = DatumGetInt32(v[UJOBS_JOB_REVISION]);
	job->priority = DatumGetInt16(v[UJOBS_JOB_PRIORITY]);
	job->attempt = DatumGetInt32(v[UJOBS_JOB_ATTEMPT]);
	job->max_attempts = DatumGetInt32(v[UJOBS_JOB_MAX_ATTEMPTS]);
	job->state = DatumGetChar(v[UJOBS_JOB_STATE]);
	memcpy(&job->run_id, DatumGetPointer(v[UJOBS_JOB_RUN_ID]), sizeof(pg_uuid_t));
	job->queue = TextDatumGetCString(v[UJOBS_JOB_QUEUE]);
	job->tenant = TextDatumGetCString(v[UJOBS_JOB_TENANT]);
	job->input = DatumGetJsonbP(v[UJOBS_JOB_INPUT]);
	job->enqueued_by = text_or_null(v[UJOBS_JOB_ENQUEUED_BY], null[UJOBS_JOB_ENQUEUED_BY]);
	job->traceparent = text_or_null(v[UJOBS_JOB_TRACEPARENT], null[UJOBS_JOB_TRACEPARENT]);
	job->events_since = DatumGetTimestampTz(null[UJOBS_JOB_EVENTS_SINCE] ? v[UJOBS_JOB_CREATED_AT] :
											v[UJOBS_JOB_EVENTS_SINCE]);
	job->started_at = null[UJOBS_JOB_STARTED_AT] ? 0 : DatumGetTimestampTz(v[UJOBS_JOB_STARTED_AT]);
	job->resumed = job->state == UJOBS_STATE_SUSPENDED && !null[UJOBS_JOB_STARTED_AT];
	return job;
}

void
ujobs_row_to_history(HeapTuple row, TupleDesc desc, Datum *values, bool *nulls)
{
	Datum		v[UJOBS_JOB_COLUMNS];
	bool		null[UJOBS_JOB_COLUMNS];

	heap_deform_tuple(row, desc, v, null);
	memset(nulls, true, UJOBS_HISTORY_COLUMNS * sizeof(bool));
	for (int i = 0; i < lengthof(taken_over); i++)
	{
		values[taken_over[i].to] = v[taken_over[i].from];
		nulls[taken_over[i].to] = null[taken_over[i].from];
	}
}

void
ujobs_row_announce(const UjobsJob *job, TimestampTz due_at)
{
	UjobsHint	hint = {
		.id = job->id,
		.due_at = due_at,
		.definition_id = job->definition_id,
		.queue_hash = ujobs_hash_queue(job->queue),
		.tenant_hash = ujobs_hash_tenant(job->tenant),
		.priority = job->priority,
		.kind = UJOBS_HINT_JOB
	};

	ujobs_wakeup_note(&hint);
}
