/*
 * dispatch_store.c: the dispatcher's keyset scans.
 *
 * The index (definition_id, queue, priority, due_at, id), and the same with a
 * tenant for jobs that have one, make each of them a bounded range: lanes and priorities are skipped from one to the next, and
 * a window continues where it stopped, never from the left end, where a held
 * snapshot may keep dead entries.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "core/clock.h"
#include "store/catalogue.h"
#include "store/dispatch_store.h"

#define BEFORE_ALL_PRIORITIES (PG_INT16_MIN - 1)

bool
ujobs_dispatch_next_lane(UjobsLaneKey *key)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult result;
	bool		found;

	ujobs_identity_enter(&identity);
	ujobs_query_bind(&args, Int32GetDatum(key->definition_id));
	ujobs_query_bind_text(&args, key->queue);
	result = ujobs_query_read(ujobs_catalogue_statement(UJOBS_SQL_DISPATCH_NEXT_LANE), &args);
	found = result.rows > 0;
	if (found)
	{
		key->definition_id = DatumGetInt32(ujobs_query_result_datum(&result, 0, 0));
		strlcpy(key->queue, ujobs_query_result_text(&result, 0, 1, CurrentMemoryContext),
				NAMEDATALEN);
	}
	ujobs_identity_leave(&identity);
	return found;
}

/* A tenant's rows have an index of their own. */
static bool
is_of_tenant(const UjobsLaneKey *lane)
{
	return lane->tenant[0] != '\0';
}

static UjobsStatement *
of_lane(const UjobsLaneKey *lane, UjobsStatementId plain, UjobsStatementId tenant)
{
	return ujobs_catalogue_statement(is_of_tenant(lane) ? tenant : plain);
}

/* The next priority of the lane after `after`, or false. */
static bool
next_priority(const UjobsLaneKey *lane, int32 after, int16 *priority)
{
	UjobsArgs	args = {0};
	UjobsResult result;

	ujobs_query_bind(&args, Int32GetDatum(lane->definition_id));
	ujobs_query_bind_text(&args, lane->queue);
	ujobs_query_bind(&args, Int32GetDatum(after));
	if (is_of_tenant(lane))
		ujobs_query_bind_text(&args, lane->tenant);
	result = ujobs_query_read(of_lane(lane, UJOBS_SQL_DISPATCH_NEXT_PRIORITY,
									  UJOBS_SQL_DISPATCH_TENANT_NEXT_PRIORITY), &args);
	if (result.rows == 0)
		return false;
	*priority = DatumGetInt16(ujobs_query_result_datum(&result, 0, 0));
	return true;
}

static int
read_due(const UjobsLaneKey *lane, UjobsCursor *cursor, TimestampTz now, UjobsHeapItem *out,
		 int max)
{
	UjobsArgs	args = {0};
	UjobsResult result;

	ujobs_query_bind(&args, Int32GetDatum(lane->definition_id));
	ujobs_query_bind_text(&args, lane->queue);
	ujobs_query_bind(&args, Int16GetDatum(cursor->priority));
	ujobs_query_bind(&args, TimestampTzGetDatum(cursor->due_at));
	ujobs_query_bind(&args, Int64GetDatum(cursor->id));
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	ujobs_query_bind(&args, Int64GetDatum(max));
	if (is_of_tenant(lane))
		ujobs_query_bind_text(&args, lane->tenant);
	result = ujobs_query_read(of_lane(lane, UJOBS_SQL_DISPATCH_DUE, UJOBS_SQL_DISPATCH_TENANT_DUE),
							  &args);
	for (uint64 row = 0; row < result.rows; row++)
	{
		out[row] = (UjobsHeapItem) {
			.id = DatumGetInt64(ujobs_query_result_datum(&result, row, 0)),
			.due_at = DatumGetTimestampTz(ujobs_query_result_datum(&result, row, 1)),
			.priority = cursor->priority
		};
	}
	if (result.rows > 0)
	{
		cursor->due_at = out[result.rows - 1].due_at;
		cursor->id = out[result.rows - 1].id;
	}
	return (int) result.rows;
}

