/*
 * define_options.c: the options of a definition, read, checked and compared.
 *
 * A NULL option means the default.  Each refusal names the option, its value
 * and what it takes.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "api/argument.h"
#include "api/define_options.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/guc.h"
#include "model/schema_compile.h"
#include "model/retry.h"
#include "model/template.h"
#include "store/definition_store.h"

#define US_PER_MS INT64CONST(1000)

/* The place of the shared options, counted from idempotency_key. */
enum
{
	ARG_KEY,
	ARG_TENANT,
	ARG_INPUT_SCHEMA,
	ARG_RETRY,
	ARG_QUEUE,
	ARG_PRIORITY,
	ARG_CONCURRENCY,
	ARG_TIMEOUT,
	ARG_STEP_TIMEOUT,
	ARG_BATCH,
	ARG_RETENTION,
	ARG_DESCRIPTION
};

static void
refuse(const char *option, const char *value, const char *takes)
{
	ujobs_argument_refuse(option, psprintf("\"%s\" is %s; it takes %s.", option, value, takes),
						 "Give it such a value, or leave it out for the default.");
}

static char *
text_option(FunctionCallInfo fcinfo, int argument, const char *if_null)
{
	if (PG_ARGISNULL(argument))
		return if_null ? pstrdup(if_null) : NULL;
	return text_to_cstring(PG_GETARG_TEXT_PP(argument));
}

static char *
interval_text(const Interval *interval)
{
	return DatumGetCString(DirectFunctionCall1(interval_out, IntervalPGetDatum(interval)));
}

/* Longer than 0 and within what the server's timers can count. */
static Interval *
timeout_option(FunctionCallInfo fcinfo, int argument, const char *option)
{
	Interval   *interval;
	int64		us;

	if (PG_ARGISNULL(argument))
		return NULL;
	interval = PG_GETARG_INTERVAL_P(argument);
	us = ujobs_clock_interval_us(interval);
	if (us < US_PER_MS || us > PG_INT32_MAX * US_PER_MS)
		refuse(option, interval_text(interval),
			   "an interval from 1 ms to 2147483647 ms (about 24 days)");
	if (ujobs_guc_max_timeout == 0 || us <= ujobs_guc_max_timeout * US_PER_MS)
		return interval;
	ereport(NOTICE,
			(errmsg("option \"%s\" is cut to %d ms", option, ujobs_guc_max_timeout),
			 errdetail("That is ujobs.max_timeout, the longest an administrator allows.")));
	interval = palloc0(sizeof(Interval));
	interval->time = ujobs_guc_max_timeout * US_PER_MS;
	return interval;
}

static Interval *
retention_option(FunctionCallInfo fcinfo, int argument)
{
	Interval   *interval;
	int64		us;

	if (PG_ARGISNULL(argument))
		return NULL;
	interval = PG_GETARG_INTERVAL_P(argument);
	us = ujobs_clock_interval_us(interval);
	if (us < 0 || us > UJOBS_MAX_INTERVAL_US)
		refuse("retention", interval_text(interval), "an interval from 0 to 100 years");
	return interval;
}

static int32
integer_option(FunctionCallInfo fcinfo, int argument, int32 if_null)
{
	return PG_ARGISNULL(argument) ? if_null : PG_GETARG_INT32(argument);
}

static void
check_range(const char *option, int32 value, int32 least, int32 most)
{
	if (value < least || value > most)
		refuse(option, psprintf("%d", value), psprintf("%d to %d", least, most));
}

static char *
key_option(FunctionCallInfo fcinfo, int argument)
{
	char	   *key = text_option(fcinfo, argument, "");

	if (key[0] == '\0')
		ereport(ERROR,
				(ujobs_errcode(IDEMPOTENCY_REQUIRED),
				 errmsg("a job definition needs an idempotency key"),
				 errdetail("\"idempotency_key\" is %s.", PG_ARGISNULL(argument) ? "NULL" : "empty"),
				 errhint("Give idempotency_key a template over the input, such as 'onboard:{orgId}'.")));
	(void) ujobs_template_parse(key, "idempotency_key");
	return key;
}

static char *
tenant_option(FunctionCallInfo fcinfo, int argument)
{
	char	   *tenant = text_option(fcinfo, argument, NULL);

	if (tenant == NULL || tenant[0] == '\0')
		return NULL;
	(void) ujobs_template_parse(tenant, "tenant");
	return tenant;
}

static Jsonb *
retry_option(FunctionCallInfo fcinfo, int argument)
{
	UjobsRetry	policy;

	ujobs_retry_parse(PG_ARGISNULL(argument) ? NULL : PG_GETARG_JSONB_P(argument), &policy);
	return ujobs_retry_to_jsonb(&policy);
}

/* Compiled to be sure that it can be, and for nothing else. */
static Jsonb *
schema_option(FunctionCallInfo fcinfo, int argument)
{
	Jsonb	   *schema;

	if (PG_ARGISNULL(argument))
		return NULL;
	schema = PG_GETARG_JSONB_P(argument);
	(void) ujobs_schema_compile(schema);
	return schema;
}

