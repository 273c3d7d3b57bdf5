/*
 * enqueue_options.c: who may enqueue what, and with which options.
 *
 * Everything that can be refused is refused here, before a row is written:
 * first whether this transaction can enqueue at all, then the definition and
 * the grant, then each option in the order of the arguments.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "api/api_define.h"
#include "api/argument.h"
#include "api/enqueue_options.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/guc.h"
#include "model/schema_check.h"
#include "model/template.h"
#include "model/traceparent.h"
#include "run/current.h"
#include "store/definition_store.h"
#include "store/queue_name_store.h"

static const char *
text_argument(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(n));
}

/* ---- may it be enqueued ---- */

static const UjobsDefinition *
definition_required(const char *name)
{
	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the name of the job must not be null"),
				 errhint("Pass the name that was given to ujobs.define_job.")));
	return ujobs_define_find(name);
}

static void
grant_required(const UjobsDefinition *definition, Oid role)
{
	if (ujobs_definition_may_enqueue(definition, role))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for job \"%s\"", definition->name),
			 errdetail("Role \"%s\" was not granted to enqueue it and is not a member of its owner \"%s\".",
					   GetUserNameFromId(role, false), definition->owner_name),
			 errhint("The owner can grant it with ujobs.grant_enqueue.")));
}

/* Changing a queued job is control over it, which a grant to enqueue does not give. */
static void
control_required(const UjobsDefinition *definition, Oid role)
{
	if (ujobs_definition_may_control(definition, role))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied to replace jobs of \"%s\"", definition->name),
			 errdetail("Role \"%s\" is not a member of its owner \"%s\".",
					   GetUserNameFromId(role, false), definition->owner_name),
			 errhint("Use another on_conflict, or enqueue as a member of the owner.")));
}

static void
transaction_required(void)
{
	if (ujobs_guc_outbox_mode != UJOBS_OUTBOX_REQUIRED ||
		IsTransactionBlock() || IsSubTransaction() || ujobs_current_in_handler())
		return;
	ereport(ERROR,
			(ujobs_errcode(OUTBOX_NO_TX),
			 errmsg("a job must be enqueued in a transaction block"),
			 errdetail("ujobs.outbox_mode is \"required\" and no transaction block is open."),
			 errhint("Enqueue between BEGIN and COMMIT, together with the business change.")));
}

/* ---- the options ---- */

static TimestampTz
run_at_from_delay(TimestampTz now, Interval *delay)
{
	int64		us = ujobs_clock_interval_us(delay);

	if (us < 0)
		ujobs_argument_refuse("delay", "It is negative.",
							 "Pass a delay of zero or more, or run_at for an instant in the past.");

	if (us > UJOBS_MAX_INTERVAL_US)
		ujobs_argument_refuse("delay", "It is longer than 100 years.", "Pass a shorter delay.");
	return DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
												   TimestampTzGetDatum(now),
												   IntervalPGetDatum(delay)));
}

static TimestampTz
run_at_argument(FunctionCallInfo fcinfo, int run_at, int delay, TimestampTz now)
{
	if (!PG_ARGISNULL(run_at) && !PG_ARGISNULL(delay))
		ujobs_argument_refuse("delay", "Both run_at and delay are given.", "Pass one of them.");
	if (!PG_ARGISNULL(delay))
		return run_at_from_delay(now, PG_GETARG_INTERVAL_P(delay));
	if (PG_ARGISNULL(run_at))
		return now;
	if (TIMESTAMP_NOT_FINITE(PG_GETARG_TIMESTAMPTZ(run_at)))
		ujobs_argument_refuse("run_at", "It is infinite.", "Pass a finite instant.");
	return PG_GETARG_TIMESTAMPTZ(run_at);
}

static const char *
queue_argument(FunctionCallInfo fcinfo, int n, const UjobsDefinition *definition)
{
	const char *queue = text_argument(fcinfo, n);

	if (queue == NULL)
		return definition->queue;
	if (*queue == '\0' || strlen(queue) > UJOBS_MAX_NAME_BYTES)
		ujobs_argument_refuse("queue",
							 psprintf("The name has %zu bytes.", strlen(queue)),
							 "Pass a name of 1 to 63 bytes.");
	return queue;
}

static int16
priority_argument(FunctionCallInfo fcinfo, int n, const UjobsDefinition *definition)
{
	int32		priority;

	if (PG_ARGISNULL(n))
		return definition->priority;
	priority = PG_GETARG_INT32(n);
	if (priority < PG_INT16_MIN || priority > PG_INT16_MAX)
		ujobs_argument_refuse("priority", psprintf("It is %d.", priority),
							 "Pass a number from -32768 (first) to 32767 (last).");
	return (int16) priority;
}

static const char *
tenant_checked(const char *tenant)
{
	if (tenant != NULL && strlen(tenant) > UJOBS_MAX_TENANT_BYTES)
		ujobs_argument_refuse("tenant", psprintf("It has %zu bytes.", strlen(tenant)),
							 "Pass at most 200 bytes, or '' for none.");
	return tenant;
}

static const char *
key_argument(FunctionCallInfo fcinfo, int n)
{
	const char *key = text_argument(fcinfo, n);

	if (key == NULL)
		return NULL;
	if (*key == '\0')
		ujobs_argument_refuse("idempotency_key", "It is empty.",
							 "Pass a key, or NULL for the one of the definition's template.");
	if (strlen(key) > UJOBS_MAX_KEY_BYTES)
		ujobs_argument_refuse("idempotency_key", psprintf("It has %zu bytes.", strlen(key)),
							 "Pass at most 1000 bytes, such as an id or a digest.");
	return key;
}

