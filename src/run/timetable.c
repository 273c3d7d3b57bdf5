/*
 * timetable.c: which task is due when.
 *
 * A heap of instants beside a table of rules.  An entry of the heap counts
 * only while its rule still says the same instant, so nothing is ever taken
 * out of its middle.  fire.c does what is due.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/clock.h"
#include "core/identity.h"
#include "model/heap.h"
#include "run/timetable.h"

#define BROKEN_RETRY_US (INT64CONST(30) * USECS_PER_SEC)
#define BUSY_RETRY_US (INT64CONST(1) * USECS_PER_SEC)

struct UjobsTimetable
{
	MemoryContext memory;
	HTAB	   *rules;			/* RuleEntry by id */
	UjobsHeap	heap;
	uint32		round;			/* of reloading */
};

typedef struct RuleEntry
{
	int32		id;				/* hash key */
	uint32		seen;			/* in which round of reloading */
	UjobsRule  *rule;
} RuleEntry;

UjobsTimetable *
ujobs_timetable_make(MemoryContext memory)
{
	UjobsTimetable *table = MemoryContextAllocZero(memory, sizeof(UjobsTimetable));
	HASHCTL		ctl = {0};

	table->memory = memory;
	ctl.keysize = sizeof(int32);
	ctl.entrysize = sizeof(RuleEntry);
	ctl.hcxt = memory;
	table->rules = hash_create("ujobs tasks", 256, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	ujobs_heap_init(&table->heap, UJOBS_HEAP_BY_TIME, memory);
	return table;
}

/* ---- when ---- */

static void
schedule(UjobsTimetable *table, UjobsRule *rule, TimestampTz at)
{
	UjobsHeapItem item = {.id = rule->task->id, .due_at = at};

	rule->due_at = at;
	if (at != DT_NOEND)
		ujobs_heap_push(&table->heap, item);
}

/* By its watermark; what cannot be read is due now, to be found broken. */
static void
schedule_next(UjobsTimetable *table, UjobsRule *rule, TimestampTz now)
{
	int64		next;

	if (rule->unreadable != NULL)
		schedule(table, rule, now);
	else if (ujobs_cron_occurrence_next(&rule->plan.cron, rule->plan.zone,
										ujobs_cron_seconds(rule->task->watermark), &next))
		schedule(table, rule, ujobs_cron_timestamp(next));
	else
		schedule(table, rule, DT_NOEND);
}

static UjobsRule *
find(const UjobsTimetable *table, int32 id)
{
	RuleEntry  *entry = hash_search(table->rules, &id, HASH_FIND, NULL);

	return entry != NULL ? entry->rule : NULL;
}

/* Entries that no longer count. */
static void
drop_stale(UjobsTimetable *table)
{
	const UjobsHeapItem *top;

	while ((top = ujobs_heap_top(&table->heap)) != NULL)
	{
		UjobsRule  *rule = find(table, (int32) top->id);

		if (rule != NULL && rule->due_at == top->due_at)
			return;
		(void) ujobs_heap_pop(&table->heap);
	}
}

TimestampTz
ujobs_timetable_next(const UjobsTimetable *table)
{
	const UjobsHeapItem *top = ujobs_heap_top(&table->heap);

	return top != NULL ? top->due_at : DT_NOEND;
}

int
ujobs_timetable_collect(UjobsTimetable *table, TimestampTz now, UjobsPick *picks)
{
	int			n = 0;

	for (;;)
	{
		const UjobsHeapItem *top;
		UjobsRule  *rule;

		drop_stale(table);
		top = ujobs_heap_top(&table->heap);
		if (top == NULL || top->due_at > now || n == UJOBS_PICKS_AT_ONCE)
			return n;
		rule = find(table, (int32) ujobs_heap_pop(&table->heap).id);
		rule->due_at = DT_NOEND;
		memset(&picks[n], 0, sizeof(UjobsPick));
		picks[n++].rule = rule;
	}
}

/* ---- afterwards ---- */

/* What the row says of it now; NULL: it can fire. */
static void
note_broken(UjobsRule *rule, const char *fault)
{
	rule->broken = fault != NULL;
	if (fault == NULL)
		rule->task->broken = NULL;
	else if (rule->task->broken == NULL || strcmp(rule->task->broken, fault) != 0)
		rule->task->broken = MemoryContextStrdup(rule->memory, fault);
}

bool
ujobs_timetable_settle(UjobsTimetable *table, UjobsPick *picks, int n, TimestampTz now)
{
	bool		behind = false;

	for (int i = 0; i < n; i++)
	{
		UjobsRule  *rule = picks[i].rule;

		if (picks[i].fault != NULL)
		{
			note_broken(rule, picks[i].fault);
			schedule(table, rule, now + BROKEN_RETRY_US);
		}
		else if (picks[i].step.taken)
		{
			note_broken(rule, NULL);
			rule->task->watermark = picks[i].step.watermark;
			schedule_next(table, rule, now);
		}
		else
		{
			behind = true;
			schedule(table, rule, now + BUSY_RETRY_US);
		}
	}
	return behind;
}

void
ujobs_timetable_retry_broken(UjobsTimetable *table, TimestampTz now)
{
	HASH_SEQ_STATUS scan;
	RuleEntry  *entry;

	hash_seq_init(&scan, table->rules);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		if (entry->rule->broken)
			schedule_next(table, entry->rule, now);
	}
}

