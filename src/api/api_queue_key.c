/*
 * api_queue_key.c: the keys that sign the messages of a broker's queue.
 *
 * Every program that can write to the broker could make a job of any definition here, so a
 * message counts only with a signature.  A key goes to the other databases of
 * the queue, and to programs that write to it, by an administrator's hand.
 * They change without a loss: first all databases accept the new key, then
 * all sign with it, then the old one is retired.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "api/api_queue_key.h"
#include "api/argument.h"
#include "core/error.h"
#include "run/signature.h"
#include "store/definition_store.h"
#include "store/queue_key_store.h"

PG_FUNCTION_INFO_V1(ujobs_sql_queue_key);
PG_FUNCTION_INFO_V1(ujobs_sql_set_queue_key);
PG_FUNCTION_INFO_V1(ujobs_sql_rotate_queue_key);
PG_FUNCTION_INFO_V1(ujobs_sql_retire_queue_keys);

static char *
queue_argument(FunctionCallInfo fcinfo, const char *function)
{
	char	   *queue = ujobs_argument_required(fcinfo, 0, "queue");

	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for function %s", function),
				 errdetail("Only a superuser may see or change the key of a queue."),
				 errhint("Ask a superuser to call it.")));
	ujobs_argument_check_name("queue", queue);
	return queue;
}

static bytea *
random_key(void)
{
	bytea	   *key = palloc(VARHDRSZ + UJOBS_KEY_BYTES);

	SET_VARSIZE(key, VARHDRSZ + UJOBS_KEY_BYTES);
	if (!pg_strong_random(VARDATA(key), UJOBS_KEY_BYTES))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random key")));
	return key;
}

static text *
key_text(const bytea *key)
{
	int			size = VARSIZE_ANY_EXHDR(key);
	char	   *hex = palloc(size * 2 + 1);

	hex[hex_encode(VARDATA_ANY(key), size, hex)] = '\0';
	return cstring_to_text(hex);
}

void
ujobs_queue_key_require(const char *queue)
{
	if (!ujobs_queue_key_all(queue).signs)
		ujobs_queue_key_add(queue, random_key(), true, GetCurrentTimestamp());
}

/* queue_key(queue) */
Datum
ujobs_sql_queue_key(PG_FUNCTION_ARGS)
{
	UjobsQueueKeys keys = ujobs_queue_key_all(queue_argument(fcinfo, "queue_key"));

	if (!keys.signs)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(key_text(keys.key[0]));
}

static bool
is_hex(const char *text)
{
	return strspn(text, "0123456789abcdefABCDEF") == strlen(text);
}

static bytea *
key_argument(FunctionCallInfo fcinfo)
{
	char	   *hex = ujobs_argument_required(fcinfo, 1, "key");
	size_t		digits = strlen(hex);
	bytea	   *key;

	if (digits < 32 || digits > 256 || digits % 2 != 0 || !is_hex(hex))
		ujobs_argument_refuse("key", "It is not 32 to 256 hexadecimal digits.",
							  "Pass what ujobs.queue_key returns in another database of the queue.");
	key = palloc(VARHDRSZ + digits / 2);
	SET_VARSIZE(key, VARHDRSZ + digits / 2);
	hex_decode(hex, digits, VARDATA(key));
	return key;
}

/* set_queue_key(queue, key, sign) */
Datum
ujobs_sql_set_queue_key(PG_FUNCTION_ARGS)
{
	char	   *queue = queue_argument(fcinfo, "set_queue_key");

	PreventCommandIfReadOnly("ujobs.set_queue_key()");
	ujobs_queue_key_add(queue, key_argument(fcinfo), PG_ARGISNULL(2) || PG_GETARG_BOOL(2),
						GetCurrentTimestamp());
	ujobs_definition_invalidate();
	PG_RETURN_VOID();
}

/* rotate_queue_key(queue, sign) */
Datum
ujobs_sql_rotate_queue_key(PG_FUNCTION_ARGS)
{
	char	   *queue = queue_argument(fcinfo, "rotate_queue_key");
	bytea	   *key = random_key();

	PreventCommandIfReadOnly("ujobs.rotate_queue_key()");
	ujobs_queue_key_add(queue, key, PG_ARGISNULL(1) || PG_GETARG_BOOL(1), GetCurrentTimestamp());
	ujobs_definition_invalidate();
	PG_RETURN_TEXT_P(key_text(key));
}

/* retire_queue_keys(queue) */
Datum
ujobs_sql_retire_queue_keys(PG_FUNCTION_ARGS)
{
	char	   *queue = queue_argument(fcinfo, "retire_queue_keys");

	PreventCommandIfReadOnly("ujobs.retire_queue_keys()");
	ujobs_queue_key_retire(queue);
	ujobs_definition_invalidate();
	PG_RETURN_VOID();
}
