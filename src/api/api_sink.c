/*
 * api_sink.c: define_sink, set_sink_secret, drop_sink, and which queues live
 * on a broker: set_queue_driver, consume_queue.
 *
 * All of it is a superuser's: a sink is a connection that the server opens to
 * any address.  A secret goes in and never comes out.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "api/api_queue_key.h"
#include "api/argument.h"
#include "core/connection.h"
#include "core/error.h"
#include "core/identity.h"
#include "core/json.h"
#include "core/sink_module.h"
#include "core/wakeup.h"
#include "store/definition_store.h"
#include "store/sink_store.h"
#include "store/store_identity.h"

PG_FUNCTION_INFO_V1(ujobs_sql_define_sink);
PG_FUNCTION_INFO_V1(ujobs_sql_set_sink_secret);
PG_FUNCTION_INFO_V1(ujobs_sql_drop_sink);
PG_FUNCTION_INFO_V1(ujobs_sql_set_queue_driver);
PG_FUNCTION_INFO_V1(ujobs_sql_consume_queue);

/* ---- refusing ---- */

static void
superuser_required(const char *function)
{
	if (superuser())
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for function %s", function),
			 errdetail("Only a superuser may say where this server connects to."),
			 errhint("Ask a superuser to call it.")));
}

/* Locked to the end of the transaction. */
static UjobsSink *
sink_required(const char *name)
{
	UjobsSink  *sink = ujobs_sink_find(name, true);

	if (sink == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("sink \"%s\" does not exist", name),
				 errhint("Define it with ujobs.define_sink, or see ujobs.sinks for those there are.")));
	return sink;
}

static Jsonb *
object_argument(FunctionCallInfo fcinfo, int argument, const char *name)
{
	Jsonb	   *object;

	if (PG_ARGISNULL(argument))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be NULL", name),
				 errhint("Give it a JSON object, '{}' for nothing.")));
	object = PG_GETARG_JSONB_P(argument);
	if (!JB_ROOT_IS_OBJECT(object))
		ujobs_argument_refuse(name, "It is not a JSON object.",
							  "Give it an object; its members are strings, numbers and booleans.");
	return object;
}

/* ---- the module's opinion ---- */

static const UjobsSinkModule *
module_required(const char *kind)
{
	char	   *reason = NULL;
	const UjobsSinkModule *module = ujobs_sink_module(kind, &reason);

	if (module == NULL)
		ereport(ERROR,
				(ujobs_errcode(DRIVER_UNAVAILABLE),
				 errmsg("sinks of kind \"%s\" need a module that cannot be used", kind),
				 errdetail_internal("%s", reason),
				 errhint("Build and install ujobs again where pkg-config finds %s.", ujobs_sink_module_library(kind))));
	return module;
}

/*
 * A password in front of the host would be shown to every role.  What is
 * there alone is a token for NATS, and a user for Redis.
 */
static void
check_url(const char *kind, Jsonb *options)
{
	JsonbValue	value;
	char	   *at;

	if (getKeyJsonValueFromContainer(&options->root, "url", 3, &value) == NULL ||
		value.type != jbvString)
		ujobs_argument_refuse("url", "It is not there, or not a string.",
							  "Give the system's address, such as 'nats://127.0.0.1:4222'.");
	at = pnstrdup(value.val.string.val, value.val.string.len);
	while ((at = strstr(at, "://")) != NULL)
	{
		size_t		length;

		at += 3;
		length = strcspn(at, "/?#,@");
		if (at[length] == '@' && (strcmp(kind, "redis") != 0 || memchr(at, ':', length) != NULL))
			ujobs_argument_refuse("url", "There is a password or a token in it.",
								 "Leave it out and give it to ujobs.set_sink_secret, which never shows it.");
	}
}

