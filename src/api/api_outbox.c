/*
 * api_outbox.c: publish, and what people do with a message that is held back.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"
#include "catalog/pg_type.h"

#include "api/argument.h"
#include "api/job_grant.h"
#include "core/error.h"
#include "core/guc.h"
#include "core/in_flight.h"
#include "core/json.h"
#include "core/sink_module.h"
#include "model/traceparent.h"
#include "run/route.h"
#include "store/inbox_store.h"
#include "store/outbox_store.h"
#include "store/sink_store.h"

PG_FUNCTION_INFO_V1(ujobs_sql_publish);
PG_FUNCTION_INFO_V1(ujobs_sql_retry_outbox);
PG_FUNCTION_INFO_V1(ujobs_sql_skip_outbox);
PG_FUNCTION_INFO_V1(ujobs_sql_skip_inbox);
PG_FUNCTION_INFO_V1(ujobs_sql_publishing);

#define MAX_TOPIC_BYTES 1000
#define MAX_HEADERS 50
#define MAX_HEADER_BYTES 4000

/* ---- headers ---- */

/* The module sets these, so that a message is known again. */
static bool
is_reserved(const char *name)
{
	static const char *const whole[] = {
		"idempotency-key", "content-length", "transfer-encoding", "host", "connection"
	};

	if (pg_strncasecmp(name, "nats-", 5) == 0 || pg_strncasecmp(name, "ujobs-", 6) == 0)
		return true;
	for (int i = 0; i < lengthof(whole); i++)
	{
		if (pg_strcasecmp(name, whole[i]) == 0)
			return true;
	}
	return false;
}

static void
check_header(const char *name, const JsonbValue *value)
{
	static const char token[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~";
	const char *hint =
		"A header's name is letters, digits and dashes, its value a string of one line.";

	if (*name == '\0' || strspn(name, token) != strlen(name))
		ujobs_argument_refuse("headers", psprintf("\"%s\" is not a name of a header.", name), hint);
	if (is_reserved(name))
		ujobs_argument_refuse("headers", psprintf("\"%s\" is set by ujobs itself.", name),
							  "Leave it out.");
	if (value->type != jbvString)
		ujobs_argument_refuse("headers", psprintf("The value of \"%s\" is not a string.", name),
							  hint);
	if (strlen(name) + value->val.string.len > MAX_HEADER_BYTES)
		ujobs_argument_refuse("headers",
							  psprintf("\"%s\" and its value have %zu bytes of %d.", name,
									   strlen(name) + value->val.string.len, MAX_HEADER_BYTES),
							  hint);
	for (int i = 0; i < value->val.string.len; i++)
	{
		unsigned char c = value->val.string.val[i];

		if ((c < ' ' && c != '\t') || c == 127)
			ujobs_argument_refuse(
				"headers", psprintf("The value of \"%s\" has a control character.", name), hint);
	}
}

/* The session's trace goes along, unless the headers have one or it is none. */
static bool
needs_trace(Jsonb *headers)
{
	JsonbValue	value;

	return ujobs_guc_traceparent != NULL && *ujobs_guc_traceparent != '\0' &&
		   ujobs_traceparent_fault(ujobs_guc_traceparent) == NULL &&
		   getKeyJsonValueFromContainer(&headers->root, "traceparent", strlen("traceparent"),
										&value) == NULL;
}

static Jsonb *
headers_argument(FunctionCallInfo fcinfo, int argument)
{
	UjobsJson	json = {0};
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	value;
	Jsonb	   *headers;
	char	   *name = NULL;

	if (PG_ARGISNULL(argument))
		headers = DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum("{}")));
	else
		headers = PG_GETARG_JSONB_P(argument);
	if (!JB_ROOT_IS_OBJECT(headers))
		ujobs_argument_refuse("headers", "It is not a JSON object.",
							  "Pass an object of strings, such as {\"x-source\": \"shop\"}.");
	if (JB_ROOT_COUNT(headers) > MAX_HEADERS)
		ujobs_argument_refuse("headers", psprintf("There are %d of them.", JB_ROOT_COUNT(headers)),
							  "Pass at most 50.");
	ujobs_json_begin_object(&json, NULL);
	it = JsonbIteratorInit(&headers->root);
	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		if (token != WJB_KEY && token != WJB_VALUE)
			continue;
		if (token == WJB_KEY)
		{
			name = pnstrdup(value.val.string.val, value.val.string.len);
			continue;
		}
		check_header(name, &value);
		ujobs_json_value(&json, name, &value);
	}
	if (needs_trace(headers))
		ujobs_json_text(&json, "traceparent", ujobs_guc_traceparent);
	return ujobs_json_end(&json);
}

/* ---- publishing ---- */

static void
check_text(const char *option, const char *text, const char *hint)
{
	if (*text == '\0' || strlen(text) > MAX_TOPIC_BYTES)
		ujobs_argument_refuse(
			option, psprintf("It has %zu bytes; it takes 1 to %d.", strlen(text), MAX_TOPIC_BYTES),
			hint);
}

static UjobsSink *
sink_argument(FunctionCallInfo fcinfo)
{
	char	   *name = ujobs_argument_required(fcinfo, 0, "sink");
	UjobsSink  *sink = ujobs_sink_find(name, false);

	if (sink == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("sink \"%s\" does not exist", name),
				 errhint("Have a superuser define it with ujobs.define_sink.")));
	return sink;
}

/* ---- names that are the engine's own ---- */

static const char *
text_option(const UjobsSink *sink, const char *name, const char *if_absent)
{
	JsonbValue	value;

	if (getKeyJsonValueFromContainer(&sink->options->root, name, strlen(name), &value) == NULL ||
		value.type != jbvString)
		return if_absent;
	return pnstrdup(value.val.string.val, value.val.string.len);
}

