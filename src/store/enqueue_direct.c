/*
 * enqueue_direct.c: new jobs without a statement, thousands or one.
 *
 * An INSERT ... ON CONFLICT of a million rows spends half of its time on what
 * only a conflict needs: a look for each key, a promise to others that is taken
 * back or confirmed, a WAL record for each row.  Keys of large calls are
 * nearly always free, which a few looks into the index tell; then the rows go
 * to disk by pages, in the order of their ids, and into the index of the keys
 * in order of those (docs/decisions/012).
 *
 * One job goes in as INSERT ... ON CONFLICT does it, but a third of that is the
 * statement (docs/decisions/013).
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "commands/sequence.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "core/bulk.h"
#include "core/table.h"
#include "store/enqueue_direct.h"
#include "store/row.h"

#define KEY_INDEX "job_key"

Oid
ujobs_enqueue_direct_sequence(void)
{
	return get_relname_relid("job_id_seq", get_namespace_oid("ujobs_internal", false));
}

int32
ujobs_enqueue_direct_attempts(const UjobsEnqueueOptions *options)
{
	return options->max_attempts > 0 ? options->max_attempts : options->definition->retry.attempts;
}

/*
 * A column that this library does not know has a default, or a value that a
 * statement alone gives it.
 */
static bool
has_our_columns(Relation table)
{
	return RelationGetDescr(table)->natts == UJOBS_JOB_COLUMNS;
}

bool *
ujobs_enqueue_direct_look(const UjobsEnqueueOptions *options, UjobsEnqueueItem **items, int n)
{
	Relation	table = ujobs_table_open("job", UJOBS_TABLE_WRITE);
	bool	   *taken = NULL;

	if (has_our_columns(table) && ujobs_bulk_possible(table, KEY_INDEX))
	{
		UjobsBulkKey *keys = MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(UjobsBulkKey));

		for (int i = 0; i < n; i++)
		{
			keys[i].group = items[i]->tenant;
			keys[i].name = items[i]->key;
		}
		taken = palloc_extended(n * sizeof(bool), MCXT_ALLOC_HUGE);
		ujobs_bulk_look(table, KEY_INDEX, &(UjobsBulkKeys){options->definition->id, keys, n},
						taken);
		pfree(keys);
	}
	ujobs_table_close(table);
	return taken;
}

bool
ujobs_enqueue_direct_stretch(const bool *taken, int n, int i, int *end)
{
	int			free_from = i;

	for (*end = i; *end < n; (*end)++)
	{
		if (!taken[*end])
			continue;
		if (*end - free_from >= UJOBS_ENQUEUE_DIRECT_LEAST)
			break;
		free_from = *end + 1;
	}
	if (*end - free_from < UJOBS_ENQUEUE_DIRECT_LEAST)
		return false;			/* to the end */
	if (free_from == i)
		return true;
	*end = free_from;
	return false;
}

/* An item and its place in order of the keys. */
typedef struct Placed
{
	UjobsEnqueueItem *item;
	int			place;
} Placed;

typedef struct Rows
{
	const UjobsEnqueueOptions *options;
	Placed	   *placed;			/* in order of the ids */
	Datum		queue;
	Datum		enqueued_by;	/* 0 = NULL */
	Datum		traceparent;	/* 0 = NULL */
} Rows;

static int
placed_compare(const void *a, const void *b)
{
	const UjobsEnqueueItem *x = ((const Placed *) a)->item;
	const UjobsEnqueueItem *y = ((const Placed *) b)->item;

	return x < y ? -1 : x > y;
}

