/*
 * step_store.c: the remembered parts, by primary key and without plans.
 *
 * A step costs its handler one row; so it is written as a job's row is
 * finished, through the access method.  Outputs are carried as they are
 * stored: a value of many megabytes is only read when it is asked for.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/json.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "core/json.h"
#include "core/table.h"
#include "store/row.h"
#include "store/step_store.h"

/* ---- rows ---- */

static char *
text_or_null(Datum value, bool isnull)
{
	return isnull ? NULL : TextDatumGetCString(value);
}

/* Not detoasted. */
static struct varlena *
varlena_or_null(Datum value, bool isnull)
{
	return isnull ? NULL : (struct varlena *) DatumGetPointer(datumCopy(value, false, -1));
}

static UjobsStep *
decode(HeapTuple row, TupleDesc desc)
{
	UjobsStep  *step = palloc0(sizeof(UjobsStep));
	Datum		v[UJOBS_STEP_COLUMNS];
	bool		null[UJOBS_STEP_COLUMNS];

	if (desc->natts != UJOBS_STEP_COLUMNS)
		elog(ERROR, "the table of steps has %d columns, this library knows %d", desc->natts, UJOBS_STEP_COLUMNS);
	heap_deform_tuple(row, desc, v, null);
	/* A NULL of a type by value is 0. */
	step->seq = DatumGetInt32(v[UJOBS_STEP_SEQ]);
	step->attempts = DatumGetInt32(v[UJOBS_STEP_ATTEMPTS]);
	step->status = DatumGetChar(v[UJOBS_STEP_STATUS]);
	step->name = TextDatumGetCString(v[UJOBS_STEP_NAME]);
	step->started_at = DatumGetTimestampTz(v[UJOBS_STEP_STARTED_AT]);
	step->completed_at = DatumGetTimestampTz(v[UJOBS_STEP_COMPLETED_AT]);
	step->wake_at = DatumGetTimestampTz(v[UJOBS_STEP_WAKE_AT]);
	step->since = DatumGetTimestampTz(v[UJOBS_STEP_SINCE]);
	step->event_id = DatumGetInt64(v[UJOBS_STEP_EVENT_ID]);
	step->child_id = DatumGetInt64(v[UJOBS_STEP_CHILD_ID]);
	step->event = text_or_null(v[UJOBS_STEP_EVENT], null[UJOBS_STEP_EVENT]);
	step->match = text_or_null(v[UJOBS_STEP_MATCH], null[UJOBS_STEP_MATCH]);
	step->output = varlena_or_null(v[UJOBS_STEP_OUTPUT], null[UJOBS_STEP_OUTPUT]);
	step->error = varlena_or_null(v[UJOBS_STEP_ERROR], null[UJOBS_STEP_ERROR]);
	return step;
}

typedef struct Values
{
	Datum		value[UJOBS_STEP_COLUMNS];
	bool		null[UJOBS_STEP_COLUMNS];
} Values;

static void
put(Values *values, UjobsStepColumn column, Datum value)
{
	values->value[column] = value;
	values->null[column] = false;
}

static void
put_maybe(Values *values, UjobsStepColumn column, Datum value)
{
	if (value != 0)
		put(values, column, value);
}

static void
put_text(Values *values, UjobsStepColumn column, const char *text)
{
	if (text != NULL)
		put(values, column, CStringGetTextDatum(text));
}

static void
encode(int64 job_id, const UjobsStep *step, Values *values)
{
	memset(values->value, 0, sizeof(values->value));
	memset(values->null, true, sizeof(values->null));
	put(values, UJOBS_STEP_JOB_ID, Int64GetDatum(job_id));
	put(values, UJOBS_STEP_STARTED_AT, TimestampTzGetDatum(step->started_at));
	put_maybe(values, UJOBS_STEP_COMPLETED_AT, TimestampTzGetDatum(step->completed_at));
	put(values, UJOBS_STEP_SEQ, Int32GetDatum(step->seq));
	put(values, UJOBS_STEP_ATTEMPTS, Int32GetDatum(step->attempts));
	put(values, UJOBS_STEP_STATUS, CharGetDatum(step->status));
	put_text(values, UJOBS_STEP_NAME, step->name);
	put_maybe(values, UJOBS_STEP_WAKE_AT, TimestampTzGetDatum(step->wake_at));
	put_maybe(values, UJOBS_STEP_SINCE, TimestampTzGetDatum(step->since));
	put_maybe(values, UJOBS_STEP_EVENT_ID, Int64GetDatum(step->event_id));
	put_maybe(values, UJOBS_STEP_CHILD_ID, Int64GetDatum(step->child_id));
	put_text(values, UJOBS_STEP_EVENT, step->event);
	put_text(values, UJOBS_STEP_MATCH, step->match);
	put_maybe(values, UJOBS_STEP_OUTPUT, PointerGetDatum(step->output));
	put_maybe(values, UJOBS_STEP_ERROR, PointerGetDatum(step->error));
}

