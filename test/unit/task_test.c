/*
 * task_test.c: which occurrences of a task fire, found one by one; its entries, keys and names.
 *
 * sources: src/model/task.c src/model/cron_*.c src/core/error.c src/core/json.c
 */
#include "postgres.h"

#include "mb/pg_wchar.h"

#include "unit.h"
#include "zone_table.h"
#include "model/task.h"

#define DAY INT64CONST(86400)
#define MOST 100000

static UjobsZoneTable zone;
static int64 all[MOST];

/* ---- catching up ---- */

static void
make_zone(void)
{
	static const int32 steps[] = {900, 1800, 3600, 7200};

	zone.first_offset = ((int32) unit_random(24 * 4) - 48) * 900;
	zone.count = 20;
	for (int i = 0; i < zone.count; i++)
	{
		int32		before = i == 0 ? zone.first_offset : zone.change[i - 1].offset;
		int32		step = steps[unit_random(lengthof(steps))];

		zone.change[i].at = (i == 0 ? 0 : zone.change[i - 1].at) + 8 * DAY + unit_random(20 * DAY);
		zone.change[i].offset = before + (before > 0 ? -step : step);
	}
}

static int
find_all(const UjobsCatchUpRule *rule, int64 watermark, int64 now)
{
	int			n = 0;
	int64		next = watermark;

	while (n < MOST && ujobs_cron_occurrence_next(&rule->cron, rule->zone, next, &next) &&
		   next <= now)
		all[n++] = next;
	return n;
}

static bool
agrees(const UjobsCatchUpRule *rule, int n, const UjobsDue *due)
{
	if (n == 0)
		return due->n == 0 && due->dropped == 0;
	if (rule->policy == UJOBS_CATCH_UP_SKIP)
		return due->n == 1 && due->occurrence[0] == all[n - 1] && due->dropped == 0;
	if (rule->policy == UJOBS_CATCH_UP_RUN_ONCE)
		return due->n == 1 && due->occurrence[0] == all[0] && due->dropped == 0;
	return due->n == Min(n, rule->most) && due->dropped == n - due->n &&
		memcmp(due->occurrence, &all[n - due->n], due->n * sizeof(int64)) == 0;
}

static bool
try_one(UjobsCatchUp policy)
{
	static const char *const expressions[] = {"* * * * *", "*/7 3 * * *", "0 2 * * *",
		"30 1,2 * * 0", "0 0 1 * *", "15 10 * * *", "0 0 29 2 *"};
	UjobsCatchUpRule rule = {.zone = (const UjobsZone *) &zone, .policy = policy,
		.most = 1 + unit_random(50)};
	const char *expression = expressions[unit_random(lengthof(expressions))];
	int64		watermark = unit_random(300 * DAY);
	int64		now = watermark + unit_random(4) * (unit_random(2) ? DAY : 60) + unit_random(3600);
	UjobsCronError error;
	UjobsDue	due;
	int			n;

	make_zone();
	if (!ujobs_cron_parse(expression, strlen(expression), &rule.cron, &error))
		return false;
	n = find_all(&rule, watermark, now);
	if (n > 0 && unit_random(3) == 0)
	{
		n = 1 + unit_random(Min(n, 3));
		now = all[n - 1];		/* the last one is due just now */
	}
	ujobs_task_catch_up(&rule, watermark, now, &due);
	if (agrees(&rule, n, &due))
		return true;
	unit_note("\"%s\" from " INT64_FORMAT " to " INT64_FORMAT ": %d of %d, " INT64_FORMAT
			  " dropped",
			  expression, watermark, now, due.n, n, due.dropped);
	return false;
}

static void
test_catch_up(void)
{
	for (UjobsCatchUp policy = UJOBS_CATCH_UP_SKIP; policy <= UJOBS_CATCH_UP_RUN_ALL; policy++)
	{
		UjobsCatchUp read;
		int			wrong = 0;

		for (int i = 0; i < 400; i++)
			wrong += !try_one(policy);
		unit_ok(wrong == 0, "task: %s fires as occurrences found one by one say",
				ujobs_task_catch_up_name(policy));
		unit_ok(ujobs_task_catch_up_read(ujobs_task_catch_up_name(policy), &read) && read == policy,
				"task: and its name is read");
	}
	unit_ok(!ujobs_task_catch_up_read("run", &(UjobsCatchUp) {0}), "task: another name is not");
}

