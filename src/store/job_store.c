/*
 * job_store.c: steps 4 to 6 of the walk, as rows see them.
 *
 * Each change is guarded by id and revision.  Whoever changes a row from
 * outside the run raises its revision, so a run that lost its job affects no
 * row here and must abort.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/uuid.h"

#include "core/clock.h"
#include "core/guc.h"
#include "core/wakeup.h"
#include "store/catalogue.h"
#include "store/job_store.h"

void
ujobs_job_announce(int64 id, int32 definition_id, const char *queue, int16 priority, TimestampTz due_at)
{
	UjobsHint	hint = {
		.id = id,
		.due_at = due_at,
		.definition_id = definition_id,
		.queue_hash = ujobs_queue_hash(queue),
		.priority = priority,
		.kind = UJOBS_HINT_JOB
	};

	ujobs_wakeup_note(&hint);
}

static UjobsJob *
decode(const UjobsResult *result, uint64 row, MemoryContext into)
{
	UjobsJob   *job = MemoryContextAllocZero(into, sizeof(UjobsJob));

	job->id = DatumGetInt64(ujobs_result_datum(result, row, 0));
	job->definition_id = DatumGetInt32(ujobs_result_datum(result, row, 1));
	job->revision = DatumGetInt32(ujobs_result_datum(result, row, 2));
	job->state = DatumGetChar(ujobs_result_datum(result, row, 3));
	job->attempt = DatumGetInt32(ujobs_result_datum(result, row, 4));
	job->max_attempts = DatumGetInt32(ujobs_result_datum(result, row, 5));
	job->priority = DatumGetInt16(ujobs_result_datum(result, row, 6));
	job->due_at = DatumGetTimestampTz(ujobs_result_datum(result, row, 7));
	memcpy(&job->run_id, DatumGetUUIDP(ujobs_result_datum(result, row, 8)), sizeof(pg_uuid_t));
	job->queue = ujobs_result_text(result, row, 9, into);
	job->tenant = ujobs_result_text(result, row, 10, into);
	job->enqueued_by = ujobs_result_text(result, row, 11, into);
	job->traceparent = ujobs_result_text(result, row, 12, into);
	job->input = ujobs_result_jsonb(result, row, 13, into);
	job->resumed = DatumGetBool(ujobs_result_datum(result, row, 14));
	return job;
}

static UjobsResult
fetch_rows(const int64 *ids, int n, TimestampTz now)
{
	UjobsArgs	args = {0};
	Datum	   *values;

	if (n == 1)
	{
		ujobs_bind(&args, Int64GetDatum(ids[0]));
		ujobs_bind(&args, TimestampTzGetDatum(now));
		return ujobs_query_read(ujobs_statement(UJOBS_SQL_JOB_FETCH), &args);
	}
	values = palloc(n * sizeof(Datum));
	for (int i = 0; i < n; i++)
		values[i] = Int64GetDatum(ids[i]);
	ujobs_bind_array(&args, INT8OID, values, NULL, n);
	ujobs_bind(&args, TimestampTzGetDatum(now));
	return ujobs_query_read(ujobs_statement(UJOBS_SQL_JOB_FETCH_MANY), &args);
}

List *
ujobs_job_fetch(UjobsIdentity *identity, const int64 *ids, int n, TimestampTz now)
{
	UjobsResult result = fetch_rows(ids, n, now);
	UjobsJob  **found = palloc(result.rows * sizeof(UjobsJob *) + 1);
	List	   *jobs = NIL;
	MemoryContext old;

	for (uint64 row = 0; row < result.rows; row++)
		found[row] = decode(&result, row, identity->caller);

	/* In the order asked for: that is the order of dispatch. */
	old = MemoryContextSwitchTo(identity->caller);
	for (int i = 0; i < n; i++)
	{
		for (uint64 row = 0; row < result.rows; row++)
		{
			if (found[row]->id == ids[i])
			{
				jobs = lappend(jobs, found[row]);
				break;
			}
		}
	}
	MemoryContextSwitchTo(old);
	return jobs;
}

