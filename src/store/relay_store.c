/*
 * relay_store.c: reading the outbox, and the space that a queue has.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "core/identity.h"
#include "store/catalogue.h"
#include "store/relay_store.h"

static char *
utf8(char *text)
{
	return text == NULL ? NULL : pg_server_to_any(text, strlen(text), PG_UTF8);
}

static void
decode(const UjobsResult *r, uint64 i, MemoryContext into, UjobsRelayRow *row)
{
	row->id = DatumGetInt64(ujobs_query_result_datum(r, i, 0));
	row->due_at = DatumGetTimestampTz(ujobs_query_result_datum(r, i, 1));
	row->ready = DatumGetBool(ujobs_query_result_datum(r, i, 2));
	row->key = utf8(ujobs_query_result_text(r, i, 7, into));
	if (!row->ready)
		return;
	row->attempts = DatumGetInt32(ujobs_query_result_datum(r, i, 3));
	row->is_job = DatumGetBool(ujobs_query_result_datum(r, i, 4));
	strlcpy(row->message_id, ujobs_query_result_text(r, i, 5, into), UJOBS_UUID_TEXT);
	row->topic = utf8(ujobs_query_result_text(r, i, 6, into));
	row->headers = ujobs_query_result_jsonb(r, i, 8, into);
	row->payload = utf8(ujobs_query_result_text(r, i, 9, into));
	row->payload_size = strlen(row->payload);
}

static int
decode_all(const UjobsResult *result, MemoryContext into, UjobsRelayRow **rows)
{
	MemoryContext old = MemoryContextSwitchTo(into);

	*rows = palloc0(Max(result->rows, 1) * sizeof(UjobsRelayRow));
	for (uint64 i = 0; i < result->rows; i++)
		decode(result, i, into, &(*rows)[i]);
	MemoryContextSwitchTo(old);
	return (int) result->rows;
}

int
ujobs_relay_read(const UjobsRelayRead *read, UjobsRelayRow **rows)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult result;
	int			n;

	ujobs_identity_enter(&identity);
	ujobs_query_bind(&args, Int32GetDatum(read->sink_id));
	ujobs_query_bind(&args, Int64GetDatum(read->after));
	ujobs_query_bind(&args, Int64GetDatum(read->floor));
	ujobs_query_bind(&args, TimestampTzGetDatum(read->now));
	ujobs_query_bind(&args, Int64GetDatum(read->max));
	ujobs_query_bind(&args, Int64GetDatum(read->budget));
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_RELAY_READ), &args);
	n = decode_all(&result, identity.caller, rows);
	ujobs_identity_leave(&identity);
	return n;
}

static Datum
from_utf8(const char *text)
{
	return CStringGetTextDatum(pg_any_to_server(text, strlen(text), PG_UTF8));
}

int
ujobs_relay_read_keys(const UjobsRelayRead *read, const char *const *keys, int n,
					  UjobsRelayRow **rows)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult result;
	Datum	   *values;

	ujobs_identity_enter(&identity);
	values = palloc(Max(n, 1) * sizeof(Datum));
	for (int i = 0; i < n; i++)
		values[i] = from_utf8(keys[i]);
	ujobs_query_bind(&args, Int32GetDatum(read->sink_id));
	ujobs_query_bind(&args, Int64GetDatum(read->floor));
	ujobs_query_bind(&args, TimestampTzGetDatum(read->now));
	ujobs_query_bind(&args, Int64GetDatum(read->budget));
	ujobs_query_bind_array(&args, TEXTOID, values, NULL, n);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_RELAY_READ_KEYS), &args);
	n = decode_all(&result, identity.caller, rows);
	ujobs_identity_leave(&identity);
	return n;
}

int64
ujobs_relay_space(const char *queue, int64 max, TimestampTz now)
{
	UjobsArgs	args = {0};

	ujobs_query_bind_text(&args, queue);
	ujobs_query_bind(&args, Int64GetDatum(max));
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	return DatumGetInt64(ujobs_catalogue_value(UJOBS_SQL_RELAY_SPACE, &args, Int64GetDatum(0)));
}
