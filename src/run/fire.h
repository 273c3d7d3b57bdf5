/*
 * fire.h: due tasks become jobs, and what is known of each beside its row.
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
extern UjobsRule *ujobs_fire_make_rule(const UjobsTask *task, MemoryContext parent);

/*
 * Decides, moves watermarks, enqueues, and records faults.  Needs a
 * transaction; memory from the current context.  Returns how many occurrences
 * fired.
 */
extern int64 ujobs_fire_picks(UjobsPick *picks, int n, TimestampTz now);

/* It failed alone: records why.  Needs a transaction; ujobs_timetable_settle follows. */
extern void ujobs_fire_break(UjobsPick *pick, const char *fault);

#endif							/* UJOBS_RUN_FIRE_H */
