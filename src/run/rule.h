/*
 * rule.h: a task as the scheduler keeps it in memory.
 */
#ifndef UJOBS_RUN_RULE_H
#define UJOBS_RUN_RULE_H

#include "model/catch_up.h"
#include "model/job.h"
#include "model/task.h"
#include "store/task_store.h"

typedef struct UjobsRule
{
	MemoryContext memory;		/* of everything below */
	UjobsTask  *task;			/* its watermark follows the row */
	UjobsCatchUpRule plan;
	int			n_entries;		/* 0: enqueue_fn says, in a job of its own */
	UjobsTaskEntry *entries;
	TimestampTz due_at;
	bool		broken;			/* the last time it was due */
	char	   *unreadable;		/* why cron, zone or list cannot be read by this server; NULL when they can */
} UjobsRule;

/* A task taken out of the timetable because it is due. */
typedef struct UjobsPick
{
	UjobsRule  *rule;
	UjobsTaskStep step;
	UjobsDue	due;
	char	   *fault;			/* why it cannot fire now, NULL when it can */
} UjobsPick;

/* In a context of its own below `parent`; what cannot be read is said in `unreadable`. */
extern UjobsRule *ujobs_rule_make(const UjobsTask *task, MemoryContext parent);

/* ---- the jobs that it enqueues ---- */

/* Rendered over the input; "" is none.  Raises UJ002, UJ003. */
extern char *ujobs_rule_tenant(const UjobsDefinition *definition, Jsonb *input);
extern char *ujobs_rule_key(const UjobsDefinition *definition, Jsonb *input);

/* Raises UJ004 when the input does not satisfy the definition's schema. */
extern void ujobs_rule_check_input(const UjobsDefinition *definition, Jsonb *input);

/* The input of the job that calls a task's enqueue_fn: {task, occurrence, epochMs}. */
extern Jsonb *ujobs_rule_input_of_occurrence(const char *task, TimestampTz occurrence);

#endif							/* UJOBS_RUN_RULE_H */
