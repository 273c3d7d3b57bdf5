/*
 * timetable.h: tasks in memory, by when they are due next.
 *
 * The scheduler keeps one for its life; a session may make one for a single
 * round.  Rows decide: a timetable that is behind fires nothing twice, for
 * the session that moves a task's watermark enqueues its jobs in that transaction.
 *
 * A round: while collect returns some, fire them (fire.h) in a transaction and settle
 * after its commit.  When the transaction failed, fire them one by one, and
 * mark as broken whichever fails alone.
 */
#ifndef UJOBS_RUN_TIMETABLE_H
#define UJOBS_RUN_TIMETABLE_H

#include "run/rule.h"

typedef struct UjobsTimetable UjobsTimetable;

#define UJOBS_PICKS_AT_ONCE 1000

/* Empty; `memory` is its own, in which everything of it lives. */
extern UjobsTimetable *ujobs_timetable_make(MemoryContext memory);

/* Reads what changed since the last time.  Needs a transaction. */
extern void ujobs_timetable_reload(UjobsTimetable *table, TimestampTz now);

/* When the first task is due, or DT_NOEND. */
extern TimestampTz ujobs_timetable_next(const UjobsTimetable *table);

/* Takes out at most UJOBS_PICKS_AT_ONCE tasks that are due; returns how many. */
extern int	ujobs_timetable_collect(UjobsTimetable *table, TimestampTz now, UjobsPick *picks);

/*
 * The transaction committed: back into the timetable.  True: another session
 * was faster, reload soon.
 */
extern bool ujobs_timetable_settle(UjobsTimetable *table, UjobsPick *picks, int n, TimestampTz now);

/* Something outside the tasks changed (definitions, roles): broken ones are tried again now. */
extern void ujobs_timetable_retry_broken(UjobsTimetable *table, TimestampTz now);

#endif							/* UJOBS_RUN_TIMETABLE_H */