int
ujobs_dispatch_due(const UjobsLaneKey *lane, UjobsCursor *cursor, TimestampTz now,
				   UjobsHeapItem *out, int max)
{
	UjobsIdentity identity;
	int			n = 0;
	int16		priority;

	ujobs_identity_enter(&identity);
	n = read_due(lane, cursor, now, out, max);
	while (n < max && next_priority(lane, cursor->priority, &priority))
	{
		*cursor = (UjobsCursor) {priority, DT_NOBEGIN, PG_INT64_MIN};
		n += read_due(lane, cursor, now, out + n, max - n);
	}
	ujobs_identity_leave(&identity);
	return n;
}

static List *
read_future(const UjobsLaneKey *lane, int16 priority, TimestampTz now, int max, MemoryContext into)
{
	UjobsArgs	args = {0};
	UjobsResult result;
	List	   *rows = NIL;
	MemoryContext old;

	ujobs_query_bind(&args, Int32GetDatum(lane->definition_id));
	ujobs_query_bind_text(&args, lane->queue);
	ujobs_query_bind(&args, Int16GetDatum(priority));
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	ujobs_query_bind(&args, Int64GetDatum(max));
	if (is_of_tenant(lane))
		ujobs_query_bind_text(&args, lane->tenant);
	result = ujobs_query_read(
		of_lane(lane, UJOBS_SQL_DISPATCH_FUTURE, UJOBS_SQL_DISPATCH_TENANT_FUTURE), &args);
	old = MemoryContextSwitchTo(into);
	for (uint64 row = 0; row < result.rows; row++)
	{
		UjobsHeapItem *due = palloc(sizeof(UjobsHeapItem));

		*due = (UjobsHeapItem) {
			.id = DatumGetInt64(ujobs_query_result_datum(&result, row, 0)),
			.due_at = DatumGetTimestampTz(ujobs_query_result_datum(&result, row, 1)),
			.priority = priority
		};
		rows = lappend(rows, due);
	}
	MemoryContextSwitchTo(old);
	return rows;
}

List *
ujobs_dispatch_future(const UjobsLaneKey *lane, TimestampTz now, int max, TimestampTz *horizon)
{
	UjobsIdentity identity;
	int32		after = BEFORE_ALL_PRIORITIES;
	int16		priority;
	List	   *all = NIL;

	*horizon = DT_NOEND;
	ujobs_identity_enter(&identity);
	while (next_priority(lane, after, &priority))
	{
		List	   *rows = read_future(lane, priority, now, max, identity.caller);

		if (list_length(rows) == max)
			*horizon = Min(*horizon, ((UjobsHeapItem *) llast(rows))->due_at);
		MemoryContextSwitchTo(identity.caller);
		all = list_concat(all, rows);
		after = priority;
	}
	ujobs_identity_leave(&identity);
	return all;
}

int
ujobs_dispatch_tenant_rows(const UjobsLaneKey *lane, UjobsHeapItem *out, int max)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult result;

	ujobs_identity_enter(&identity);
	ujobs_query_bind(&args, Int32GetDatum(lane->definition_id));
	ujobs_query_bind_text(&args, lane->queue);
	ujobs_query_bind_text(&args, lane->tenant);
	ujobs_query_bind(&args, Int64GetDatum(max));
	result = ujobs_query_read(ujobs_catalogue_statement(UJOBS_SQL_DISPATCH_TENANT_ROWS), &args);
	for (uint64 row = 0; row < result.rows; row++)
	{
		out[row] = (UjobsHeapItem) {
			.id = DatumGetInt64(ujobs_query_result_datum(&result, row, 0)),
			.due_at = DatumGetTimestampTz(ujobs_query_result_datum(&result, row, 1)),
			.priority = DatumGetInt16(ujobs_query_result_datum(&result, row, 2))
		};
	}
	ujobs_identity_leave(&identity);
	return (int) result.rows;
}

