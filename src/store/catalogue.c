/*
 * catalogue.c: the statements, and how they are found by name.
 *
 * They are in catalogue_*.inc, a part for each group of stores.  Here is what
 * parts share, and the table that joins them.
 *
 * Schema-qualified, lower-case keywords, one clause a line.  They run as the
 * extension's owner with search_path pinned to pg_catalog.
 */
#include "postgres.h"

#include "catalog/pg_type.h"

#include "lib/stringinfo.h"
#include "utils/memutils.h"

#include "core/identity.h"
#include "model/step.h"
#include "store/catalogue.h"

/*
 * A partition of the history, in statements that are run against one: its
 * number goes to the place of the suffix.
 */
#define SUFFIX_PLACE "\x01"
#define HISTORY_PARTITION "ujobs_internal.job_history" SUFFIX_PLACE

/* What a history row takes over from the live row; the rest differs by outcome. */
#define KEPT_COLUMNS \
	"id, run_at, created_at, definition_id, enqueued_role, max_attempts, priority, run_id, queue,\n" \
	"       tenant_id, idempotency_key, input, enqueued_by, traceparent, events_since"

#define GONE_COLUMNS \
	"j.id, j.run_at, j.created_at, j.definition_id, j.enqueued_role, j.max_attempts, j.priority, j.run_id, j.queue,\n" \
	"              j.tenant_id, j.idempotency_key, j.input, j.enqueued_by, j.traceparent, j.events_since"

/*
 * The steps of jobs that end: "weighed" is "gone" with the bytes of their
 * steps (NULL: none), whose rows go unless they must stay rows.  A job without
 * steps costs one look into the index.  Rows are read as of the statement's
 * snapshot, so a session that did not write them locks the job before.
 */
#define WEIGHED_STEPS \
	"weighed as materialized (\n" \
	"    select gone.*,\n" \
	"           (select sum(ujobs_internal.step_size(s))\n" \
	"              from ujobs_internal.job_step s\n" \
	"             where s.job_id = gone.id) as bytes\n" \
	"      from gone),\n" \
	"unstepped as (\n" \
	"    delete from ujobs_internal.job_step s\n" \
	"     using weighed\n" \
	"     where s.job_id = weighed.id\n"

#define ARCHIVE_FITS "weighed.bytes <= " CppAsString2(UJOBS_ARCHIVE_MAX)

#define ARCHIVED_STEPS \
	"       case when " ARCHIVE_FITS " then\n" \
	"           (select jsonb_agg(ujobs_internal.archive_step(s) order by s.seq)\n" \
	"              from ujobs_internal.job_step s\n" \
	"             where s.job_id = weighed.id) end\n"

static UjobsStatement statements[UJOBS_SQL_COUNT] = {
#include "store/catalogue_define.inc"
#include "store/catalogue_enqueue.inc"
#include "store/catalogue_control.inc"
#include "store/catalogue_job.inc"
#include "store/catalogue_dispatch.inc"
#include "store/catalogue_wait.inc"
#include "store/catalogue_inspect.inc"
#include "store/catalogue_task.inc"
#include "store/catalogue_sink.inc"
#include "store/catalogue_outbox.inc"
#include "store/catalogue_retention.inc"
};

static UjobsStatement *by_slot[UJOBS_SQL_COUNT][UJOBS_HISTORY_SLOTS];

UjobsStatement *
ujobs_catalogue_statement(UjobsStatementId id)
{
	Assert(id >= 0 && id < UJOBS_SQL_COUNT);
	return &statements[id];
}

/* The text with a suffix in every place that is left for one. */
static char *
text_with(const char *sql, const char *suffix)
{
	StringInfoData text;

	initStringInfo(&text);
	for (; *sql != '\0'; sql++)
	{
		if (*sql == SUFFIX_PLACE[0])
			appendStringInfoString(&text, suffix);
		else
			appendStringInfoChar(&text, *sql);
	}
	return text.data;
}

char *
ujobs_catalogue_statement_text(const UjobsStatement *statement)
{
	return text_with(statement->sql, "");
}

UjobsStatement *
ujobs_catalogue_statement_for_slot(UjobsStatementId id, int slot)
{
	UjobsStatement *copy;
	MemoryContext old;
	char		suffix[16];

	Assert(slot >= 0 && slot < UJOBS_HISTORY_SLOTS);
	Assert(strchr(statements[id].sql, SUFFIX_PLACE[0]) != NULL);
	if (by_slot[id][slot] != NULL)
		return by_slot[id][slot];
	old = MemoryContextSwitchTo(TopMemoryContext);
	copy = palloc(sizeof(UjobsStatement));
	*copy = statements[id];
	snprintf(suffix, sizeof(suffix), "_%d", slot);
	copy->sql = text_with(copy->sql, suffix);
	copy->plan = NULL;
	MemoryContextSwitchTo(old);
	by_slot[id][slot] = copy;
	return copy;
}

uint64
ujobs_catalogue_execute(UjobsStatementId id, UjobsArgs *args)
{
	UjobsIdentity identity;
	uint64		rows;

	ujobs_identity_enter(&identity);
	rows = ujobs_query_run(ujobs_catalogue_statement(id), args).rows;
	ujobs_identity_leave(&identity);
	return rows;
}

Datum
ujobs_catalogue_value(UjobsStatementId id, UjobsArgs *args, Datum if_none)
{
	UjobsIdentity identity;
	UjobsResult result;
	Datum		value = if_none;

	ujobs_identity_enter(&identity);
	result = ujobs_query_run(ujobs_catalogue_statement(id), args);
	if (result.rows > 0)
		value = ujobs_query_result_datum(&result, 0, 0);
	ujobs_identity_leave(&identity);
	return value;
}