static bool
begins_with(const char *text, const char *stream, const char *rest)
{
	size_t		length = strlen(stream);

	return strncmp(text, stream, length) == 0 &&
		   strncmp(text + length, rest, strlen(rest)) == 0;
}

/* Is that a queue of the other sink, or where its messages are claimed? */
static bool
is_own_name(const UjobsSink *other, const char *name)
{
	if (strcmp(other->kind, "redis") == 0)
		return begins_with(name, text_option(other, "stream", "ujobs"), ":");
	return begins_with(name, text_option(other, "stream", "UJOBS"), ".jobs.") ||
		begins_with(name, text_option(other, "stream", "UJOBS"), ".claims.");
}

/*
 * By name alone: whether two sinks lead to the same system is not known here.
 * Messages are signed as well (signature.h): this is to say no at once.
 */
static void
refuse_own_name(const UjobsSink *sink, const char *topic)
{
	const char *name = topic;
	UjobsSink  *others;
	int			n;

	if (strcmp(sink->kind, "redis") == 0)
		name = text_option(sink, "stream", topic);
	else if (strcmp(sink->kind, "nats") != 0)
		return;
	if (strpbrk(name, ":.") == NULL)
		return;
	others = ujobs_sink_list(&n);
	for (int i = 0; i < n; i++)
	{
		if (strcmp(others[i].kind, sink->kind) == 0 && is_own_name(&others[i], name))
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("permission denied for \"%s\" of sink \"%s\"", name, sink->name),
					 errdetail("It is where jobs of queues go, or are claimed (sink \"%s\").",
							   others[i].name),
					 errhint("Call ujobs.enqueue to make a job of that queue, or publish to another topic.")));
	}
}

/* publish(sink, topic, payload, key, headers) */
Datum
ujobs_sql_publish(PG_FUNCTION_ARGS)
{
	UjobsOutboxMessage message = {.created_at = GetCurrentTimestamp(), .publisher = GetUserId()};
	UjobsSink  *sink;
	Jsonb	   *payload;

	ujobs_job_grant_required(fcinfo, "publish");
	PreventCommandIfReadOnly("ujobs.publish()");
	sink = sink_argument(fcinfo);
	message.sink_id = sink->id;
	message.topic = ujobs_argument_required(fcinfo, 1, "topic");
	check_text("topic", message.topic,
			   "Name the subject, stream or path that the message goes to.");
	refuse_own_name(sink, message.topic);
	if (PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"payload\" must not be NULL"),
				 errhint("Pass a jsonb value, such as '{}', or 'null' for JSON null.")));
	payload = PG_GETARG_JSONB_P(2);
	message.key = PG_ARGISNULL(3) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(3));
	if (message.key != NULL)
		check_text("key", message.key,
				   "Give what the messages that must keep their order have in common, or NULL.");
	message.headers = headers_argument(fcinfo, 4);
	ujobs_route_check_size(payload, sink->name,
						   ujobs_sink_module_max_payload(sink->kind, sink->options));
	PG_RETURN_INT64(ujobs_outbox_write(&message, &payload, NULL, 1));
}

/* ---- what is held back ---- */

static void
settle(int64 id, UjobsOutboxFound found)
{
	if (found == UJOBS_OUTBOX_PUBLISHED)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("message " INT64_FORMAT " is published already", id),
				 errhint("See ujobs.outbox for those that are not.")));
	if (found == UJOBS_OUTBOX_UNKNOWN)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("there is no message " INT64_FORMAT " in the outbox", id),
				 errhint("See ujobs.outbox for those there are.")));
}

static int64
id_argument(FunctionCallInfo fcinfo)
{
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"id\" must not be NULL"),
				 errhint("Pass the id of a message in ujobs.outbox.")));
	return PG_GETARG_INT64(0);
}

/* retry_outbox(id) */
Datum
ujobs_sql_retry_outbox(PG_FUNCTION_ARGS)
{
	int64		id = id_argument(fcinfo);

	PreventCommandIfReadOnly("ujobs.retry_outbox()");
	settle(id, ujobs_outbox_retry(id, GetCurrentTimestamp()));
	PG_RETURN_VOID();
}

/* skip_outbox(id) */
Datum
ujobs_sql_skip_outbox(PG_FUNCTION_ARGS)
{
	int64		id = id_argument(fcinfo);

	PreventCommandIfReadOnly("ujobs.skip_outbox()");
	settle(id, ujobs_outbox_skip(id));
	PG_RETURN_VOID();
}

/* skip_inbox(message_id) */
Datum
ujobs_sql_skip_inbox(PG_FUNCTION_ARGS)
{
	char	   *id = ujobs_argument_required(fcinfo, 0, "message_id");

	PreventCommandIfReadOnly("ujobs.skip_inbox()");
	if (!ujobs_inbox_skip(id, GetCurrentTimestamp()))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("there is no parked message \"%s\" in the inbox", id),
				 errhint("See ujobs.inbox for those there are.")));
	PG_RETURN_VOID();
}

/* publishing(): the ids that are on their way. */
Datum
ujobs_sql_publishing(PG_FUNCTION_ARGS)
{
	int64	   *ids;
	int			n = ujobs_in_flight_read(&ids);
	Datum	   *values = palloc(Max(n, 1) * sizeof(Datum));

	for (int i = 0; i < n; i++)
		values[i] = Int64GetDatum(ids[i]);
	PG_RETURN_ARRAYTYPE_P(
		construct_array(values, n, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}