static UjobsOnConflict
on_conflict_argument(FunctionCallInfo fcinfo, int n)
{
	const char *word = text_argument(fcinfo, n);

	if (word == NULL || strcmp(word, "dedupe") == 0)
		return UJOBS_CONFLICT_DEDUPE;
	if (strcmp(word, "error") == 0)
		return UJOBS_CONFLICT_ERROR;
	if (strcmp(word, "replace") != 0)
		ujobs_argument_refuse("on_conflict", psprintf("It is \"%s\".", word),
							 "Pass 'dedupe', 'error' or 'replace'.");
	return UJOBS_CONFLICT_REPLACE;
}

/* The argument, or the session's setting when it is NULL; '' is none. */
static const char *
traceparent_argument(FunctionCallInfo fcinfo, int n)
{
	const char *given = text_argument(fcinfo, n);
	const char *text = given != NULL ? given : ujobs_guc_traceparent;
	const char *fault;

	if (text == NULL || *text == '\0')
		return NULL;
	fault = ujobs_traceparent_fault(text);
	if (fault != NULL)
		ujobs_argument_refuse(given != NULL ? "traceparent" : "ujobs.traceparent",
							 psprintf("\"%s\" %s.", text, fault),
							 "Pass a W3C traceparent such as '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', or '' for none.");
	return text;
}

static void
options_read(FunctionCallInfo fcinfo, int n, bool has_key, UjobsEnqueueCall *call)
{
	UjobsEnqueueOptions *o = &call->options;

	o->max_attempts = 0;
	o->run_id = NULL;
	o->now = ujobs_clock_now();
	o->run_at = run_at_argument(fcinfo, n, n + 1, o->now);
	n += 2;
	o->queue = queue_argument(fcinfo, n++, o->definition);
	if (strcmp(o->queue, o->definition->queue) != 0)
		ujobs_queue_name_check(o->definition->id, o->queue);
	o->priority = priority_argument(fcinfo, n++, o->definition);
	call->tenant = tenant_checked(text_argument(fcinfo, n++));
	call->key = has_key ? key_argument(fcinfo, n++) : NULL;
	o->on_conflict = on_conflict_argument(fcinfo, n++);
	o->own_job = ujobs_current_job() != NULL ? ujobs_current_job()->id : 0;
	o->enqueued_by = text_argument(fcinfo, n++);
	o->traceparent = traceparent_argument(fcinfo, n);
}

void
ujobs_enqueue_options_read(FunctionCallInfo fcinfo, const UjobsEnqueueForm *form,
						   UjobsEnqueueCall *call)
{
	UjobsEnqueueOptions *o = &call->options;

	PreventCommandIfReadOnly(form->function);
	o->role = GetUserId();
	o->definition = definition_required(text_argument(fcinfo, form->job));
	grant_required(o->definition, o->role);
	transaction_required();
	options_read(fcinfo, form->job + 2, form->has_key, call);
	if (o->on_conflict == UJOBS_CONFLICT_REPLACE)
		control_required(o->definition, o->role);
}

/* ---- the actor ---- */

/* A member of the actor as text, NULL when absent or null. */
static const char *
actor_member(Jsonb *actor, const char *name)
{
	JsonbValue	value;

	if (getKeyJsonValueFromContainer(&actor->root, name, strlen(name), &value) == NULL ||
		value.type == jbvNull)
		return NULL;
	if (value.type == jbvString)
		return pnstrdup(value.val.string.val, value.val.string.len);
	if (value.type == jbvBinary)
		ujobs_argument_refuse("actor",
							  psprintf("Its member \"%s\" is an object or an array.", name),
							  "Give the member as a string, a number or null.");
	if (value.type == jbvBool)
		return value.val.boolean ? "true" : "false";
	return DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(value.val.numeric)));
}

void
ujobs_enqueue_options_actor(UjobsEnqueueCall *call, Jsonb *actor)
{
	if (!JB_ROOT_IS_OBJECT(actor))
		ujobs_argument_refuse("actor", "It is not a JSON object.",
							 "Pass an object such as {\"orgId\": \"acme\", \"id\": \"user-1\"}.");
	if (call->tenant == NULL)
		call->tenant = tenant_checked(actor_member(actor, "orgId"));
	if (call->options.enqueued_by == NULL)
		call->options.enqueued_by = actor_member(actor, "id");
}

/* ---- each input ---- */

void
ujobs_enqueue_options_item(const UjobsEnqueueCall *call, Jsonb *input, int number,
						   UjobsEnqueueItem *item)
{
	const UjobsDefinition *d = call->options.definition;
	const UjobsSchema *schema = ujobs_definition_schema(d);

	if (schema != NULL)
		ujobs_schema_check_or_raise(schema, d->name, input, number);

	item->input = input;
	item->tenant = call->tenant;
	if (item->tenant == NULL && d->tenant_parsed != NULL)
		item->tenant = ujobs_template_render(d->tenant_parsed, input, "tenant",
											 UJOBS_MAX_TENANT_BYTES);
	if (item->tenant == NULL)
		item->tenant = "";
	item->key = call->key;
	if (item->key == NULL)
		item->key = ujobs_template_render(d->key_parsed, input, "idempotency_key",
										  UJOBS_MAX_KEY_BYTES);
}
