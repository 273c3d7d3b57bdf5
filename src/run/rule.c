/*
 * rule.c: a task, read.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/zone.h"
#include "model/schema_check.h"
#include "model/template.h"
#include "run/rule.h"
#include "store/definition_store.h"

static char *
read_rule(UjobsRule *rule)
{
	UjobsTask  *task = rule->task;
	UjobsCronError error;

	if (!ujobs_cron_parse(task->cron, strlen(task->cron), &rule->plan.cron, &error))
		return psprintf("invalid cron expression \"%s\": %s", task->cron, error.detail);
	rule->plan.zone = ujobs_zone_find(task->tz);
	if (rule->plan.zone == NULL)
		return psprintf("time zone \"%s\" is not recognized", task->tz);
	rule->plan.policy = task->catch_up;
	rule->plan.most = task->max_catch_up;
	if (task->enqueue != NULL)
		rule->n_entries = ujobs_task_entries_read(task->enqueue, "enqueue", &rule->entries);
	return NULL;
}

static UjobsTask *
copy_task(const UjobsTask *task)
{
	UjobsTask  *copy = palloc(sizeof(UjobsTask));

	*copy = *task;
	copy->name = pstrdup(task->name);
	copy->owner_name = pstrdup(task->owner_name);
	copy->cron = pstrdup(task->cron);
	copy->tz = pstrdup(task->tz);
	copy->enqueue = task->enqueue ? memcpy(palloc(VARSIZE(task->enqueue)), task->enqueue,
										   VARSIZE(task->enqueue)) :
									NULL;
	copy->enqueue_fn = task->enqueue_fn ? pstrdup(task->enqueue_fn) : NULL;
	copy->broken = task->broken ? pstrdup(task->broken) : NULL;
	copy->description = NULL;
	return copy;
}

UjobsRule *
ujobs_rule_make(const UjobsTask *task, MemoryContext parent)
{
	MemoryContext memory = AllocSetContextCreate(parent, "ujobs task", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(memory);
	UjobsRule  *rule = palloc0(sizeof(UjobsRule));

	rule->memory = memory;
	rule->task = copy_task(task);
	rule->broken = task->broken != NULL;
	rule->unreadable = read_rule(rule);
	MemoryContextSwitchTo(old);
	return rule;
}

/* ---- the jobs that it enqueues ---- */

char *
ujobs_rule_tenant(const UjobsDefinition *definition, Jsonb *input)
{
	if (definition->tenant_parsed == NULL)
		return pstrdup("");
	return ujobs_template_render(definition->tenant_parsed, input, "tenant",
								 UJOBS_MAX_TENANT_BYTES);
}

char *
ujobs_rule_key(const UjobsDefinition *definition, Jsonb *input)
{
	return ujobs_template_render(definition->key_parsed, input, "idempotency_key",
								 UJOBS_MAX_KEY_BYTES);
}

void
ujobs_rule_check_input(const UjobsDefinition *definition, Jsonb *input)
{
	const UjobsSchema *schema = ujobs_definition_schema(definition);

	if (schema != NULL)
		ujobs_schema_check_or_raise(schema, definition->name, input, 0);
}

Jsonb *
ujobs_rule_input_of_occurrence(const char *task, TimestampTz occurrence)
{
	int64		us = occurrence + (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;
	pg_time_t	seconds = us / USECS_PER_SEC;
	char		text[64];
	StringInfoData out;

	pg_strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S.000Z", pg_gmtime(&seconds));
	initStringInfo(&out);
	appendStringInfoString(&out, "{\"task\":");
	escape_json(&out, task);
	appendStringInfo(&out, ",\"occurrence\":\"%s\",\"epochMs\":" INT64_FORMAT "}", text, us / 1000);
	return DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(out.data)));
}
