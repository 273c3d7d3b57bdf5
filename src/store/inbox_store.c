/*
 * inbox_store.c: rows of the inbox.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "core/identity.h"
#include "store/catalogue.h"
#include "store/inbox_store.h"

void
ujobs_inbox_known(const char *const *ids, bool *known, int n)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult result;
	Datum	   *values;

	memset(known, 0, n * sizeof(bool));
	ujobs_identity_enter(&identity);
	values = palloc(Max(n, 1) * sizeof(Datum));
	for (int i = 0; i < n; i++)
		values[i] = CStringGetTextDatum(ids[i]);
	ujobs_query_bind_array(&args, TEXTOID, values, NULL, n);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_INBOX_KNOWN), &args);
	for (uint64 row = 0; row < result.rows; row++)
		known[DatumGetInt64(ujobs_query_result_datum(&result, row, 0)) - 1] = true;
	ujobs_identity_leave(&identity);
}

static void
bind_jsonbs(UjobsArgs *args, Jsonb *const *values, int n)
{
	Datum	   *datums = palloc(Max(n, 1) * sizeof(Datum));
	bool	   *nulls = palloc(Max(n, 1) * sizeof(bool));

	for (int i = 0; i < n; i++)
	{
		nulls[i] = values[i] == NULL;
		datums[i] = nulls[i] ? (Datum) 0 : JsonbPGetDatum(values[i]);
	}
	ujobs_query_bind_array(args, JSONBOID, datums, nulls, n);
}

void
ujobs_inbox_insert(const UjobsInboxRow *rows, int n, TimestampTz now)
{
	UjobsArgs	args = {0};
	Datum	   *values;
	bool	   *nulls;
	Jsonb	  **jsonbs;

	values = palloc(Max(n, 1) * sizeof(Datum));
	nulls = palloc(Max(n, 1) * sizeof(bool));
	jsonbs = palloc(Max(n, 1) * sizeof(Jsonb *));
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	for (int i = 0; i < n; i++)
	{
		values[i] = Int64GetDatum(rows[i].job_id);
		nulls[i] = rows[i].job_id == 0;
	}
	ujobs_query_bind_array(&args, INT8OID, values, nulls, n);
	for (int i = 0; i < n; i++)
		values[i] = Int32GetDatum(rows[i].sink_id);
	ujobs_query_bind_array(&args, INT4OID, values, NULL, n);
	for (int i = 0; i < n; i++)
		values[i] = CStringGetTextDatum(rows[i].message_id);
	ujobs_query_bind_array(&args, TEXTOID, values, NULL, n);
	for (int i = 0; i < n; i++)
		values[i] = CStringGetTextDatum(rows[i].queue);
	ujobs_query_bind_array(&args, TEXTOID, values, NULL, n);
	for (int i = 0; i < n; i++)
		jsonbs[i] = rows[i].message;
	bind_jsonbs(&args, jsonbs, n);
	for (int i = 0; i < n; i++)
		jsonbs[i] = rows[i].error;
	bind_jsonbs(&args, jsonbs, n);
	(void) ujobs_catalogue_execute(UJOBS_SQL_INBOX_INSERT, &args);
}

UjobsInboxRow *
ujobs_inbox_parked(const char *after, int max, int *n)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult result;
	UjobsInboxRow *rows;

	ujobs_identity_enter(&identity);
	ujobs_query_bind_text(&args, after);
	ujobs_query_bind(&args, Int64GetDatum(max));
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_INBOX_PARKED), &args);
	*n = (int) result.rows;
	rows = MemoryContextAllocZero(identity.caller, Max(*n, 1) * sizeof(UjobsInboxRow));
	for (int i = 0; i < *n; i++)
	{
		rows[i].message_id = ujobs_query_result_text(&result, i, 0, identity.caller);
		rows[i].queue = ujobs_query_result_text(&result, i, 1, identity.caller);
		rows[i].sink_id = DatumGetInt32(ujobs_query_result_datum(&result, i, 2));
		rows[i].message = ujobs_query_result_jsonb(&result, i, 3, identity.caller);
		rows[i].error = ujobs_query_result_jsonb(&result, i, 4, identity.caller);
	}
	ujobs_identity_leave(&identity);
	return rows;
}

void
ujobs_inbox_settle(const UjobsInboxRow *row)
{
	UjobsArgs	args = {0};

	ujobs_query_bind_text(&args, row->message_id);
	ujobs_query_bind_maybe(&args, Int64GetDatum(row->job_id));
	ujobs_query_bind_jsonb(&args, row->error);
	(void) ujobs_catalogue_execute(UJOBS_SQL_INBOX_SETTLE, &args);
}

bool
ujobs_inbox_skip(const char *message_id, TimestampTz now)
{
	UjobsArgs	args = {0};

	ujobs_query_bind_text(&args, message_id);
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	return ujobs_catalogue_execute(UJOBS_SQL_INBOX_SKIP, &args) > 0;
}
