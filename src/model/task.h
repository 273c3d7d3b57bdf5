/*
 * task.h: a cron rule that enqueues jobs, as types, and what it enqueues.  Pure.
 */
#ifndef UJOBS_MODEL_TASK_H
#define UJOBS_MODEL_TASK_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "model/cron_occurrence.h"

/* What is done about occurrences that passed while no scheduler ran. */
typedef enum UjobsCatchUp
{
	UJOBS_CATCH_UP_SKIP,		/* the latest fires */
	UJOBS_CATCH_UP_RUN_ONCE,	/* the earliest fires */
	UJOBS_CATCH_UP_RUN_ALL		/* the newest max_catch_up fire */
} UjobsCatchUp;

/* A row of ujobs_internal.task: what a user asks for, or read back. */
typedef struct UjobsTask
{
	int32		id;				/* 0 when not yet stored */
	int32		revision;
	char	   *name;
	Oid			owner;
	char	   *owner_name;
	char	   *cron;
	char	   *tz;				/* as the server spells it */
	Jsonb	   *enqueue;		/* NULL: enqueue_fn says what */
	char	   *enqueue_fn;		/* qualified and quoted */
	UjobsCatchUp catch_up;
	int32		max_catch_up;
	bool		enabled;		/* as defined */
	bool		paused;			/* as it is now */
	char	   *description;
	TimestampTz watermark;		/* every occurrence up to it has been decided */
	char	   *broken;			/* why it cannot fire, NULL when it can */
} UjobsTask;

typedef struct UjobsCatchUpRule
{
	UjobsCron	cron;
	const UjobsZone *zone;
	UjobsCatchUp policy;
	int32		most;			/* for run-all */
} UjobsCatchUpRule;

/* The occurrences that fire, the earliest first. */
typedef struct UjobsDue
{
	int			n;
	int64	   *occurrence;		/* seconds since 1970, palloc'd */
	int64		dropped;		/* more than run-all may fire */
} UjobsDue;

/* One job that a fire enqueues. */
typedef struct UjobsTaskEntry
{
	char	   *job;
	Jsonb	   *input;
} UjobsTaskEntry;

/* skip, run-once and run-all. */
extern const char *ujobs_task_catch_up_name(UjobsCatchUp policy);
extern bool ujobs_task_catch_up_read(const char *name, UjobsCatchUp *policy);

/*
 * Decides about the occurrences in (watermark, now], both in seconds since
 * 1970.  Costs the same after a minute and after years, but for run-all,
 * which computes as many as fire.
 */
extern void ujobs_task_catch_up(const UjobsCatchUpRule *rule, int64 watermark, int64 now,
								UjobsDue *due);

/*
 * Reads [["job", input], ["job"], ...]; an input left out is {}.  Returns how
 * many there are.  `source` names the list for UJ003.
 */
extern int	ujobs_task_entries_read(Jsonb *list, const char *source, UjobsTaskEntry **entries);

/* The normal form of such a list. */
extern Jsonb *ujobs_task_entries_to_jsonb(const UjobsTaskEntry *entries, int n);

/*
 * "<task>:<occurrence, ms since 1970>:<key>"; UJ003 when it is too long for a
 * key.  key NULL: without the last part.
 */
extern char *ujobs_task_key(const char *task, TimestampTz occurrence, const char *key);

/* The name of the job definition that runs a task's enqueue_fn. */
extern char *ujobs_task_job_name(const char *task);

#endif							/* UJOBS_MODEL_TASK_H */
