/*
 * rule.h: a task as the scheduler keeps it in memory.
 */
#ifndef UJOBS_RUN_RULE_H
#define UJOBS_RUN_RULE_H

#include "model/catch_up.h"
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

#endif							/* UJOBS_RUN_RULE_H */