/* ---- entries ---- */

static void
test_entries(void)
{
	static const char *const cases[][2] = {
		{"[]", "[]"},
		{"[[\"a\"]]", "[[\"a\", {}]]"},
		{"[[\"a\", {\"x\": [1, null]}], [\"b\", 7], [\"c\", null], [\"d\", []]]",
			"[[\"a\", {\"x\": [1, null]}], [\"b\", 7], [\"c\", null], [\"d\", []]]"},
	};

	for (int i = 0; i < lengthof(cases); i++)
	{
		UjobsTaskEntry *entries;
		int			n = ujobs_task_entries_read(unit_jsonb(cases[i][0]), "enqueue", &entries);
		char	   *text = JsonbToCString(NULL, &ujobs_task_entries_to_jsonb(entries, n)->root, 0);

		unit_ok(strcmp(text, cases[i][1]) == 0, "task: entries %s", cases[i][0]);
	}
}

static void
test_refusals(void)
{
	static const char *const cases[][2] = {
		{"{}", "It is not a list."},
		{"\"a\"", "It is not a list."},
		{"[\"a\"]", "Entry 1 is not a list."},
		{"[[\"a\"], {}]", "Entry 2 is not a list."},
		{"[[]]", "Entry 1 is not a job's name and an input."},
		{"[[\"a\", {}, 1]]", "Entry 1 is not a job's name and an input."},
		{"[[1, {}]]", "Entry 1 does not begin with the name of a job."},
		{"[[\"\"]]", "Entry 1 does not begin with the name of a job."},
	};

	for (int i = 0; i < lengthof(cases); i++)
	{
		UnitError	error;
		UjobsTaskEntry *entries;

		unit_try(&error, ujobs_task_entries_read(unit_jsonb(cases[i][0]), "enqueue", &entries));
		unit_ok(error.raised && strcmp(error.sqlstate, "UJ003") == 0 &&
				strcmp(error.detail, cases[i][1]) == 0,
				"task: refused are entries %s", cases[i][0]);
	}
}

/* ---- names ---- */

static void
test_names(void)
{
	char		task[2001];
	UnitError	error;
	char	   *a;
	char	   *b;

	unit_ok(strcmp(ujobs_task_key("t", 0, NULL), "t:946684800000") == 0 &&
			strcmp(ujobs_task_key("t", 1500 * 1000, "k"), "t:946684801500:k") == 0,
			"task: the key of an occurrence");
	memset(task, 'x', sizeof(task));
	task[987] = '\0';
	unit_ok(strlen(ujobs_task_key(task, 0, NULL)) == 1000, "task: a key as long as may be");
	task[987] = 'x';
	task[988] = '\0';
	unit_try(&error, ujobs_task_key(task, 0, NULL));
	unit_ok(error.raised && strcmp(error.sqlstate, "UJ003") == 0, "task: a key of one byte more");
	task[58] = '\0';
	unit_ok(strlen(ujobs_task_job_name(task)) == 63 &&
			strchr(ujobs_task_job_name(task), '~') == NULL, "task: a job's name as long as may be");
	task[58] = 'x';
	task[100] = '\0';
	a = ujobs_task_job_name(task);
	task[99] = 'y';
	b = ujobs_task_job_name(task);
	unit_ok(strlen(a) == 63 && strlen(b) == 63 && strcmp(a, b) != 0,
			"task: long names that differ at the end stay different");
	for (int i = 0; i < 100; i += 2)
		memcpy(task + i, "ä", 2);
	a = ujobs_task_job_name(task);
	unit_ok(strlen(a) <= 63 && pg_verify_mbstr(PG_UTF8, a, strlen(a), true),
			"task: no character is cut in two");
}

void
unit_main(void)
{
	test_catch_up();
	test_entries();
	test_refusals();
	test_names();
}
