/*
 * queue_key_store.c: the keys that sign the messages of a broker's queue.
 */
#include "postgres.h"

#include "core/identity.h"
#include "store/catalogue.h"
#include "store/queue_key_store.h"

UjobsQueueKeys
ujobs_queue_key_all(const char *queue)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult result;
	UjobsQueueKeys keys = {0};

	ujobs_identity_enter(&identity);
	ujobs_query_bind_text(&args, queue);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_QUEUE_KEY_ALL), &args);
	keys.n = (int) result.rows;
	keys.key = MemoryContextAlloc(identity.caller, Max(keys.n, 1) * sizeof(bytea *));
	keys.signs = keys.n > 0 && DatumGetBool(ujobs_query_result_datum(&result, 0, 1));
	for (int i = 0; i < keys.n; i++)
		keys.key[i] = (bytea *) DatumGetPointer(ujobs_query_result_copy(&result, i, 0,
																	   identity.caller));
	ujobs_identity_leave(&identity);
	return keys;
}

void
ujobs_queue_key_add(const char *queue, bytea *key, bool signs, TimestampTz now)
{
	UjobsArgs	args = {0};
	UjobsArgs	sign = {0};

	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	ujobs_query_bind_text(&args, queue);
	ujobs_query_bind(&args, PointerGetDatum(key));
	ujobs_query_bind(&args, BoolGetDatum(signs));
	(void) ujobs_catalogue_execute(UJOBS_SQL_QUEUE_KEY_ADD, &args);
	if (!signs)
		return;
	ujobs_query_bind_text(&sign, queue);
	ujobs_query_bind(&sign, PointerGetDatum(key));
	(void) ujobs_catalogue_execute(UJOBS_SQL_QUEUE_KEY_SIGN, &sign);
}

void
ujobs_queue_key_retire(const char *queue)
{
	UjobsArgs	args = {0};

	ujobs_query_bind_text(&args, queue);
	(void) ujobs_catalogue_execute(UJOBS_SQL_QUEUE_KEY_RETIRE, &args);
}

bool
ujobs_queue_key_allows_unsigned(const char *queue, int32 sink_id)
{
	UjobsArgs	args = {0};

	ujobs_query_bind_text(&args, queue);
	ujobs_query_bind(&args, Int32GetDatum(sink_id));
	return DatumGetBool(ujobs_catalogue_value(UJOBS_SQL_QUEUE_KEY_UNSIGNED, &args,
											  BoolGetDatum(false)));
}