int64
ujobs_job_retention(const UjobsDefinition *definition, UjobsOutcomeKind outcome)
{
	if (definition != NULL && definition->retention >= 0)
		return definition->retention;
	return (int64) (outcome == UJOBS_OUTCOME_DEAD ? ujobs_guc_dead_retention : ujobs_guc_retention) *
		USECS_PER_SEC;
}

/*
 * Longer retention than the ring has days: the row sits in the partition of
 * its 30th day and is renewed when that comes round.
 */
static int16
slot_for(TimestampTz now, TimestampTz expires_at)
{
	TimestampTz farthest = ujobs_clock_add(now, INT64CONST(30) * USECS_PER_DAY);

	return ujobs_history_slot(Min(expires_at, farthest));
}

static bool
finish_one(const UjobsFinish *f, TimestampTz now)
{
	TimestampTz expires_at = ujobs_clock_add(now, f->retention);
	int16		slot = slot_for(now, expires_at);
	UjobsArgs	args = {0};

	ujobs_bind(&args, Int64GetDatum(f->job->id));
	ujobs_bind(&args, Int32GetDatum(f->job->revision));
	ujobs_bind(&args, Int16GetDatum(slot));
	ujobs_bind(&args, Int32GetDatum(f->job->attempt));
	ujobs_bind_jsonb(&args, f->result);
	ujobs_bind(&args, TimestampTzGetDatum(f->started_at));
	ujobs_bind(&args, TimestampTzGetDatum(now));
	ujobs_bind(&args, TimestampTzGetDatum(expires_at));
	return ujobs_query_run(ujobs_statement_for_slot(UJOBS_SQL_JOB_FINISH, slot), &args).rows == 1;
}

/* Column arrays of a batch, in the order of the statement's unnest. */
typedef struct FinishArrays
{
	Datum	   *id;
	Datum	   *revision;
	Datum	   *attempt;
	Datum	   *result;
	bool	   *result_null;
	Datum	   *started_at;
} FinishArrays;

static FinishArrays
arrays_of(const UjobsFinish *finish, int n)
{
	FinishArrays a;

	a.id = palloc(n * sizeof(Datum));
	a.revision = palloc(n * sizeof(Datum));
	a.attempt = palloc(n * sizeof(Datum));
	a.result = palloc(n * sizeof(Datum));
	a.result_null = palloc(n * sizeof(bool));
	a.started_at = palloc(n * sizeof(Datum));
	for (int i = 0; i < n; i++)
	{
		a.id[i] = Int64GetDatum(finish[i].job->id);
		a.revision[i] = Int32GetDatum(finish[i].job->revision);
		a.attempt[i] = Int32GetDatum(finish[i].job->attempt);
		a.result_null[i] = finish[i].result == NULL;
		a.result[i] = a.result_null[i] ? (Datum) 0 : JsonbPGetDatum(finish[i].result);
		a.started_at[i] = TimestampTzGetDatum(finish[i].started_at);
	}
	return a;
}

static bool
finish_unkept(const UjobsFinish *finish, int n)
{
	FinishArrays a = arrays_of(finish, n);
	UjobsArgs	args = {0};

	ujobs_bind_array(&args, INT8OID, a.id, NULL, n);
	ujobs_bind_array(&args, INT4OID, a.revision, NULL, n);
	return ujobs_query_run(ujobs_statement(UJOBS_SQL_JOB_FINISH_UNKEPT), &args).rows == (uint64) n;
}

