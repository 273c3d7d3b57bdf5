/*
 * job_store.c: steps 4, 6 and 7 of the walk, as rows see them.
 *
 * Each change is guarded by id and revision.  A session that changes a row from
 * outside the run raises its revision, so a run that lost its job affects no
 * row here and must abort.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/rel.h"

#include "core/clock.h"
#include "core/guc.h"
#include "core/table.h"
#include "core/queue_counters.h"
#include "core/wakeup.h"
#include "model/state.h"
#include "store/catalogue.h"
#include "store/job_store.h"
#include "store/row.h"

/*
 * A suspended one had been due, or woken: if it is neither by its row, its
 * wait is looked at again.
 */
void
ujobs_job_offer(const UjobsJob *job, TimestampTz now)
{
	ujobs_row_announce(job, Min(job->due_at, now));
	if (job->state == UJOBS_STATE_SUSPENDED)
		ujobs_wakeup_note_wait(job->id);
}

List *
ujobs_job_fetch(const int64 *ids, int n, TimestampTz now)
{
	Relation	table = ujobs_table_open("job", UJOBS_TABLE_READ);
	HeapTuple  *row = palloc(n * sizeof(HeapTuple));
	List	   *jobs = NIL;

	ujobs_table_fetch(table, ids, n, row);
	for (int i = 0; i < n; i++)
	{
		UjobsJob   *job;

		if (row[i] == NULL)
			continue;
		job = ujobs_row_to_job(row[i], RelationGetDescr(table));
		if (job->state == UJOBS_STATE_SUSPENDED ||
			(job->state == UJOBS_STATE_PENDING && job->due_at <= now))
			jobs = lappend(jobs, job);
	}
	ujobs_table_close(table);
	return jobs;
}

int64
ujobs_job_retention(const UjobsDefinition *definition, UjobsOutcomeKind outcome)
{
	if (definition != NULL && definition->retention >= 0)
		return definition->retention;
	return (int64) (outcome == UJOBS_OUTCOME_DEAD ? ujobs_guc_dead_retention :
													ujobs_guc_retention) *
		   USECS_PER_SEC;
}

/* The current version of a row fetched in an earlier transaction; NULL: not ours. */
static HeapTuple
refetch(Relation table, const UjobsJob *job)
{
	HeapTuple	row;

	ujobs_table_fetch(table, &job->id, 1, &row);
	if (row == NULL || ujobs_row_to_job(row, RelationGetDescr(table))->revision != job->revision)
		return NULL;
	return row;
}

bool
ujobs_job_hold(const UjobsJob *job)
{
	Relation	table = ujobs_table_open("job", UJOBS_TABLE_WRITE);
	HeapTuple	row = refetch(table, job);
	bool		ours = row != NULL && ujobs_table_lock(table, row);

	ujobs_table_close(table);
	return ours;
}

bool
ujobs_job_hold_due(const UjobsJob *job, TimestampTz now)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int64GetDatum(job->id));
	ujobs_query_bind(&args, Int32GetDatum(job->revision));
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	return ujobs_catalogue_execute(UJOBS_SQL_JOB_HOLD_DUE, &args) == 1;
}

static bool
delete_rows(Relation table, const UjobsFinish *finish, int n)
{
	for (int i = 0; i < n; i++)
	{
		HeapTuple	row = finish[i].refetch ? refetch(table, finish[i].job) : finish[i].job->row;

		if (row == NULL || !ujobs_table_delete(table, row))
			return false;
	}
	return true;
}

static void
fill_done(const UjobsFinish *f, TimestampTz now, TimestampTz expires_at, Datum *values, bool *nulls)
{
	const struct
	{
		UjobsHistoryColumn column;
		Datum		value;
	}			set[] = {
		{UJOBS_HISTORY_SLOT, Int16GetDatum(ujobs_history_slot_for(now, expires_at))},
		{UJOBS_HISTORY_STARTED_AT, TimestampTzGetDatum(f->started_at)},
		{UJOBS_HISTORY_FINISHED_AT, TimestampTzGetDatum(now)},
		{UJOBS_HISTORY_EXPIRES_AT, TimestampTzGetDatum(expires_at)},
		{UJOBS_HISTORY_ATTEMPT, Int32GetDatum(f->job->attempt)},
		{UJOBS_HISTORY_STATE, CharGetDatum(UJOBS_STATE_DONE)},
	};

	for (int i = 0; i < lengthof(set); i++)
	{
		values[set[i].column] = set[i].value;
		nulls[set[i].column] = false;
	}
	nulls[UJOBS_HISTORY_STEPS] = f->steps == NULL;
	values[UJOBS_HISTORY_STEPS] = PointerGetDatum(f->steps);
	nulls[UJOBS_HISTORY_LEASE] = f->lease == 0;
	values[UJOBS_HISTORY_LEASE] = Int64GetDatum(f->lease);
	nulls[UJOBS_HISTORY_RESULT] = f->result == NULL;
	values[UJOBS_HISTORY_RESULT] = PointerGetDatum(f->result);
}

