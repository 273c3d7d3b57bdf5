/*
 * task.c: what a task enqueues, which of its occurrences fire, and the names of what it fires.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "core/error.h"
#include "core/json.h"
#include "model/task.h"
#include "model/template.h"

#define JOB_NAME_BYTES 63

static const char *const catch_up_names[] = {
	[UJOBS_CATCH_UP_SKIP] = "skip",
	[UJOBS_CATCH_UP_RUN_ONCE] = "run-once",
	[UJOBS_CATCH_UP_RUN_ALL] = "run-all"
};

const char *
ujobs_task_catch_up_name(UjobsCatchUp policy)
{
	return catch_up_names[policy];
}

bool
ujobs_task_catch_up_read(const char *name, UjobsCatchUp *policy)
{
	for (int i = 0; i < lengthof(catch_up_names); i++)
	{
		*policy = (UjobsCatchUp) i;
		if (strcmp(name, catch_up_names[i]) == 0)
			return true;
	}
	return false;
}

/* ---- catching up ---- */

/* One of all. */
static void
fire_one(UjobsDue *due, int64 occurrence)
{
	due->n = 1;
	due->occurrence = palloc(sizeof(int64));
	due->occurrence[0] = occurrence;
}

/* The newest of all, found backwards, at most rule->most. */
static void
fire_newest(const UjobsCatchUpRule *rule, int64 watermark, int64 now, UjobsDue *due)
{
	int64		all = ujobs_cron_occurrence_count(&rule->cron, rule->zone, watermark, now);
	int64		until = now;

	due->n = (int) Min(all, rule->most);
	due->dropped = all - due->n;
	due->occurrence = MemoryContextAllocHuge(CurrentMemoryContext, Max(due->n, 1) * sizeof(int64));
	for (int i = due->n - 1; i >= 0; i--)
	{
		if (!ujobs_cron_occurrence_previous(&rule->cron, rule->zone, until, &due->occurrence[i]))
			due->occurrence[i] = until;
		until = due->occurrence[i] - 1;
	}
}

void
ujobs_task_catch_up(const UjobsCatchUpRule *rule, int64 watermark, int64 now, UjobsDue *due)
{
	int64		first;
	int64		second;
	int64		last;

	memset(due, 0, sizeof(*due));
	if (!ujobs_cron_occurrence_next(&rule->cron, rule->zone, watermark, &first) || first > now)
		return;
	if (rule->policy == UJOBS_CATCH_UP_RUN_ONCE ||
		!ujobs_cron_occurrence_next(&rule->cron, rule->zone, first, &second) || second > now)
		fire_one(due, first);
	else if (rule->policy == UJOBS_CATCH_UP_RUN_ALL)
		fire_newest(rule, watermark, now, due);
	else if (ujobs_cron_occurrence_previous(&rule->cron, rule->zone, now, &last))
		fire_one(due, last);
}

/* ---- the list ---- */

/* number 0: the list as a whole. */
static void
refuse(const char *source, int number, const char *reason)
{
	ereport(ERROR,
			(ujobs_errcode(INVALID_OPTION),
			 errmsg("%s does not say what to enqueue", source),
			 number > 0 ? errdetail("Entry %d %s.", number, reason) : errdetail("It %s.", reason),
			 errhint("Write a list of pairs of a job's name and its input, such as [[\"send_digest\", {}], [\"prune\", {\"days\": 30}]].")));
}

static UjobsTaskEntry
entry_read(JsonbValue *pair, const char *source, int number)
{
	JsonbContainer *container = pair->type == jbvBinary ? pair->val.binary.data : NULL;
	UjobsTaskEntry entry;
	JsonbValue *job;
	JsonbValue *input;

	if (container == NULL || !JsonContainerIsArray(container) || JsonContainerIsScalar(container))
		refuse(source, number, "is not a list");
	if (JsonContainerSize(container) < 1 || JsonContainerSize(container) > 2)
		refuse(source, number, "is not a job's name and an input");
	job = getIthJsonbValueFromContainer(container, 0);
	if (job->type != jbvString || job->val.string.len == 0)
		refuse(source, number, "does not begin with the name of a job");
	entry.job = pnstrdup(job->val.string.val, job->val.string.len);
	input = getIthJsonbValueFromContainer(container, 1);
	entry.input = input != NULL ? JsonbValueToJsonb(input) :
		DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum("{}")));
	return entry;
}

int
ujobs_task_entries_read(Jsonb *list, const char *source, UjobsTaskEntry **entries)
{
	int			n;

	if (!JB_ROOT_IS_ARRAY(list) || JB_ROOT_IS_SCALAR(list))
		refuse(source, 0, "is not a list");
	n = JB_ROOT_COUNT(list);
	*entries = palloc(Max(n, 1) * sizeof(UjobsTaskEntry));
	for (int i = 0; i < n; i++)
		(*entries)[i] = entry_read(getIthJsonbValueFromContainer(&list->root, i), source, i + 1);
	return n;
}

Jsonb *
ujobs_task_entries_to_jsonb(const UjobsTaskEntry *entries, int n)
{
	UjobsJson	json = {0};

	ujobs_json_begin_array(&json, NULL);
	for (int i = 0; i < n; i++)
	{
		ujobs_json_begin_array(&json, NULL);
		ujobs_json_text(&json, NULL, entries[i].job);
		ujobs_json_jsonb(&json, NULL, entries[i].input);
		(void) ujobs_json_end(&json);
	}
	return ujobs_json_end(&json);
}

/* ---- names ---- */

char *
ujobs_task_key(const char *task, TimestampTz occurrence, const char *key)
{
	int64		ms =
		(occurrence + (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY) / 1000;
	char	   *full = psprintf("%s:" INT64_FORMAT "%s%s", task, ms, key ? ":" : "", key ?
								key : "");

	if (strlen(full) > UJOBS_MAX_KEY_BYTES)
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("the key of an occurrence is too long"),
				 errdetail("It has %zu bytes; at most %d are allowed.", strlen(full),
						   UJOBS_MAX_KEY_BYTES),
				 errhint("Let the job's idempotency_key render shorter.")));
	return full;
}

/* A name that is too long is cut, and a hash of the whole makes it distinct. */
char *
ujobs_task_job_name(const char *task)
{
	int			length = strlen(task);

	if (length + 5 <= JOB_NAME_BYTES)
		return psprintf("task:%s", task);
	return psprintf("task:%.*s~%08x", pg_mbcliplen(task, length, JOB_NAME_BYTES - 5 - 9), task,
					hash_bytes((const unsigned char *) task, length));
}
