/*
 * task_store.c: tasks, and the one statement that decides who fires an
 * occurrence.
 *
 * The session that moves a task's watermark enqueues its jobs in the same transaction;
 * one that finds it moved already does nothing.  No lock of any other kind is
 * needed for an occurrence to fire at most once.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/wakeup.h"
#include "store/catalogue.h"
#include "store/task_store.h"

/* The columns of TASK_COLUMNS, in order. */
static void
decode(const UjobsResult *r, uint64 row, MemoryContext into, UjobsTask *task)
{
	memset(task, 0, sizeof(*task));
	task->id = DatumGetInt32(ujobs_query_result_datum(r, row, 0));
	task->revision = DatumGetInt32(ujobs_query_result_datum(r, row, 1));
	task->name = ujobs_query_result_text(r, row, 2, into);
	task->owner = DatumGetObjectId(ujobs_query_result_datum(r, row, 3));
	task->owner_name = ujobs_query_result_text(r, row, 4, into);
	task->cron = ujobs_query_result_text(r, row, 5, into);
	task->tz = ujobs_query_result_text(r, row, 6, into);
	task->enqueue = ujobs_query_result_jsonb(r, row, 7, into);
	task->enqueue_fn = ujobs_query_result_text(r, row, 8, into);
	(void) ujobs_task_catch_up_read(ujobs_query_result_text(r, row, 9, into), &task->catch_up);
	task->max_catch_up = DatumGetInt32(ujobs_query_result_datum(r, row, 10));
	task->enabled = DatumGetBool(ujobs_query_result_datum(r, row, 11));
	task->paused = DatumGetBool(ujobs_query_result_datum(r, row, 12));
	task->description = ujobs_query_result_text(r, row, 13, into);
	task->watermark = DatumGetTimestampTz(ujobs_query_result_datum(r, row, 14));
	task->broken = ujobs_query_result_text(r, row, 15, into);
}

bool
ujobs_task_find(const char *name, UjobsTask *task)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult r;

	ujobs_identity_enter(&identity);
	ujobs_query_bind_text(&args, name);
	r = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_TASK_BY_NAME), &args);
	if (r.rows > 0)
		decode(&r, 0, identity.caller, task);
	ujobs_identity_leave(&identity);
	return r.rows > 0;
}

bool
ujobs_task_lock(UjobsIdentity *identity, const char *name, UjobsTask *task)
{
	UjobsArgs	args = {0};
	UjobsResult r;

	ujobs_query_bind_text(&args, name);
	r = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_TASK_LOCK), &args);
	if (r.rows > 0)
		decode(&r, 0, identity->caller, task);
	return r.rows > 0;
}

/* What can be asked for, in the order of both statements. */
static void
bind_options(UjobsArgs *args, const UjobsTask *task)
{
	ujobs_query_bind_text(args, task->cron);
	ujobs_query_bind_text(args, task->tz);
	ujobs_query_bind_jsonb(args, task->enqueue);
	ujobs_query_bind_text(args, task->enqueue_fn);
	ujobs_query_bind_text(args, ujobs_task_catch_up_name(task->catch_up));
	ujobs_query_bind(args, Int32GetDatum(task->max_catch_up));
	ujobs_query_bind(args, BoolGetDatum(task->enabled));
	ujobs_query_bind(args, BoolGetDatum(task->paused));
	ujobs_query_bind_text(args, task->description);
	ujobs_query_bind(args, TimestampTzGetDatum(task->watermark));
}

bool
ujobs_task_insert(const UjobsTask *task)
{
	UjobsArgs	args = {0};

	bind_options(&args, task);
	ujobs_query_bind_text(&args, task->name);
	ujobs_query_bind(&args, ObjectIdGetDatum(task->owner));
	ujobs_query_bind(&args, DirectFunctionCall1(namein, CStringGetDatum(task->owner_name)));
	ujobs_query_bind(&args, TimestampTzGetDatum(GetCurrentTimestamp()));
	return ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_TASK_INSERT), &args).rows == 1;
}

void
ujobs_task_update(int32 id, const UjobsTask *task)
{
	UjobsArgs	args = {0};

	bind_options(&args, task);
	ujobs_query_bind(&args, Int32GetDatum(id));
	(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_TASK_UPDATE), &args);
}

void
ujobs_task_set_paused(int32 id, bool paused, TimestampTz watermark)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int32GetDatum(id));
	ujobs_query_bind(&args, BoolGetDatum(paused));
	ujobs_query_bind(&args, TimestampTzGetDatum(watermark));
	(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_TASK_SET_PAUSED), &args);
}

void
ujobs_task_set_owner(int32 id, Oid role, const char *role_name)
{
	UjobsArgs	args = {0};
	NameData	name;

	namestrcpy(&name, role_name);
	ujobs_query_bind(&args, Int32GetDatum(id));
	ujobs_query_bind(&args, ObjectIdGetDatum(role));
	ujobs_query_bind(&args, NameGetDatum(&name));
	(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_TASK_SET_OWNER), &args);
}