static void
keep_rows(Relation job_table, const UjobsFinish *finish, int n, TimestampTz now)
{
	TimestampTz expires_at = ujobs_clock_add(now, finish[0].retention);
	char		name[NAMEDATALEN];
	Relation	history;
	Datum	  **values = palloc(n * sizeof(Datum *));
	bool	  **nulls = palloc(n * sizeof(bool *));

	snprintf(name, sizeof(name), "job_history_%d", ujobs_history_slot_for(now, expires_at));
	history = ujobs_table_open(name, UJOBS_TABLE_WRITE);
	for (int i = 0; i < n; i++)
	{
		values[i] = palloc(UJOBS_HISTORY_COLUMNS * sizeof(Datum));
		nulls[i] = palloc(UJOBS_HISTORY_COLUMNS * sizeof(bool));
		ujobs_row_to_history(finish[i].job->row, RelationGetDescr(job_table), values[i], nulls[i]);
		fill_done(&finish[i], now, expires_at, values[i], nulls[i]);
	}
	ujobs_table_insert(history, values, nulls, n);
	ujobs_table_close(history);
}

int
ujobs_job_waited_for(const int64 *ids, int n, bool *waited_for)
{
	UjobsArgs	args = {0};
	Datum	   *values = palloc(n * sizeof(Datum));
	UjobsResult result;
	int			found = 0;

	for (int i = 0; i < n; i++)
		values[i] = Int64GetDatum(ids[i]);
	ujobs_query_bind_array(&args, INT8OID, values, NULL, n);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_JOB_WAITED_FOR), &args);
	memset(waited_for, 0, n * sizeof(bool));
	for (uint64 row = 0; row < result.rows; row++)
	{
		int64		id = DatumGetInt64(ujobs_query_result_datum(&result, row, 0));

		for (int i = 0; i < n; i++)
		{
			if (ids[i] == id && !waited_for[i])
			{
				waited_for[i] = true;
				found++;
			}
		}
	}
	pfree(values);
	return found;
}

/* They keep no history, but one that is waited for must have an outcome for a while. */
static void
keep_waited_for(Relation table, const UjobsFinish *finish, int n, TimestampTz now)
{
	UjobsIdentity identity;
	UjobsFinish *kept = palloc(n * sizeof(UjobsFinish));
	int64	   *ids = palloc(n * sizeof(int64));
	bool	   *waited_for = palloc(n * sizeof(bool));
	int			n_kept = 0;

	for (int i = 0; i < n; i++)
		ids[i] = finish[i].job->id;
	ujobs_identity_enter(&identity);
	(void) ujobs_job_waited_for(ids, n, waited_for);
	ujobs_identity_leave(&identity);
	for (int i = 0; i < n; i++)
	{
		if (!waited_for[i])
			continue;
		kept[n_kept] = finish[i];
		kept[n_kept++].retention = UJOBS_WAITED_FOR_RETENTION;
	}
	if (n_kept > 0)
		keep_rows(table, kept, n_kept, now);
}

static bool
move_rows(const UjobsFinish *finish, int n, TimestampTz now)
{
	Relation	table = ujobs_table_open("job", UJOBS_TABLE_WRITE);
	bool		ours = delete_rows(table, finish, n);

	if (ours && finish[0].retention > 0)
		keep_rows(table, finish, n, now);
	else if (ours)
		keep_waited_for(table, finish, n, now);
	ujobs_table_close(table);
	return ours;
}

bool
ujobs_job_finish(const UjobsFinish *finish, int n, TimestampTz now)
{
	for (int i = 0; i < n; i++)
		ujobs_state_check(finish[i].job->id, finish[i].job->state, UJOBS_STATE_DONE);
	if (!move_rows(finish, n, now))
		return false;
	for (int i = 0; i < n; i++)
	{
		UjobsQueueCounterTimes times = {
			.due_at = finish[i].job->due_at,
			.started_at = finish[i].started_at,
			.ended_at = i + 1 < n ? finish[i + 1].started_at : now
		};

		ujobs_wakeup_note_finished(finish[i].job->id);
		ujobs_queue_counter_note(finish[i].job->queue, UJOBS_COUNTER_DONE, &times);
	}
	return true;
}