List *
ujobs_step_load(int64 job_id)
{
	Relation	table = ujobs_table_open("job_step", UJOBS_TABLE_READ);
	List	   *rows = ujobs_table_fetch_group(table, job_id);
	List	   *steps = NIL;
	ListCell   *lc;

	foreach(lc, rows)
		steps = lappend(steps, decode(lfirst(lc), RelationGetDescr(table)));
	list_free_deep(rows);
	ujobs_table_close(table);
	return steps;
}

struct varlena *
ujobs_step_load_output(int64 job_id, int32 seq)
{
	Relation	table = ujobs_table_open("job_step", UJOBS_TABLE_READ);
	HeapTuple	row = ujobs_table_fetch_member(table, job_id, seq);
	struct varlena *output = row != NULL ? decode(row, RelationGetDescr(table))->output : NULL;

	ujobs_table_close(table);
	return output;
}

void
ujobs_step_insert(int64 job_id, const UjobsStep *step)
{
	Relation	table = ujobs_table_open("job_step", UJOBS_TABLE_WRITE);
	Values		values;
	Datum	   *value = values.value;
	bool	   *null = values.null;

	encode(job_id, step, &values);
	ujobs_table_insert(table, &value, &null, 1);
	ujobs_table_close(table);
}

bool
ujobs_step_update(int64 job_id, const UjobsStep *step)
{
	Relation	table = ujobs_table_open("job_step", UJOBS_TABLE_WRITE);
	HeapTuple	row = ujobs_table_fetch_member(table, job_id, step->seq);
	Values		values;
	bool		found;

	encode(job_id, step, &values);
	found = row != NULL && ujobs_table_update(table, row, values.value, values.null);
	ujobs_table_close(table);
	return found;
}

void
ujobs_step_delete(int64 job_id, int32 seq)
{
	Relation	table = ujobs_table_open("job_step", UJOBS_TABLE_WRITE);
	HeapTuple	row = ujobs_table_fetch_member(table, job_id, seq);

	if (row != NULL)
		(void) ujobs_table_delete(table, row);
	ujobs_table_close(table);
}

void
ujobs_step_forget(int64 job_id)
{
	Relation	table = ujobs_table_open("job_step", UJOBS_TABLE_WRITE);
	List	   *rows = ujobs_table_fetch_group(table, job_id);
	ListCell   *lc;

	foreach(lc, rows)
		(void) ujobs_table_delete(table, lfirst(lc));
	list_free_deep(rows);
	ujobs_table_close(table);
}

/* ---- archived ---- */

static void
add_instant(UjobsJson *json, const char *key, TimestampTz instant)
{
	ujobs_json_text(json, key,
					JsonEncodeDateTime(NULL, TimestampTzGetDatum(instant), TIMESTAMPTZOID, NULL));
}

static void
add_column(UjobsJson *json, const char *key, UjobsStepColumn column, Datum datum)
{
	switch (column)
	{
		case UJOBS_STEP_STARTED_AT:
		case UJOBS_STEP_COMPLETED_AT:
		case UJOBS_STEP_WAKE_AT:
		case UJOBS_STEP_SINCE:
			add_instant(json, key, DatumGetTimestampTz(datum));
			break;
		case UJOBS_STEP_SEQ:
		case UJOBS_STEP_ATTEMPTS:
			ujobs_json_number(json, key, DatumGetInt32(datum));
			break;
		case UJOBS_STEP_EVENT_ID:
		case UJOBS_STEP_CHILD_ID:
			ujobs_json_number(json, key, DatumGetInt64(datum));
			break;
		case UJOBS_STEP_OUTPUT:
		case UJOBS_STEP_ERROR:
			ujobs_json_jsonb(json, key, DatumGetJsonbP(datum));
			break;
		case UJOBS_STEP_STATUS:
			ujobs_json_text(json, key, psprintf("%c", DatumGetChar(datum)));
			break;
		default:
			ujobs_json_text_of(json, key, VARDATA_ANY(DatumGetPointer(datum)),
							   VARSIZE_ANY_EXHDR(DatumGetPointer(datum)));
	}
}

Jsonb *
ujobs_step_archive(const List *steps)
{
	Relation	table;
	UjobsJson	json = {0};
	ListCell   *lc;
	Jsonb	   *archived;

	if (steps == NIL)
		return NULL;
	table = ujobs_table_open("job_step", UJOBS_TABLE_READ);
	ujobs_json_begin_array(&json, NULL);
	foreach(lc, steps)
	{
		Values		values;

		encode(0, lfirst(lc), &values);
		ujobs_json_begin_object(&json, NULL);
		for (UjobsStepColumn column = UJOBS_STEP_JOB_ID + 1; column < UJOBS_STEP_COLUMNS; column++)
		{
			if (!values.null[column])
				add_column(&json, NameStr(TupleDescAttr(RelationGetDescr(table), column)->attname),
						   column, values.value[column]);
		}
		(void) ujobs_json_end(&json);
	}
	archived = ujobs_json_end(&json);
	ujobs_table_close(table);
	return archived;
}
