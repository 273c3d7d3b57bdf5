/*
 * history_store.h: one job by its id, wherever it is, for those who look in.
 *
 * The history has one partition for each day on which rows expire, and an id
 * does not say which.  One plan over all of them locks 66 relations, so the
 * partitions are asked one by one, the likeliest first.
 *
 * Every function needs an open identity section and sees what this
 * transaction wrote.
 */
#ifndef UJOBS_STORE_HISTORY_STORE_H
#define UJOBS_STORE_HISTORY_STORE_H

#include "core/identity.h"
#include "model/job.h"
#include "model/step.h"

/* How much of a job's row a role may see: ujobs_internal.row_access. */
typedef enum UjobsAccess
{
	UJOBS_ACCESS_NONE,
	UJOBS_ACCESS_ROW,			/* pg_monitor: everything but payload */
	UJOBS_ACCESS_PAYLOAD		/* superusers, the owner's members, the enqueuer */
} UjobsAccess;

/* The partition (0..31) that holds the finished job, or -1. */
extern int	ujobs_history_find(int64 id);

/*
 * The trace of a live or finished job as inspect_job shows it to
 * identity->user, in identity->caller.  NULL: no such job, or not for them.
 */
extern Jsonb *ujobs_history_trace(UjobsIdentity *identity, int64 id);

/* What an explanation of a job's state needs; strings in identity->caller. */
typedef struct UjobsJobFacts
{
	UjobsState	state;
	bool		entitled;		/* may see payload, so errors' text too */
	TimestampTz at;				/* due_at, or finished_at */
	int32		attempt;
	int32		max_attempts;
	char	   *reason;
	char	   *error;			/* the last error's message */
	/* Live jobs only: */
	int32		definition_id;
	char	   *queue;
	bool		queue_paused;
	char	   *definition;		/* NULL: no such row */
	bool		dropped;
	bool		external;
	int32		concurrency;	/* 0 = no limit, as the next three */
	int32		queue_concurrency;
	int32		per_tenant;
	int32		rate_per_tenant;
	char	   *rate_window;
	char	   *tenant;			/* "" = none */
	/* Suspended jobs only, the step that they sleep or wait in: */
	char	   *step;			/* NULL: none */
	UjobsStepStatus step_status;
	TimestampTz wake_at;
	char	   *event;
	char	   *match;
	int64		child_id;		/* 0 = none */
} UjobsJobFacts;

/* False: no such job, or identity->user may not see it. */
extern bool ujobs_history_facts(UjobsIdentity *identity, int64 id, UjobsJobFacts *facts);

#endif							/* UJOBS_STORE_HISTORY_STORE_H */