static bool
settle_live(const UjobsJob *job, const UjobsVerdict *verdict)
{
	UjobsState	state = verdict->outcome == UJOBS_OUTCOME_SUSPENDED ?
		UJOBS_STATE_SUSPENDED : UJOBS_STATE_PENDING;
	UjobsArgs	args = {0};

	ujobs_state_check(job->id, job->state, state);
	ujobs_query_bind(&args, Int64GetDatum(job->id));
	ujobs_query_bind(&args, Int32GetDatum(job->revision));
	ujobs_query_bind(&args, CharGetDatum(state));
	ujobs_query_bind(&args, Int32GetDatum(verdict->attempt));
	ujobs_query_bind(&args, TimestampTzGetDatum(verdict->due_at));
	ujobs_query_bind_jsonb(&args, verdict->error);
	ujobs_query_bind_text(&args, verdict->reason);
	ujobs_query_bind_maybe(&args, TimestampTzGetDatum(verdict->started_at));
	if (ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_JOB_RETRY), &args).rows != 1)
		return false;
	ujobs_row_announce(job, verdict->due_at);
	return true;
}

/* No history is kept of it, unless it is waited for, for its outcome. */
static void
forget_unless_waited_for(int64 id, int16 slot)
{
	UjobsArgs	args = {0};
	bool		waited_for;

	if (ujobs_job_waited_for(&id, 1, &waited_for) > 0)
		return;
	ujobs_query_bind(&args, Int64GetDatum(id));
	(void) ujobs_query_run(ujobs_catalogue_statement_for_slot(UJOBS_SQL_CONTROL_FORGET, slot),
						   &args);
}

static bool
settle_ended(const UjobsJob *job, const UjobsVerdict *verdict, TimestampTz now)
{
	bool		keep = verdict->retention > 0;
	TimestampTz expires_at = ujobs_clock_add(now, keep ? verdict->retention :
														 UJOBS_WAITED_FOR_RETENTION);
	UjobsState	state =
		verdict->outcome == UJOBS_OUTCOME_DEAD ? UJOBS_STATE_DEAD : UJOBS_STATE_CANCELLED;
	int16		slot = ujobs_history_slot_for(now, expires_at);
	UjobsArgs	args = {0};

	ujobs_state_check(job->id, job->state, state);
	ujobs_wakeup_note_finished(job->id);
	ujobs_query_bind(&args, Int64GetDatum(job->id));
	ujobs_query_bind(&args, Int32GetDatum(job->revision));
	ujobs_query_bind(&args, CharGetDatum(state));
	ujobs_query_bind(&args, Int16GetDatum(slot));
	ujobs_query_bind(&args, Int32GetDatum(verdict->attempt));
	ujobs_query_bind_jsonb(&args, verdict->error);
	ujobs_query_bind_text(&args, verdict->reason);
	ujobs_query_bind_maybe(&args, TimestampTzGetDatum(verdict->started_at));
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	ujobs_query_bind(&args, TimestampTzGetDatum(expires_at));
	if (ujobs_query_run(ujobs_catalogue_statement_for_slot(UJOBS_SQL_JOB_END, slot), &args).rows !=
		1)
		return false;
	if (!keep)
		forget_unless_waited_for(job->id, slot);
	return true;
}

/* A suspended job made no attempt. */
static void
count_verdict(const UjobsJob *job, const UjobsVerdict *verdict, TimestampTz now)
{
	UjobsQueueCounterTimes times = {.due_at = job->due_at, .started_at = verdict->started_at, .ended_at = now};

	if (verdict->outcome == UJOBS_OUTCOME_RETRY)
		ujobs_queue_counter_note(job->queue, UJOBS_COUNTER_RETRY, &times);
	else if (verdict->outcome == UJOBS_OUTCOME_DEAD)
		ujobs_queue_counter_note(job->queue, UJOBS_COUNTER_DEAD, &times);
	else if (verdict->outcome == UJOBS_OUTCOME_CANCELLED)
		ujobs_queue_counter_note(job->queue, UJOBS_COUNTER_CANCELLED, &times);
}

bool
ujobs_job_settle(const UjobsJob *job, const UjobsVerdict *verdict, TimestampTz now)
{
	bool		live = verdict->outcome == UJOBS_OUTCOME_RETRY ||
		verdict->outcome == UJOBS_OUTCOME_SUSPENDED;

	Assert(live || verdict->outcome == UJOBS_OUTCOME_DEAD ||
		   verdict->outcome == UJOBS_OUTCOME_CANCELLED);
	if (!(live ? settle_live(job, verdict) : settle_ended(job, verdict, now)))
		return false;
	count_verdict(job, verdict, now);
	return true;
}
