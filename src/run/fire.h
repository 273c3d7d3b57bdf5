/*
 * fire.h: one task of the timetable, ready to fire.
 */
#ifndef UJOBS_RUN_FIRE_H
#define UJOBS_RUN_FIRE_H

#include "run/timetable.h"

struct UjobsRule
{
	MemoryContext memory;		/* of everything below */
	UjobsTask  *task;			/* its watermark follows the row */
	UjobsCatchUpRule plan;
	int			n_entries;		/* 0: enqueue_fn says, in a job of its own */
	UjobsTaskEntry *entries;
	TimestampTz due_at;
	bool		broken;			/* the last time it was due */
	char	   *unreadable;		/* why cron, zone or list cannot be read by this server; NULL when they can */
};

/* In a context of its own below `parent`. */
extern UjobsRule *ujobs_rule_make(const UjobsTask *task, MemoryContext parent);

#endif							/* UJOBS_RUN_FIRE_H */
