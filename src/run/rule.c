/*
 * rule.c: a task, read.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/memutils.h"

#include "core/zone.h"
#include "run/rule.h"

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
	copy->enqueue = task->enqueue ? memcpy(palloc(VARSIZE(task->enqueue)), task->enqueue, VARSIZE(task->enqueue)) : NULL;
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
