/*
 * fire.h: due tasks become jobs, and what is known of each beside its row.
 */
#ifndef UJOBS_RUN_FIRE_H
#define UJOBS_RUN_FIRE_H

#include "run/rule.h"

/*
 * Decides, moves watermarks, enqueues, and records faults.  Needs a
 * transaction; memory from the current context.  Returns how many occurrences
 * fired.
 */
extern int64 ujobs_fire_picks(UjobsPick *picks, int n, TimestampTz now);

/* It failed alone: records why.  Needs a transaction; ujobs_timetable_settle follows. */
extern void ujobs_fire_break(UjobsPick *pick, const char *fault);

#endif							/* UJOBS_RUN_FIRE_H */