List *
ujobs_dispatch_tenants(const UjobsLaneKey *lane, int max)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult result;
	List	   *names = NIL;

	ujobs_identity_enter(&identity);
	ujobs_query_bind(&args, Int32GetDatum(lane->definition_id));
	ujobs_query_bind_text(&args, lane->queue);
	ujobs_query_bind(&args, Int64GetDatum(max));
	result = ujobs_query_read(ujobs_catalogue_statement(UJOBS_SQL_DISPATCH_TENANTS), &args);
	MemoryContextSwitchTo(identity.caller);
	for (uint64 row = 0; row < result.rows; row++)
		names = lappend(names, ujobs_query_result_text(&result, row, 0, identity.caller));
	ujobs_identity_leave(&identity);
	return names;
}

bool
ujobs_dispatch_has_plain(const UjobsLaneKey *lane)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	bool		any;

	ujobs_identity_enter(&identity);
	ujobs_query_bind(&args, Int32GetDatum(lane->definition_id));
	any = ujobs_query_read(ujobs_catalogue_statement(UJOBS_SQL_DISPATCH_HAS_PLAIN), &args).rows > 0;
	ujobs_identity_leave(&identity);
	return any;
}

char *
ujobs_dispatch_tenant_of(int64 id)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult result;
	char	   *name = NULL;

	ujobs_identity_enter(&identity);
	ujobs_query_bind(&args, Int64GetDatum(id));
	result = ujobs_query_read(ujobs_catalogue_statement(UJOBS_SQL_DISPATCH_TENANT_OF), &args);
	if (result.rows > 0)
		name = ujobs_query_result_text(&result, 0, 0, identity.caller);
	ujobs_identity_leave(&identity);
	return name;
}

List *
ujobs_dispatch_gone(const int64 *ids, int n)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult result;
	List	   *gone = NIL;
	Datum	   *values = palloc(Max(n, 1) * sizeof(Datum));

	for (int i = 0; i < n; i++)
		values[i] = Int64GetDatum(ids[i]);
	ujobs_query_bind_array(&args, INT8OID, values, NULL, n);
	ujobs_identity_enter(&identity);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_DISPATCH_GONE), &args);
	MemoryContextSwitchTo(identity.caller);
	for (uint64 row = 0; row < result.rows; row++)
	{
		int64	   *id = palloc(sizeof(int64));

		*id = DatumGetInt64(ujobs_query_result_datum(&result, row, 0));
		gone = lappend(gone, id);
	}
	ujobs_identity_leave(&identity);
	return gone;
}

static int
limit_of(const UjobsResult *result, uint64 row, int column)
{
	return ujobs_query_result_is_null(result, row, column) ?
			   0 :
			   DatumGetInt32(ujobs_query_result_datum(result, row, column));
}

List *
ujobs_dispatch_queues(void)
{
	UjobsIdentity identity;
	UjobsResult result;
	List	   *rows = NIL;

	ujobs_identity_enter(&identity);
	result = ujobs_query_read(ujobs_catalogue_statement(UJOBS_SQL_DISPATCH_QUEUES), NULL);
	MemoryContextSwitchTo(identity.caller);
	for (uint64 row = 0; row < result.rows; row++)
	{
		UjobsQueueRow *queue = palloc0(sizeof(UjobsQueueRow));

		strlcpy(queue->name, ujobs_query_result_text(&result, row, 0, CurrentMemoryContext),
				NAMEDATALEN);
		queue->paused = DatumGetBool(ujobs_query_result_datum(&result, row, 1));
		queue->concurrency = limit_of(&result, row, 2);
		queue->per_tenant = limit_of(&result, row, 3);
		queue->rate_per_tenant = limit_of(&result, row, 4);
		if (queue->rate_per_tenant > 0)
			queue->rate_window = ujobs_clock_interval_us(
				DatumGetIntervalP(ujobs_query_result_datum(&result, row, 5)));
		rows = lappend(rows, queue);
	}
	ujobs_identity_leave(&identity);
	return rows;
}

bool
ujobs_dispatch_is_paused(const List *queues, const char *name)
{
	ListCell   *lc;

	foreach(lc, queues)
	{
		const UjobsQueueRow *row = lfirst(lc);

		if (strcmp(name, row->name) == 0)
			return row->paused;
	}
	return false;
}
