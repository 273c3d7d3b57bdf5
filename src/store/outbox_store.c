/*
 * outbox_store.c: rows of the outbox.
 *
 * A row is deleted and its copy inserted among the published ones in one
 * statement, so a message is always in exactly one of the two.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "core/identity.h"
#include "core/wakeup.h"
#include "store/catalogue.h"
#include "store/outbox_store.h"

/* ---- who publishes ---- */

static void
bind_uuids(const pg_uuid_t *ids, int n, UjobsArgs *args)
{
	Datum	   *values = palloc(n * sizeof(Datum));

	for (int i = 0; i < n; i++)
		values[i] = UUIDPGetDatum(&ids[i]);
	ujobs_query_bind_array(args, UUIDOID, values, NULL, n);
}

static void
bind_payloads(Jsonb *const *payloads, int n, UjobsArgs *args)
{
	Datum	   *values = palloc(n * sizeof(Datum));

	for (int i = 0; i < n; i++)
		values[i] = JsonbPGetDatum(payloads[i]);
	ujobs_query_bind_array(args, JSONBOID, values, NULL, n);
}

int64
ujobs_outbox_write(const UjobsOutboxMessage *message, Jsonb *const *payloads, const pg_uuid_t *ids,
				   int n)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult result;
	int64		last = 0;

	if (n == 0)
		return 0;
	ujobs_identity_enter(&identity);
	ujobs_query_bind(&args, Int32GetDatum(message->sink_id));
	ujobs_query_bind(&args, TimestampTzGetDatum(message->created_at));
	ujobs_query_bind(&args, ObjectIdGetDatum(message->publisher));
	ujobs_query_bind(&args, BoolGetDatum(message->is_job));
	if (n > 1)
		bind_uuids(ids, n, &args);
	else
		ujobs_query_bind_maybe(&args, ids == NULL ? (Datum) 0 : UUIDPGetDatum(&ids[0]));
	ujobs_query_bind_text(&args, message->topic);
	ujobs_query_bind_text(&args, message->key);
	ujobs_query_bind_jsonb(&args, message->headers);
	if (n > 1)
		bind_payloads(payloads, n, &args);
	else
		ujobs_query_bind_jsonb(&args, payloads[0]);
	result = ujobs_query_run(ujobs_catalogue_statement(n > 1 ? UJOBS_SQL_OUTBOX_WRITE_MANY :
															   UJOBS_SQL_OUTBOX_WRITE),
							 &args);
	if (result.rows != (uint64) n)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("the sink was dropped meanwhile"),
				 errhint("Define it again with ujobs.define_sink.")));
	for (uint64 row = 0; row < result.rows; row++)
	{
		int64		id = DatumGetInt64(ujobs_query_result_datum(&result, row, 0));

		if (row == 0)
			ujobs_wakeup_note_outbox(id);
		last = Max(last, id);
	}
	ujobs_identity_leave(&identity);
	return last;
}

/* ---- the relay ---- */

int64
ujobs_outbox_delivered(const int64 *ids, int n, TimestampTz now)
{
	UjobsArgs	args = {0};
	Datum	   *values;

	values = palloc(n * sizeof(Datum));
	for (int i = 0; i < n; i++)
		values[i] = Int64GetDatum(ids[i]);
	ujobs_query_bind_array(&args, INT8OID, values, NULL, n);
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	return (int64) ujobs_catalogue_execute(UJOBS_SQL_OUTBOX_DELIVERED, &args);
}

/* What a system says may be in any bytes. */
static Datum
error_text(const char *error)
{
	int			size = strlen(error);
	int			valid = pg_encoding_verifymbstr(PG_UTF8, error, size);
	char	   *text = pnstrdup(error, valid);

	return CStringGetTextDatum(pg_any_to_server(text, valid, PG_UTF8));
}

void
ujobs_outbox_failed(const UjobsOutboxFailure *failures, int n)
{
	UjobsArgs	args = {0};
	Datum	   *values;

	values = palloc(n * sizeof(Datum));
	for (int i = 0; i < n; i++)
		values[i] = Int64GetDatum(failures[i].id);
	ujobs_query_bind_array(&args, INT8OID, values, NULL, n);
	for (int i = 0; i < n; i++)
		values[i] = Int32GetDatum(failures[i].attempts);
	ujobs_query_bind_array(&args, INT4OID, values, NULL, n);
	for (int i = 0; i < n; i++)
		values[i] = TimestampTzGetDatum(failures[i].due_at);
	ujobs_query_bind_array(&args, TIMESTAMPTZOID, values, NULL, n);
	for (int i = 0; i < n; i++)
		values[i] = BoolGetDatum(failures[i].parked);
	ujobs_query_bind_array(&args, BOOLOID, values, NULL, n);
	for (int i = 0; i < n; i++)
		values[i] = error_text(failures[i].error);
	ujobs_query_bind_array(&args, TEXTOID, values, NULL, n);
	(void) ujobs_catalogue_execute(UJOBS_SQL_OUTBOX_FAILED, &args);
}

/* ---- people ---- */

/* For an id that is not in the outbox. */
static UjobsOutboxFound
where_else(int64 id)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int64GetDatum(id));
	return ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_OUTBOX_WAS_PUBLISHED), &args).rows >
				   0 ?
			   UJOBS_OUTBOX_PUBLISHED :
			   UJOBS_OUTBOX_UNKNOWN;
}

/* Either changes what is held back behind the row, so the relay looks again from there. */
static UjobsOutboxFound
change(UjobsStatementId statement, UjobsArgs *args, int64 id)
{
	UjobsIdentity identity;
	UjobsOutboxFound found = UJOBS_OUTBOX_DONE;

	ujobs_identity_enter(&identity);
	if (ujobs_query_run(ujobs_catalogue_statement(statement), args).rows == 0)
		found = where_else(id);
	ujobs_identity_leave(&identity);
	if (found == UJOBS_OUTBOX_DONE)
		ujobs_wakeup_note_outbox(id);
	return found;
}

UjobsOutboxFound
ujobs_outbox_retry(int64 id, TimestampTz now)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int64GetDatum(id));
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	return change(UJOBS_SQL_OUTBOX_RETRY, &args, id);
}

UjobsOutboxFound
ujobs_outbox_skip(int64 id)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int64GetDatum(id));
	return change(UJOBS_SQL_OUTBOX_SKIP, &args, id);
}