void
ujobs_task_delete(int32 id)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int32GetDatum(id));
	(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_TASK_DELETE), &args);
}

void
ujobs_task_note_changed(void)
{
	UjobsHint	hint = {.kind = UJOBS_HINT_TASKS};

	ujobs_wakeup_note(&hint);
}

/* ---- for firing ---- */

int
ujobs_task_list(UjobsIdentity *identity, UjobsTaskStamp **stamps)
{
	UjobsResult r = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_TASK_LIST), NULL);

	*stamps = MemoryContextAllocHuge(identity->caller, (r.rows + 1) * sizeof(UjobsTaskStamp));
	for (uint64 i = 0; i < r.rows; i++)
	{
		(*stamps)[i].id = DatumGetInt32(ujobs_query_result_datum(&r, i, 0));
		(*stamps)[i].revision = DatumGetInt32(ujobs_query_result_datum(&r, i, 1));
		(*stamps)[i].watermark = DatumGetTimestampTz(ujobs_query_result_datum(&r, i, 2));
	}
	return (int) r.rows;
}

int
ujobs_task_fetch(UjobsIdentity *identity, const int32 *ids, int n, UjobsTask **tasks)
{
	UjobsArgs	args = {0};
	UjobsResult r;
	Datum	   *values = palloc(Max(n, 1) * sizeof(Datum));

	for (int i = 0; i < n; i++)
		values[i] = Int32GetDatum(ids[i]);
	ujobs_query_bind_array(&args, INT4OID, values, NULL, n);
	r = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_TASK_FETCH), &args);
	*tasks = MemoryContextAllocHuge(identity->caller, (r.rows + 1) * sizeof(UjobsTask));
	for (uint64 i = 0; i < r.rows; i++)
		decode(&r, i, identity->caller, &(*tasks)[i]);
	return (int) r.rows;
}

static void
bind_steps(UjobsArgs *args, const UjobsTaskStep *steps, int n)
{
	Datum	   *values = palloc(n * sizeof(Datum));
	bool	   *nulls = palloc(n * sizeof(bool));

	for (int i = 0; i < n; i++)
		values[i] = Int32GetDatum(steps[i].id);
	ujobs_query_bind_array(args, INT4OID, values, NULL, n);
	for (int i = 0; i < n; i++)
		values[i] = Int32GetDatum(steps[i].revision);
	ujobs_query_bind_array(args, INT4OID, values, NULL, n);
	for (int i = 0; i < n; i++)
		values[i] = TimestampTzGetDatum(steps[i].known);
	ujobs_query_bind_array(args, TIMESTAMPTZOID, values, NULL, n);
	for (int i = 0; i < n; i++)
		values[i] = TimestampTzGetDatum(steps[i].watermark);
	ujobs_query_bind_array(args, TIMESTAMPTZOID, values, NULL, n);
	for (int i = 0; i < n; i++)
	{
		nulls[i] = steps[i].last == DT_NOBEGIN;
		values[i] = TimestampTzGetDatum(steps[i].last);
	}
	ujobs_query_bind_array(args, TIMESTAMPTZOID, values, nulls, n);
	for (int i = 0; i < n; i++)
		values[i] = Int64GetDatum(steps[i].dropped);
	ujobs_query_bind_array(args, INT8OID, values, NULL, n);
}

void
ujobs_task_advance(UjobsTaskStep *steps, int n, TimestampTz now)
{
	UjobsArgs	args = {0};
	UjobsResult r;

	for (int i = 0; i < n; i++)
		steps[i].taken = false;
	if (n == 0)
		return;
	bind_steps(&args, steps, n);
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	r = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_TASK_ADVANCE), &args);
	for (uint64 row = 0; row < r.rows; row++)
		steps[DatumGetInt64(ujobs_query_result_datum(&r, row, 0)) - 1].taken = true;
}

void
ujobs_task_set_broken(int32 id, int32 revision, const char *broken)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int32GetDatum(id));
	ujobs_query_bind(&args, Int32GetDatum(revision));
	ujobs_query_bind_text(&args, broken);
	(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_TASK_SET_BROKEN), &args);
}

/* ---- tasks of a job ---- */

char *
ujobs_task_using(const char *job)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult result;
	char	   *names;

	ujobs_identity_enter(&identity);
	ujobs_query_bind_text(&args, job);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_TASK_USING), &args);
	names = ujobs_query_result_text(&result, 0, 0, identity.caller);
	ujobs_identity_leave(&identity);
	return names;
}

void
ujobs_task_break_using(const char *job)
{
	UjobsArgs	args = {0};

	ujobs_query_bind_text(&args, job);
	(void) ujobs_catalogue_execute(UJOBS_SQL_TASK_BREAK_USING, &args);
}