/* ---- reading ---- */

static void
forget(RuleEntry *entry)
{
	if (entry->rule != NULL)
		MemoryContextDelete(entry->rule->memory);
	entry->rule = NULL;
}

/* Looks at what is known; returns how many ids must be fetched. */
static int
compare(UjobsTimetable *table, const UjobsTaskStamp *stamps, int n, int32 *wanted, TimestampTz now)
{
	int			n_wanted = 0;

	for (int i = 0; i < n; i++)
	{
		bool		found;
		RuleEntry  *entry = hash_search(table->rules, &stamps[i].id, HASH_ENTER, &found);

		if (!found)
			entry->rule = NULL;
		entry->seen = table->round;
		if (entry->rule == NULL || entry->rule->task->revision != stamps[i].revision)
			wanted[n_wanted++] = stamps[i].id;
		else if (entry->rule->task->watermark != stamps[i].watermark)
		{
			entry->rule->task->watermark = stamps[i].watermark;
			schedule_next(table, entry->rule, now);
		}
	}
	return n_wanted;
}

static void
take_in(UjobsTimetable *table, const UjobsTask *tasks, int n, TimestampTz now)
{
	for (int i = 0; i < n; i++)
	{
		RuleEntry  *entry = hash_search(table->rules, &tasks[i].id, HASH_FIND, NULL);

		forget(entry);
		entry->rule = ujobs_rule_make(&tasks[i], table->memory);
		schedule_next(table, entry->rule, now);
	}
}

static void
remove_unseen(UjobsTimetable *table)
{
	HASH_SEQ_STATUS scan;
	RuleEntry  *entry;

	hash_seq_init(&scan, table->rules);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		if (entry->seen == table->round && entry->rule != NULL)
			continue;
		forget(entry);
		(void) hash_search(table->rules, &entry->id, HASH_REMOVE, NULL);
	}
}

void
ujobs_timetable_reload(UjobsTimetable *table, TimestampTz now)
{
	UjobsIdentity identity;
	UjobsTaskStamp *stamps;
	UjobsTask  *tasks;
	int32	   *wanted;
	int			n;

	Assert(IsTransactionState());
	table->round++;
	ujobs_identity_enter(&identity);
	n = ujobs_task_list(&identity, &stamps);
	wanted = MemoryContextAllocHuge(identity.caller, (n + 1) * sizeof(int32));
	n = compare(table, stamps, n, wanted, now);
	n = n > 0 ? ujobs_task_fetch(&identity, wanted, n, &tasks) : 0;
	if (n > 0)
		take_in(table, tasks, n, now);
	ujobs_identity_leave(&identity);
	remove_unseen(table);
	drop_stale(table);
}