/* Raises UJ003 and UJ024. */
static UjobsSinkOptions *
validate(const UjobsSinkModule *module, const UjobsSinkFacts *facts)
{
	static const volatile bool never = false;
	UjobsSinkOptions *options = ujobs_sink_module_options(facts, &never);
	UjobsSinkError error = {.text = ""};
	const char *unknown = ujobs_sink_module_unknown_option(module, options);

	if (unknown != NULL)
		ujobs_argument_refuse("options",
							  psprintf("Sinks of kind \"%s\" have no option \"%s\".", module->kind,
									   unknown),
							  "Correct its name or leave it out.");
	unknown = ujobs_sink_module_unknown_secret(module, options);
	if (unknown != NULL)
		ujobs_argument_refuse("secret",
							  psprintf("Sinks of kind \"%s\" have no secret \"%s\".", module->kind,
									   unknown),
							  "Correct its name or leave it out.");
	(void) ujobs_sink_module_max_payload(module->kind, facts->options);
	(void) ujobs_sink_module_attempts(facts->options);
	if (module->validate != NULL && !module->validate(options, &error))
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("the options of sink \"%s\" cannot be used", facts->sink),
				 errdetail_internal("%s", error.text),
				 errhint("Correct the option.")));
	return options;
}

static void
try_connection(const UjobsSinkModule *module, const UjobsSinkOptions *options)
{
	UjobsConnectionPlan plan = {.module = module, .options = options};
	UjobsSinkError error = {.text = ""};

	if (ujobs_connection_try(&plan, options->timeout_ms + 1000, &error))
		return;
	ereport(ERROR,
			(ujobs_errcode(DRIVER_UNAVAILABLE),
			 errmsg("sink \"%s\" cannot be reached", options->sink),
			 errdetail_internal("%s", error.text),
			 errhint("Correct the options, or leave out \"check\" if the server comes later or ujobs.set_sink_secret is still to be called.")));
}

/* ---- descriptors ---- */

static Datum
describe(const UjobsSink *sink)
{
	UjobsJson	json = {0};

	ujobs_json_begin_object(&json, NULL);
	ujobs_json_text(&json, "name", sink->name);
	ujobs_json_text(&json, "kind", sink->kind);
	ujobs_json_jsonb(&json, "options", sink->options);
	ujobs_json_boolean(&json, "hasSecret", sink->secret != NULL && JB_ROOT_COUNT(sink->secret) > 0);
	return JsonbPGetDatum(ujobs_json_end(&json));
}

/* ---- defining ---- */

static bool
same(const UjobsSink *stored, const UjobsSink *asked)
{
	return strcmp(stored->kind, asked->kind) == 0 &&
		compareJsonbContainers(&stored->options->root, &asked->options->root) == 0;
}

/* Raises UJ006 when the queues or consumers that use it could not go on. */
static void
check_kind_change(const UjobsSink *stored, const UjobsSink *asked)
{
	char	   *user;

	if (strcmp(stored->kind, asked->kind) == 0)
		return;
	user = ujobs_sink_user(stored->id);
	if (user != NULL)
		ereport(ERROR,
				(ujobs_errcode(JOB_IN_USE),
				 errmsg("sink \"%s\" is in use", stored->name),
				 errdetail_internal("It is of kind \"%s\", and %s.", stored->kind, user),
				 errhint("Define a sink of another name for the other kind.")));
}

/* Whether anything changed. */
static bool
change(UjobsSink *stored, const UjobsSink *asked, bool replace)
{
	if (same(stored, asked))
		return false;
	if (!replace)
		ujobs_argument_refuse_conflict(
			"sink", stored->name,
			psprintf("It is of kind \"%s\" with the options %s.", stored->kind,
					 JsonbToCString(NULL, &stored->options->root, VARSIZE(stored->options))));
	check_kind_change(stored, asked);
	ujobs_sink_change(stored->id, asked->kind, asked->options);
	stored->kind = asked->kind;
	stored->options = asked->options;
	return true;
}

/* Ends: each turn waits for another session's definition or drop of the name. */
static void
store(UjobsSink *asked, bool replace)
{
	bool		changed;

	for (;;)
	{
		UjobsSink  *stored = ujobs_sink_find(asked->name, true);

		CHECK_FOR_INTERRUPTS();
		if (stored != NULL)
		{
			changed = change(stored, asked, replace);
			asked->secret = stored->secret;
			break;
		}
		asked->id = ujobs_sink_insert(asked->name, asked->kind, asked->options,
									  GetCurrentTimestamp());
		if (asked->id != 0)
		{
			changed = true;
			break;
		}
	}
	if (changed)
		ujobs_definition_invalidate();
}

static void
settle_store_identity(void)
{
	UjobsIdentity identity;

	ujobs_identity_enter(&identity);
	ujobs_store_identity_settle();
	ujobs_identity_leave(&identity);
}

