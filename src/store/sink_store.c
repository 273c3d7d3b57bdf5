/*
 * sink_store.c: sinks, their secrets and status, consumers.
 */
#include "postgres.h"

#include "core/identity.h"
#include "store/catalogue.h"
#include "store/sink_store.h"

/* The columns of SINK_COLUMNS, in order. */
static void
decode(const UjobsResult *r, uint64 row, MemoryContext into, UjobsSink *sink)
{
	sink->id = DatumGetInt32(ujobs_query_result_datum(r, row, 0));
	sink->revision = DatumGetInt32(ujobs_query_result_datum(r, row, 1));
	sink->name = ujobs_query_result_text(r, row, 2, into);
	sink->kind = ujobs_query_result_text(r, row, 3, into);
	sink->options = ujobs_query_result_jsonb(r, row, 4, into);
	sink->secret = ujobs_query_result_jsonb(r, row, 5, into);
}

UjobsSink *
ujobs_sink_list(int *n)
{
	UjobsIdentity identity;
	UjobsResult result;
	UjobsSink  *sinks;

	ujobs_identity_enter(&identity);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_SINK_LIST), NULL);
	*n = (int) result.rows;
	sinks = MemoryContextAllocZero(identity.caller, Max(*n, 1) * sizeof(UjobsSink));
	for (int i = 0; i < *n; i++)
		decode(&result, i, identity.caller, &sinks[i]);
	ujobs_identity_leave(&identity);
	return sinks;
}

UjobsSink *
ujobs_sink_find(const char *name, bool lock)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult result;
	UjobsSink  *sink = NULL;

	ujobs_identity_enter(&identity);
	ujobs_query_bind_text(&args, name);
	result = ujobs_query_run(
		ujobs_catalogue_statement(lock ? UJOBS_SQL_SINK_LOCK : UJOBS_SQL_SINK_BY_NAME), &args);
	if (result.rows > 0)
	{
		sink = MemoryContextAllocZero(identity.caller, sizeof(UjobsSink));
		decode(&result, 0, identity.caller, sink);
	}
	ujobs_identity_leave(&identity);
	return sink;
}

bool
ujobs_sink_any(void)
{
	return ujobs_catalogue_execute(UJOBS_SQL_SINK_ANY, NULL) > 0;
}

int32
ujobs_sink_insert(const char *name, const char *kind, Jsonb *options, TimestampTz now)
{
	UjobsArgs	args = {0};

	ujobs_query_bind_text(&args, name);
	ujobs_query_bind_text(&args, kind);
	ujobs_query_bind_jsonb(&args, options);
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	return DatumGetInt32(ujobs_catalogue_value(UJOBS_SQL_SINK_INSERT, &args, Int32GetDatum(0)));
}

void
ujobs_sink_change(int32 id, const char *kind, Jsonb *options)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int32GetDatum(id));
	ujobs_query_bind_text(&args, kind);
	ujobs_query_bind_jsonb(&args, options);
	(void) ujobs_catalogue_execute(UJOBS_SQL_SINK_UPDATE, &args);
}

void
ujobs_sink_set_secret(int32 id, Jsonb *secret)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int32GetDatum(id));
	ujobs_query_bind_jsonb(&args, secret);
	(void) ujobs_catalogue_execute(UJOBS_SQL_SINK_SET_SECRET, &args);
}

void
ujobs_sink_hold_outbox(void)
{
	(void) ujobs_catalogue_execute(UJOBS_SQL_SINK_HOLD_OUTBOX, NULL);
}

char *
ujobs_sink_user(int32 id)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult result;
	char	   *user = NULL;

	ujobs_identity_enter(&identity);
	ujobs_query_bind(&args, Int32GetDatum(id));
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_SINK_USER), &args);
	if (result.rows > 0)
		user = ujobs_query_result_text(&result, 0, 0, identity.caller);
	ujobs_identity_leave(&identity);
	return user;
}

void
ujobs_sink_delete(int32 id)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int32GetDatum(id));
	(void) ujobs_catalogue_execute(UJOBS_SQL_SINK_DELETE, &args);
}

void
ujobs_sink_set_status(int32 id, const char *error, TimestampTz now, TimestampTz next_try_at)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int32GetDatum(id));
	ujobs_query_bind_text(&args, error);
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	ujobs_query_bind(&args, TimestampTzGetDatum(next_try_at));
	(void) ujobs_catalogue_execute(UJOBS_SQL_SINK_SET_STATUS, &args);
}

/* ---- queues ---- */

UjobsConsumer *
ujobs_sink_consumers(int *n)
{
	UjobsIdentity identity;
	UjobsResult result;
	UjobsConsumer *consumers;

	ujobs_identity_enter(&identity);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_CONSUMER_LIST), NULL);
	*n = (int) result.rows;
	consumers = MemoryContextAllocZero(identity.caller, Max(*n, 1) * sizeof(UjobsConsumer));
	for (int i = 0; i < *n; i++)
	{
		consumers[i].queue = ujobs_query_result_text(&result, i, 0, identity.caller);
		consumers[i].sink_id = DatumGetInt32(ujobs_query_result_datum(&result, i, 1));
		consumers[i].enabled = DatumGetBool(ujobs_query_result_datum(&result, i, 2));
	}
	ujobs_identity_leave(&identity);
	return consumers;
}

void
ujobs_sink_set_consumer(const char *queue, int32 sink_id, bool enabled, bool allow_unsigned)
{
	UjobsArgs	args = {0};

	ujobs_query_bind_text(&args, queue);
	ujobs_query_bind(&args, Int32GetDatum(sink_id));
	ujobs_query_bind(&args, BoolGetDatum(enabled));
	ujobs_query_bind(&args, BoolGetDatum(allow_unsigned));
	(void) ujobs_catalogue_execute(UJOBS_SQL_CONSUMER_SET, &args);
}

void
ujobs_sink_drive_queue(const char *queue, const char *driver, int32 sink_id)
{
	UjobsArgs	args = {0};

	ujobs_query_bind_text(&args, queue);
	ujobs_query_bind_text(&args, driver);
	ujobs_query_bind_maybe(&args, Int32GetDatum(sink_id));
	(void) ujobs_catalogue_execute(UJOBS_SQL_SINK_DRIVE_QUEUE, &args);
}
