/*
 * route.c: step 1 of the walk of a job, where it parts: a row here, or a
 * message.
 *
 * A message says all that the store which takes it in needs (intake.c), with
 * key and tenant rendered and the attempts of the definition here.  It has no
 * key in the outbox: jobs are not ordered, and one that is refused holds back
 * no other.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "core/error.h"
#include "run/route.h"
#include "store/driver_store.h"
#include "store/outbox_store.h"

#define CHUNK 1000				/* messages of one statement */

/* ---- the message ---- */

static void
push_key(JsonbParseState **state, const char *name)
{
	JsonbValue	key = {.type = jbvString};

	key.val.string.val = pstrdup(name);
	key.val.string.len = strlen(name);
	pushJsonbValue(state, WJB_KEY, &key);
}

/* NULL is null. */
static void
push_text(JsonbParseState **state, const char *name, const char *text)
{
	JsonbValue	value = {.type = text == NULL ? jbvNull : jbvString};

	push_key(state, name);
	if (text != NULL)
	{
		value.val.string.val = pstrdup(text);
		value.val.string.len = strlen(text);
	}
	pushJsonbValue(state, WJB_VALUE, &value);
}

static void
push_number(JsonbParseState **state, const char *name, int64 number)
{
	JsonbValue	value = {.type = jbvNumeric};

	push_key(state, name);
	value.val.numeric = int64_to_numeric(number);
	pushJsonbValue(state, WJB_VALUE, &value);
}

/* A container goes in as it is, a scalar out of its shell. */
static void
push_jsonb(JsonbParseState **state, const char *name, Jsonb *jsonb)
{
	JsonbValue	value;

	push_key(state, name);
	if (!JsonbExtractScalar(&jsonb->root, &value))
	{
		value.type = jbvBinary;
		value.val.binary.data = &jsonb->root;
		value.val.binary.len = VARSIZE_ANY_EXHDR(jsonb);
	}
	pushJsonbValue(state, WJB_VALUE, &value);
}

/* ISO 8601 in UTC with milliseconds, rounded down; what is before its first year is as due as that. */
static char *
instant_text(TimestampTz at)
{
	struct pg_tm tm;
	fsec_t		fsec;

	if (timestamp2tm(at, NULL, &tm, &fsec, NULL, NULL) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range")));
	if (tm.tm_year < 1)
		return pstrdup("0001-01-01T00:00:00.000Z");
	return psprintf("%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year, tm.tm_mon, tm.tm_mday,
					tm.tm_hour, tm.tm_min, tm.tm_sec, (int) (fsec / 1000));
}

static Jsonb *
message_of(const UjobsEnqueueOptions *o, const UjobsEnqueueItem *item)
{
	JsonbParseState *state = NULL;
	char	   *run_id = DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(&item->result.run_id)));

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	push_text(&state, "id", run_id);
	push_text(&state, "runId", run_id);
	push_text(&state, "name", o->definition->name);
	push_text(&state, "queue", o->queue);
	push_jsonb(&state, "input", item->input);
	push_text(&state, "idempotencyKey", item->key);
	push_number(&state, "maxAttempts", o->definition->retry.attempts);
	push_text(&state, "runAt", instant_text(o->run_at));
	push_text(&state, "tenantId", item->tenant[0] == '\0' ? NULL : item->tenant);
	push_text(&state, "traceparent", o->traceparent);
	push_text(&state, "enqueuedBy", o->enqueued_by);
	if (o->priority != o->definition->priority)
		push_number(&state, "priority", o->priority);
	return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL));
}

static Jsonb *
headers_of(const UjobsEnqueueOptions *o)
{
	JsonbParseState *state = NULL;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	if (o->traceparent != NULL)
		push_text(&state, "traceparent", o->traceparent);
	return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL));
}

void
ujobs_route_check_size(Jsonb *payload, const char *sink, int64 max)
{
	char	   *text;
	size_t		size;

	/* Only numbers with many zeros become much longer as text. */
	if (VARSIZE_ANY(payload) < Min(max, 1024 * 1024) / 16)
		return;
	text = JsonbToCString(NULL, &payload->root, VARSIZE_ANY(payload));
	size = strlen(text);
	pfree(text);
	if (size > (size_t) max)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the message is too large for sink \"%s\"", sink),
				 errdetail("As JSON text it has %zu bytes, the sink takes " INT64_FORMAT ".", size, max),
				 errhint("Send less, such as a reference to where the data are, or raise the sink's option maxPayload if its server takes more.")));
}

/* ---- the way out ---- */

static void
check_conflict(const UjobsEnqueueOptions *options, const UjobsDriver *driver)
{
	if (options->on_conflict == UJOBS_CONFLICT_DEDUPE)
		return;
	ereport(ERROR,
			(errcode(UJOBS_ERRCODE(INVALID_OPTION)),
			 errmsg("option \"on_conflict\" has an invalid value"),
			 errdetail("Queue \"%s\" lives on a broker (%s), so nobody knows here whether the key is held.",
					   options->queue, driver->driver),
			 errhint("Leave it out: the store that takes the job in dedupes.")));
}

static void
send(const UjobsEnqueueOptions *options, const UjobsDriver *driver, UjobsEnqueueItem *items, int n)
{
	Jsonb	  **payloads = palloc(n * sizeof(Jsonb *));
	pg_uuid_t  *ids = palloc(n * sizeof(pg_uuid_t));
	UjobsOutboxMessage message = {
		.sink_id = driver->sink_id,
		.created_at = GetCurrentTimestamp(),
		.publisher = options->role,
		.is_job = true,
		.topic = options->queue,
		.headers = headers_of(options)
	};

	for (int i = 0; i < n; i++)
	{
		UjobsEnqueued *result = &items[i].result;

		result->id = 0;
		result->deduped = false;
		ujobs_enqueue_run_id(&result->run_id);
		ids[i] = result->run_id;
		payloads[i] = message_of(options, &items[i]);
		ujobs_route_check_size(payloads[i], driver->sink, driver->max_payload);
	}
	(void) ujobs_outbox_write(&message, payloads, ids, n);
}

static void
send_all(const UjobsEnqueueOptions *options, const UjobsDriver *cached, UjobsEnqueueItem *items, int n)
{
	MemoryContext chunk;
	MemoryContext caller;
	UjobsDriver driver = *cached;	/* a chunk's statement may empty the cache */

	driver.sink = pstrdup(cached->sink);
	driver.driver = pstrdup(cached->driver);
	check_conflict(options, &driver);
	chunk = AllocSetContextCreate(CurrentMemoryContext, "ujobs messages", ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(chunk);
	for (int i = 0; i < n; i += CHUNK)
	{
		send(options, &driver, items + i, Min(CHUNK, n - i));
		MemoryContextReset(chunk);
		CHECK_FOR_INTERRUPTS();
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(chunk);
}

void
ujobs_route_one(const UjobsEnqueueOptions *options, UjobsEnqueueItem *item)
{
	const UjobsDriver *driver = ujobs_driver_of_queue(options->queue);

	if (driver == NULL)
		ujobs_enqueue_one(options, item);
	else
		send_all(options, driver, item, 1);
}

void
ujobs_route_many(const UjobsEnqueueOptions *options, UjobsEnqueueItem *items, int n)
{
	const UjobsDriver *driver = ujobs_driver_of_queue(options->queue);

	if (driver == NULL)
		ujobs_enqueue_many(options, items, n);
	else
		send_all(options, driver, items, n);
}