/* The options without "check", which is no property of the sink. */
static Jsonb *
without_check(Jsonb *options)
{
	return DatumGetJsonbP(
		DirectFunctionCall2(jsonb_delete, JsonbPGetDatum(options), CStringGetTextDatum("check")));
}

static void
check_kind(const char *kind)
{
	if (strcmp(kind, "nats") != 0 && strcmp(kind, "redis") != 0 && strcmp(kind, "http") != 0)
		ujobs_argument_refuse("kind", psprintf("It is \"%s\".", kind),
							  "Pass 'nats', 'redis' or 'http'.");
}

/* define_sink(name, kind, options, replace) */
Datum
ujobs_sql_define_sink(PG_FUNCTION_ARGS)
{
	UjobsSink	asked = {0};
	UjobsSink  *stored;
	UjobsSinkFacts facts = {0};
	UjobsSinkOptions *options;
	const UjobsSinkModule *module;
	bool		replace = !PG_ARGISNULL(3) && PG_GETARG_BOOL(3);
	bool		check;

	superuser_required("define_sink");
	asked.name = ujobs_argument_required(fcinfo, 0, "name");
	ujobs_argument_check_name("name", asked.name);
	asked.kind = ujobs_argument_required(fcinfo, 1, "kind");
	check_kind(asked.kind);
	asked.options = object_argument(fcinfo, 2, "options");
	PreventCommandIfReadOnly("ujobs.define_sink()");
	check_url(asked.kind, asked.options);
	check = ujobs_sink_module_wants_check(asked.options);
	asked.options = without_check(asked.options);

	module = module_required(asked.kind);
	settle_store_identity();
	stored = ujobs_sink_find(asked.name, false);
	facts.sink = asked.name;
	facts.store_id = ujobs_store_identity_uuid();
	facts.options = asked.options;
	facts.secret = stored == NULL || strcmp(stored->kind, asked.kind) != 0 ? NULL : stored->secret;
	options = validate(module, &facts);
	if (check)
		try_connection(module, options);
	store(&asked, replace);
	PG_RETURN_DATUM(describe(&asked));
}

/*
 * From here on, the statement with the secret in it is not what
 * pg_stat_activity shows, nor what the log says of an error.
 */
