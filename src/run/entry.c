/*
 * entry.c: what a task's jobs are made of.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/timestamp.h"

#include "model/json_schema.h"
#include "model/template.h"
#include "run/entry.h"
#include "store/definition_store.h"

char *
ujobs_entry_tenant(const UjobsDefinition *definition, Jsonb *input)
{
	if (definition->tenant_parsed == NULL)
		return pstrdup("");
	return ujobs_template_render(definition->tenant_parsed, input, "tenant", UJOBS_MAX_TENANT_BYTES);
}

char *
ujobs_entry_key(const UjobsDefinition *definition, Jsonb *input)
{
	return ujobs_template_render(definition->key_parsed, input, "idempotency_key", UJOBS_MAX_KEY_BYTES);
}

void
ujobs_entry_check(const UjobsDefinition *definition, Jsonb *input)
{
	const UjobsSchema *schema = ujobs_definition_schema(definition);

	if (schema != NULL)
		ujobs_schema_require(schema, definition->name, input, 0);
}

Jsonb *
ujobs_entry_of_occurrence(const char *task, TimestampTz occurrence)
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
