/*
 * job_store.h: a job's row while it runs: fetched at the start, settled at the end.
 *
 * Every function here needs a transaction and, where not said otherwise, an
 * open identity section; it notes the hints and counts that its change calls
 * for.  What every job pays goes to the tables by primary key, without a plan.
 */
#ifndef UJOBS_STORE_JOB_STORE_H
#define UJOBS_STORE_JOB_STORE_H

#include "core/identity.h"
#include "model/history.h"
#include "model/job.h"

/*
 * Reads the rows of these ids that may run now, in the order of ids: pending
 * and due, or suspended, which may run before they are due if their wait is
 * over, as only the caller can know.  Returns UjobsJob * in the current
 * context.  Needs an active snapshot and no identity section.
 */
extern List *ujobs_job_fetch(const int64 *ids, int n, TimestampTz now);

/*
 * Keeps the row of a running job until commit: it cannot be cancelled, and what is
 * committed with it belongs to it.  False when it is no longer ours.  Needs
 * an active snapshot and no identity section.
 */
extern bool ujobs_job_hold(const UjobsJob *job);

/*
 * The same for a job that was woken before its row is due, which it is from
 * now on: should its attempt be interrupted, no wait is there any more to
 * wake it.
 */
extern bool ujobs_job_hold_due(const UjobsJob *job, TimestampTz now);

/* Offers a job again that was interrupted, or could not run here; its row is as it was or due. */
extern void ujobs_job_offer(const UjobsJob *job, TimestampTz now);

/* One finished attempt of a batch. */
typedef struct UjobsFinish
{
	const UjobsJob *job;
	Jsonb	   *result;			/* NULL = SQL NULL */
	TimestampTz started_at;
	int64		retention;		/* us */
	bool		refetch;
	Jsonb	   *steps;			/* archived, of a durable job; NULL: none */
	int64		lease;			/* under which a program outside did it; 0: none */
} UjobsFinish;

/*
 * Moves the rows to history as done, in the order in which they ran; each must still be the version that was
 * fetched (refetch: by a committing handler's earlier transaction, so it is
 * looked up again and compared by revision).  False when one of them is no
 * longer ours: the caller must abort.  Needs an active snapshot and no
 * identity section.
 */
extern bool ujobs_job_finish(const UjobsFinish *finish, int n, TimestampTz now);

/* What a failed or suspended attempt leaves behind. */
typedef struct UjobsVerdict
{
	UjobsOutcomeKind outcome;	/* RETRY, DEAD, CANCELLED or SUSPENDED */
	int32		attempt;		/* to record */
	TimestampTz due_at;			/* RETRY and SUSPENDED */
	TimestampTz started_at;
	int64		retention;		/* us, for DEAD and CANCELLED */
	Jsonb	   *error;			/* last_error */
	const char *reason;			/* NULL or a sentence */
} UjobsVerdict;

/* Records the verdict, guarded by id and revision; false when the row is not ours. */
extern bool ujobs_job_settle(const UjobsJob *job, const UjobsVerdict *verdict, TimestampTz now);

/*
 * Which of these jobs does a suspended job wait for?  For jobs that end and
 * keep no history: ask after the row is deleted, with a new snapshot, and keep
 * these for UJOBS_WAITED_FOR_RETENTION.  Sets waited_for[i]; returns how many.
 */
#define UJOBS_WAITED_FOR_RETENTION (INT64CONST(3600) * USECS_PER_SEC)

extern int	ujobs_job_waited_for(const int64 *ids, int n, bool *waited_for);

/* The retention that applies to a finished job of this definition, in us. */
extern int64 ujobs_job_retention(const UjobsDefinition *definition, UjobsOutcomeKind outcome);

#endif							/* UJOBS_STORE_JOB_STORE_H */