static bool
finish_many(const UjobsFinish *finish, int n, TimestampTz now)
{
	TimestampTz expires_at = ujobs_clock_add(now, finish[0].retention);
	int16		slot = slot_for(now, expires_at);
	FinishArrays a = arrays_of(finish, n);
	UjobsArgs	args = {0};

	ujobs_bind_array(&args, INT8OID, a.id, NULL, n);
	ujobs_bind_array(&args, INT4OID, a.revision, NULL, n);
	ujobs_bind(&args, Int16GetDatum(slot));
	ujobs_bind_array(&args, INT4OID, a.attempt, NULL, n);
	ujobs_bind_array(&args, JSONBOID, a.result, a.result_null, n);
	ujobs_bind_array(&args, TIMESTAMPTZOID, a.started_at, NULL, n);
	ujobs_bind(&args, TimestampTzGetDatum(now));
	ujobs_bind(&args, TimestampTzGetDatum(expires_at));
	return ujobs_query_run(ujobs_statement_for_slot(UJOBS_SQL_JOB_FINISH_MANY, slot),
						   &args).rows == (uint64) n;
}

bool
ujobs_job_finish(const UjobsFinish *finish, int n, TimestampTz now)
{
	for (int i = 0; i < n; i++)
		ujobs_wakeup_note_finished(finish[i].job->id);
	if (finish[0].retention == 0)
		return finish_unkept(finish, n);
	if (n == 1)
		return finish_one(finish, now);
	return finish_many(finish, n, now);
}

static bool
settle_live(const UjobsJob *job, const UjobsVerdict *verdict)
{
	UjobsState	state = verdict->outcome == UJOBS_OUTCOME_SUSPENDED ?
		UJOBS_STATE_SUSPENDED : UJOBS_STATE_PENDING;
	UjobsArgs	args = {0};

	ujobs_bind(&args, Int64GetDatum(job->id));
	ujobs_bind(&args, Int32GetDatum(job->revision));
	ujobs_bind(&args, CharGetDatum(state));
	ujobs_bind(&args, Int32GetDatum(verdict->attempt));
	ujobs_bind(&args, TimestampTzGetDatum(verdict->due_at));
	ujobs_bind_jsonb(&args, verdict->error);
	ujobs_bind_text(&args, verdict->reason);
	if (ujobs_query_run(ujobs_statement(UJOBS_SQL_JOB_RETRY), &args).rows != 1)
		return false;
	ujobs_job_announce(job->id, job->definition_id, job->queue, job->priority, verdict->due_at);
	return true;
}

static bool
settle_ended(const UjobsJob *job, const UjobsVerdict *verdict, TimestampTz now)
{
	TimestampTz expires_at = ujobs_clock_add(now, verdict->retention);
	int16		slot = slot_for(now, expires_at);
	UjobsArgs	args = {0};

	ujobs_wakeup_note_finished(job->id);
	if (verdict->retention == 0)
	{
		UjobsFinish gone = {.job = job};

		return finish_unkept(&gone, 1);
	}
	ujobs_bind(&args, Int64GetDatum(job->id));
	ujobs_bind(&args, Int32GetDatum(job->revision));
	ujobs_bind(&args, CharGetDatum(verdict->outcome == UJOBS_OUTCOME_DEAD ?
								   UJOBS_STATE_DEAD : UJOBS_STATE_CANCELLED));
	ujobs_bind(&args, Int16GetDatum(slot));
	ujobs_bind(&args, Int32GetDatum(verdict->attempt));
	ujobs_bind_jsonb(&args, verdict->error);
	ujobs_bind_text(&args, verdict->reason);
	ujobs_bind_maybe(&args, TimestampTzGetDatum(verdict->started_at));
	ujobs_bind(&args, TimestampTzGetDatum(now));
	ujobs_bind(&args, TimestampTzGetDatum(expires_at));
	return ujobs_query_run(ujobs_statement_for_slot(UJOBS_SQL_JOB_END, slot), &args).rows == 1;
}

bool
ujobs_job_settle(const UjobsJob *job, const UjobsVerdict *verdict, TimestampTz now)
{
	if (verdict->outcome == UJOBS_OUTCOME_RETRY || verdict->outcome == UJOBS_OUTCOME_SUSPENDED)
		return settle_live(job, verdict);
	Assert(verdict->outcome == UJOBS_OUTCOME_DEAD || verdict->outcome == UJOBS_OUTCOME_CANCELLED);
	return settle_ended(job, verdict, now);
}