static void
hide_statement(void)
{
	pgstat_report_activity(STATE_RUNNING, "<ujobs.set_sink_secret>");
	(void) set_config_option("log_min_error_statement", "panic", PGC_SUSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

/* set_sink_secret(name, secret) */
Datum
ujobs_sql_set_sink_secret(PG_FUNCTION_ARGS)
{
	UjobsSink  *sink;
	UjobsSinkFacts facts = {0};
	int			nest = NewGUCNestLevel();

	hide_statement();
	superuser_required("set_sink_secret");
	PreventCommandIfReadOnly("ujobs.set_sink_secret()");
	facts.secret = object_argument(fcinfo, 1, "secret");
	sink = sink_required(ujobs_argument_required(fcinfo, 0, "name"));
	facts.sink = sink->name;
	facts.options = sink->options;
	(void) validate(module_required(sink->kind), &facts);
	ujobs_sink_set_secret(sink->id, facts.secret);
	ujobs_wakeup_note_relay();
	AtEOXact_GUC(true, nest);
	PG_RETURN_VOID();
}

/* drop_sink(name) */
Datum
ujobs_sql_drop_sink(PG_FUNCTION_ARGS)
{
	UjobsSink  *sink;
	char	   *user;

	superuser_required("drop_sink");
	PreventCommandIfReadOnly("ujobs.drop_sink()");
	sink = sink_required(ujobs_argument_required(fcinfo, 0, "name"));
	ujobs_sink_hold_outbox();
	user = ujobs_sink_user(sink->id);
	if (user != NULL)
		ereport(ERROR,
				(ujobs_errcode(JOB_IN_USE),
				 errmsg("sink \"%s\" is in use", sink->name),
				 errdetail_internal("%s.", psprintf("%c%s", pg_toupper(user[0]), user + 1)),
				 errhint("Let the outbox empty itself or skip what is in it, give queues the driver 'pg', and end ujobs.consume_queue with enabled => false.")));
	ujobs_sink_delete(sink->id);
	ujobs_definition_invalidate();
	PG_RETURN_VOID();
}

/* ---- queues ---- */

static UjobsSink *
broker_required(const char *name, const char *queue)
{
	UjobsSink  *sink = sink_required(name);

	if (strcmp(sink->kind, "http") == 0)
		ujobs_argument_refuse(
			"sink",
			psprintf("Sink \"%s\" is of kind \"http\", which keeps no queue such as \"%s\".", name,
					 queue),
			"Pass a sink of kind 'nats' or 'redis'.");
	return sink;
}

static char *
queue_argument(FunctionCallInfo fcinfo)
{
	char	   *queue = ujobs_argument_required(fcinfo, 0, "queue");

	ujobs_argument_check_name("queue", queue);
	return queue;
}

/* The sink of set_queue_driver, 0 for driver 'pg'. */
static int32
driver_sink(const char *queue, const char *driver, const char *name)
{
	UjobsSink  *sink;

	if (strcmp(driver, "pg") == 0)
	{
		if (name != NULL)
			ujobs_argument_refuse("sink",
								  "Driver 'pg' keeps the jobs of the queue in this database.",
								  "Leave out the sink.");
		return 0;
	}
	if (strcmp(driver, "nats") != 0 && strcmp(driver, "redis") != 0)
		ujobs_argument_refuse("driver", psprintf("It is \"%s\".", driver),
							  "Pass 'pg', 'nats' or 'redis'.");
	if (name == NULL)
		ujobs_argument_refuse("sink", psprintf("Driver \"%s\" needs a sink.", driver),
							  "Name a sink of that kind.");
	sink = broker_required(name, queue);
	if (strcmp(sink->kind, driver) != 0)
		ujobs_argument_refuse("sink",
							  psprintf("Sink \"%s\" is of kind \"%s\", the driver is \"%s\".", name,
									   sink->kind, driver),
							  "Pass a sink of the driver's kind.");
	return sink->id;
}

/* set_queue_driver(queue, driver, sink) */
Datum
ujobs_sql_set_queue_driver(PG_FUNCTION_ARGS)
{
	UjobsJson	json = {0};
	char	   *queue;
	char	   *driver;
	char	   *sink;

	superuser_required("set_queue_driver");
	queue = queue_argument(fcinfo);
	driver = PG_ARGISNULL(1) ? pstrdup("pg") : text_to_cstring(PG_GETARG_TEXT_PP(1));
	sink = PG_ARGISNULL(2) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(2));
	PreventCommandIfReadOnly("ujobs.set_queue_driver()");
	ujobs_sink_drive_queue(queue, driver, driver_sink(queue, driver, sink));
	if (strcmp(driver, "pg") != 0)
		ujobs_queue_key_require(queue);
	ujobs_definition_invalidate();

	ujobs_json_begin_object(&json, NULL);
	ujobs_json_text(&json, "queue", queue);
	ujobs_json_text(&json, "driver", driver);
	ujobs_json_text(&json, "sink", sink);
	PG_RETURN_JSONB_P(ujobs_json_end(&json));
}

/* consume_queue(queue, sink, enabled) */
Datum
ujobs_sql_consume_queue(PG_FUNCTION_ARGS)
{
	UjobsJson	json = {0};
	char	   *queue;
	UjobsSink  *sink;
	bool		enabled = PG_ARGISNULL(2) || PG_GETARG_BOOL(2);
	bool		allow_unsigned = !PG_ARGISNULL(3) && PG_GETARG_BOOL(3);

	superuser_required("consume_queue");
	queue = queue_argument(fcinfo);
	PreventCommandIfReadOnly("ujobs.consume_queue()");
	sink = broker_required(ujobs_argument_required(fcinfo, 1, "sink"), queue);
	ujobs_sink_set_consumer(queue, sink->id, enabled, allow_unsigned);
	ujobs_queue_key_require(queue);
	ujobs_definition_invalidate();

	ujobs_json_begin_object(&json, NULL);
	ujobs_json_text(&json, "queue", queue);
	ujobs_json_text(&json, "sink", sink->name);
	ujobs_json_boolean(&json, "enabled", enabled);
	ujobs_json_boolean(&json, "allowUnsigned", allow_unsigned);
	PG_RETURN_JSONB_P(ujobs_json_end(&json));
}
