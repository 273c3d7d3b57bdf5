/*
 * catalogue.c: the statements, and how they are found by name.
 *
 * They stand in catalogue_*.h, a part for each group of stores.  Here is what
 * parts share, and the table that joins them.
 *
 * Schema-qualified, lower-case keywords, one clause a line.  They run as the
 * extension's owner with search_path pinned to pg_catalog.
 */
#include "postgres.h"

#include "catalog/pg_type.h"

#include "lib/stringinfo.h"
#include "utils/memutils.h"

#include "model/step.h"
#include "store/catalogue.h"

/* What a history row takes over from the live row; the rest differs by outcome. */
#define KEPT_COLUMNS \
	"id, run_at, created_at, definition_id, enqueued_role, max_attempts, priority, run_id, queue, tenant, key,\n" \
	"       input, enqueued_by, traceparent, events_since"

#define GONE_COLUMNS \
	"j.id, j.run_at, j.created_at, j.definition_id, j.enqueued_role, j.max_attempts, j.priority, j.run_id, j.queue,\n" \
	"              j.tenant, j.key, j.input, j.enqueued_by, j.traceparent, j.events_since"

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

#define FOLD_FITS "weighed.bytes <= " CppAsString2(UJOBS_ARCHIVE_MAX)

#define FOLDED_STEPS \
	"       case when " FOLD_FITS " then\n" \
	"           (select jsonb_agg(ujobs_internal.fold_step(s) order by s.seq)\n" \
	"              from ujobs_internal.job_step s\n" \
	"             where s.job_id = weighed.id) end\n"

static UjobsStatement statements[UJOBS_SQL_COUNT] = {
#include "store/catalogue_define.h"
#include "store/catalogue_enqueue.h"
#include "store/catalogue_control.h"
#include "store/catalogue_job.h"
#include "store/catalogue_dispatch.h"
#include "store/catalogue_wait.h"
#include "store/catalogue_inspect.h"
#include "store/catalogue_task.h"
#include "store/catalogue_sink.h"
#include "store/catalogue_outbox.h"
#include "store/catalogue_retention.h"
};

static UjobsStatement *by_slot[UJOBS_SQL_COUNT][UJOBS_HISTORY_SLOTS];

UjobsStatement *
ujobs_catalogue_statement(UjobsStatementId id)
{
	Assert(id >= 0 && id < UJOBS_SQL_COUNT);
	return &statements[id];
}

/* The text with every " ujobs_internal.job_history" made that of the partition. */
static char *
text_for_slot(const char *sql, int slot)
{
	static const char parent[] = "ujobs_internal.job_history";
	StringInfoData text;
	const char *rest = sql;
	const char *hit;

	initStringInfo(&text);
	while ((hit = strstr(rest, parent)) != NULL)
	{
		hit += strlen(parent);
		appendBinaryStringInfo(&text, rest, hit - rest);
		appendStringInfo(&text, "_%d", slot);
		rest = hit;
	}
	appendStringInfoString(&text, rest);
	return text.data;
}

UjobsStatement *
ujobs_catalogue_statement_for_slot(UjobsStatementId id, int slot)
{
	UjobsStatement *copy;
	MemoryContext old;

	Assert(slot >= 0 && slot < UJOBS_HISTORY_SLOTS);
	if (by_slot[id][slot] != NULL)
		return by_slot[id][slot];
	old = MemoryContextSwitchTo(TopMemoryContext);
	copy = palloc(sizeof(UjobsStatement));
	*copy = statements[id];
	copy->sql = text_for_slot(copy->sql, slot);
	copy->plan = NULL;
	MemoryContextSwitchTo(old);
	by_slot[id][slot] = copy;
	return copy;
}