static Size
row_fill(void *arg, int i, Datum *values, bool *nulls)
{
	const Rows *rows = arg;
	const UjobsEnqueueOptions *options = rows->options;
	const UjobsEnqueueItem *item = rows->placed[i].item;

	memset(nulls, false, UJOBS_JOB_COLUMNS * sizeof(bool));
	values[UJOBS_JOB_ID] = Int64GetDatum(item->result.id);
	values[UJOBS_JOB_DUE_AT] = TimestampTzGetDatum(options->run_at);
	values[UJOBS_JOB_RUN_AT] = TimestampTzGetDatum(options->run_at);
	nulls[UJOBS_JOB_RUN_AT] = options->run_at == options->now;
	values[UJOBS_JOB_CREATED_AT] = TimestampTzGetDatum(options->now);
	values[UJOBS_JOB_DEFINITION_ID] = Int32GetDatum(options->definition->id);
	values[UJOBS_JOB_REVISION] = Int32GetDatum(0);
	values[UJOBS_JOB_ENQUEUED_ROLE] = ObjectIdGetDatum(options->role);
	values[UJOBS_JOB_ATTEMPT] = Int32GetDatum(0);
	values[UJOBS_JOB_MAX_ATTEMPTS] = Int32GetDatum(ujobs_enqueue_direct_attempts(options));
	values[UJOBS_JOB_PRIORITY] = Int16GetDatum(options->priority);
	values[UJOBS_JOB_STATE] = CharGetDatum(UJOBS_STATE_PENDING);
	values[UJOBS_JOB_RUN_ID] = UUIDPGetDatum(&item->result.run_id);
	values[UJOBS_JOB_QUEUE] = rows->queue;
	values[UJOBS_JOB_TENANT_ID] = CStringGetTextDatum(item->tenant);
	values[UJOBS_JOB_IDEMPOTENCY_KEY] = CStringGetTextDatum(item->key);
	values[UJOBS_JOB_INPUT] = JsonbPGetDatum(item->input);
	nulls[UJOBS_JOB_STARTED_AT] = nulls[UJOBS_JOB_LAST_ERROR] = nulls[UJOBS_JOB_REASON] = true;
	values[UJOBS_JOB_ENQUEUED_BY] = rows->enqueued_by;
	nulls[UJOBS_JOB_ENQUEUED_BY] = rows->enqueued_by == (Datum) 0;
	values[UJOBS_JOB_TRACEPARENT] = rows->traceparent;
	nulls[UJOBS_JOB_TRACEPARENT] = rows->traceparent == (Datum) 0;
	nulls[UJOBS_JOB_EVENTS_SINCE] = true;
	return VARSIZE(item->input);
}

static Datum
text_or_zero(const char *value)
{
	return value == NULL ? (Datum) 0 : CStringGetTextDatum(value);
}

static Rows
rows_of(const UjobsEnqueueOptions *options, Placed *placed)
{
	return (Rows) {
		.options = options,
		.placed = placed,
		.queue = CStringGetTextDatum(options->queue),
		.enqueued_by = text_or_zero(options->enqueued_by),
		.traceparent = text_or_zero(options->traceparent)
	};
}

bool
ujobs_enqueue_direct_one(const UjobsEnqueueOptions *options, UjobsEnqueueItem *item)
{
	Relation	table = ujobs_table_open("job", UJOBS_TABLE_WRITE);
	Placed		placed = {item, 0};
	Rows		rows = rows_of(options, &placed);
	Datum		values[UJOBS_JOB_COLUMNS];
	bool		nulls[UJOBS_JOB_COLUMNS];
	bool		stored = false;
	Oid			index;

	(void) row_fill(&rows, 0, values, nulls);
	if (has_our_columns(table) && ujobs_table_key_is_free(table, KEY_INDEX, values, &index))
	{
		item->result.id = nextval_internal(ujobs_enqueue_direct_sequence(), false);
		values[UJOBS_JOB_ID] = Int64GetDatum(item->result.id);
		stored = ujobs_table_insert_if_free(table, index, values, nulls);
	}
	ujobs_table_close(table);
	return stored;
}

void
ujobs_enqueue_direct_insert(const UjobsEnqueueOptions *options, UjobsEnqueueItem **items, int n)
{
	Relation	table = ujobs_table_open("job", UJOBS_TABLE_WRITE);
	int		   *order = MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(int));
	Rows		rows =
		rows_of(options, MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(Placed)));
	UjobsBulk	bulk = {.n = n, .row = row_fill, .arg = &rows, .ordered = KEY_INDEX, .order = order};

	for (int i = 0; i < n; i++)
		rows.placed[i] = (Placed) {items[i], i};
	qsort(rows.placed, n, sizeof(Placed), placed_compare);
	for (int i = 0; i < n; i++)
		order[rows.placed[i].place] = i;
	ujobs_bulk_insert(table, &bulk);
	ujobs_table_close(table);
	pfree(rows.placed);
	pfree(order);
}
