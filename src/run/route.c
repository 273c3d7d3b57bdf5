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
#include "core/json.h"
#include "run/route.h"
#include "run/signature.h"
#include "store/driver_store.h"
#include "store/outbox_store.h"

#define CHUNK 1000				/* messages of one statement */

/* ---- the message ---- */

/*
 * ISO 8601 in UTC with milliseconds, rounded down; what is before its first
 * year is as due as that.
 */
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
	UjobsJson	json = {0};
	char	   *run_id =
		DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(&item->result.run_id)));

	ujobs_json_begin_object(&json, NULL);
	ujobs_json_text(&json, "id", run_id);
	ujobs_json_text(&json, "runId", run_id);
	ujobs_json_text(&json, "name", o->definition->name);
	ujobs_json_text(&json, "queue", o->queue);
	ujobs_json_jsonb(&json, "input", item->input);
	ujobs_json_text(&json, "idempotencyKey", item->key);
	ujobs_json_number(&json, "maxAttempts", o->definition->retry.attempts);
	ujobs_json_text(&json, "runAt", instant_text(o->run_at));
	ujobs_json_text(&json, "tenantId", item->tenant[0] == '\0' ? NULL : item->tenant);
	ujobs_json_text(&json, "traceparent", o->traceparent);
	ujobs_json_text(&json, "enqueuedBy", o->enqueued_by);
	if (o->priority != o->definition->priority)
		ujobs_json_number(&json, "priority", o->priority);
	return ujobs_json_end(&json);
}

static Jsonb *
headers_of(const UjobsEnqueueOptions *o)
{
	UjobsJson	json = {0};

	ujobs_json_begin_object(&json, NULL);
	if (o->traceparent != NULL)
		ujobs_json_text(&json, "traceparent", o->traceparent);
	return ujobs_json_end(&json);
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
			(ujobs_errcode(INVALID_OPTION),
			 errmsg("option \"on_conflict\" has an invalid value"),
			 errdetail("Queue \"%s\" is on a broker (%s), so it is not known here whether the key is held.",
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
		if (driver->key != NULL)
			payloads[i] = ujobs_signature_add(payloads[i], driver->key);
		ujobs_route_check_size(payloads[i], driver->sink, driver->max_payload);
	}
	(void) ujobs_outbox_write(&message, payloads, ids, n);
}

static void
send_all(const UjobsEnqueueOptions *options, const UjobsDriver *cached, UjobsEnqueueItem *items,
		 int n)
{
	MemoryContext chunk;
	MemoryContext caller;
	UjobsDriver driver = *cached;	/* a chunk's statement may empty the cache */

	driver.sink = pstrdup(cached->sink);
	driver.driver = pstrdup(cached->driver);
	driver.key = cached->key == NULL ? NULL :
		DatumGetByteaPCopy(PointerGetDatum(cached->key));
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