void
ujobs_define_options_read(FunctionCallInfo fcinfo, int first, UjobsDraft *draft)
{
	draft->key = key_option(fcinfo, first + ARG_KEY);
	draft->tenant = tenant_option(fcinfo, first + ARG_TENANT);
	draft->input_schema = schema_option(fcinfo, first + ARG_INPUT_SCHEMA);
	draft->retry = retry_option(fcinfo, first + ARG_RETRY);
	draft->queue = text_option(fcinfo, first + ARG_QUEUE, "default");
	ujobs_argument_check_name("queue", draft->queue);
	draft->priority = integer_option(fcinfo, first + ARG_PRIORITY, 0);
	check_range("priority", draft->priority, PG_INT16_MIN, PG_INT16_MAX);
	draft->concurrency = integer_option(fcinfo, first + ARG_CONCURRENCY, 0);
	if (!PG_ARGISNULL(first + ARG_CONCURRENCY))
		check_range("concurrency", draft->concurrency, 1, PG_INT32_MAX);
	draft->timeout = timeout_option(fcinfo, first + ARG_TIMEOUT, "timeout");
	draft->step_timeout = timeout_option(fcinfo, first + ARG_STEP_TIMEOUT, "step_timeout");
	draft->batch = integer_option(fcinfo, first + ARG_BATCH, 1);
	check_range("batch", draft->batch, 1, 1000);
	draft->retention = retention_option(fcinfo, first + ARG_RETENTION);
	draft->description = text_option(fcinfo, first + ARG_DESCRIPTION, NULL);
}

/* ---- what fits a kind ---- */

static void
refuse_for_kind(const char *option, const char *value, UjobsKind kind, const char *fits)
{
	ereport(ERROR,
			(ujobs_errcode(INVALID_OPTION),
			 errmsg("option \"%s\" does not fit a job of kind \"%s\"", option,
					ujobs_definition_kind_name(kind)),
			 errdetail("\"%s\" is %s; it is for %s.", option, value, fits),
			 errhint("Leave %s out.", option)));
}

void
ujobs_define_options_check_kind(const UjobsDraft *draft, UjobsKind kind)
{
	if (kind != UJOBS_KIND_ATOMIC && draft->batch != 1)
		refuse_for_kind("batch", psprintf("%d", draft->batch), kind, "atomic jobs");
	if (kind != UJOBS_KIND_EXTERNAL)
		return;
	if (draft->timeout != NULL)
		refuse_for_kind("timeout", interval_text(draft->timeout), kind,
						"jobs that run inside the database");
	if (draft->step_timeout != NULL)
		refuse_for_kind("step_timeout", interval_text(draft->step_timeout), kind,
						"jobs that run inside the database");
}

/* ---- comparing ---- */

static void
compare(StringInfo out, const char *option, const char *stored, const char *asked)
{
	if (stored == NULL && asked == NULL)
		return;
	if (stored != NULL && asked != NULL && strcmp(stored, asked) == 0)
		return;
	appendStringInfo(out, "%s%s is %s, not %s", out->len > 0 ? "; " : "", option,
					 stored ? stored : "NULL", asked ? asked : "NULL");
}

static char *
quoted(const char *text)
{
	return text ? psprintf("\"%s\"", text) : NULL;
}

static void
compare_text(StringInfo out, const char *option, const char *stored, const char *asked)
{
	compare(out, option, quoted(stored), quoted(asked));
}

static void
compare_integer(StringInfo out, const char *option, int32 stored, int32 asked)
{
	if (stored != asked)
		compare(out, option, psprintf("%d", stored), psprintf("%d", asked));
}

/* '1 day' and '24 hours' are the same option. */
static void
compare_interval(StringInfo out, const char *option, const Interval *stored, const Interval *asked)
{
	if (stored != NULL && asked != NULL &&
		ujobs_clock_interval_us(stored) == ujobs_clock_interval_us(asked))
		return;
	compare(out, option, stored ? interval_text(stored) : NULL,
			asked ? interval_text(asked) : NULL);
}

static char *
jsonb_text(Jsonb *value)
{
	return value ? JsonbToCString(NULL, &value->root, VARSIZE(value)) : NULL;
}

static char *
limit_text(int32 limit)
{
	return limit == 0 ? NULL : psprintf("%d", limit);
}

char *
ujobs_define_options_compare(const UjobsDraft *stored, const UjobsDraft *asked)
{
	StringInfoData out;

	initStringInfo(&out);
	compare_text(&out, "kind", stored->kind, asked->kind);
	compare_text(&out, strcmp(asked->kind, "command") == 0 ? "command" : "handler",
				 stored->handler, asked->handler);
	compare_text(&out, "idempotency_key", stored->key, asked->key);
	compare_text(&out, "tenant", stored->tenant, asked->tenant);
	compare(&out, "input_schema", jsonb_text(stored->input_schema),
			jsonb_text(asked->input_schema));
	compare(&out, "retry", jsonb_text(stored->retry), jsonb_text(asked->retry));
	compare_text(&out, "queue", stored->queue, asked->queue);
	compare_integer(&out, "priority", stored->priority, asked->priority);
	compare(&out, "concurrency", limit_text(stored->concurrency), limit_text(asked->concurrency));
	compare_interval(&out, "timeout", stored->timeout, asked->timeout);
	compare_interval(&out, "step_timeout", stored->step_timeout, asked->step_timeout);
	compare_integer(&out, "batch", stored->batch, asked->batch);
	compare_interval(&out, "retention", stored->retention, asked->retention);
	compare_text(&out, "description", stored->description, asked->description);
	return out.len > 0 ? out.data : NULL;
}
