/*
 * lease_store.h: jobs that programs outside have claimed.
 *
 * A lease is a random number that no other claim will have: who shows it
 * speaks for the job, as long as the lease's row exists and the job is in
 * state 'l'.  A session that changes a leased job locks the job's row first,
 * so its lease does not change under him.
 *
 * Functions that take or hold a job need a transaction, no snapshot and no
 * identity section: they look with the latest snapshot, whatever the isolation
 * level.  The others open their own section.
 */
#ifndef UJOBS_STORE_LEASE_STORE_H
#define UJOBS_STORE_LEASE_STORE_H

#include "core/identity.h"
#include "model/job.h"

typedef struct UjobsLease
{
	int64		lease;
	TimestampTz visible_at;
	const char *worker;
} UjobsLease;

typedef enum UjobsTaken
{
	UJOBS_TAKEN_GONE,			/* no such job, or it may not start now: the session that changed that leaves a hint */
	UJOBS_TAKEN_BUSY,			/* another session is changing it */
	UJOBS_TAKEN_OURS
} UjobsTaken;

/* The jobs with these ids as they are now; NULL where there is none. */
extern void ujobs_lease_look(const int64 *ids, int n, UjobsJob **out);

/*
 * Leases a job that was looked at: an attempt begins at `now`, or goes on.
 * early: its wait is over, though the row is not due.  Sets job->attempt.
 * Never waits for a lock.
 */
extern UjobsTaken ujobs_lease_take(UjobsJob *job, bool early, TimestampTz now,
								   const UjobsLease *lease);

/*
 * The job, its row locked until the transaction ends, if this lease holds it;
 * else NULL.  lease->lease is what the caller shows, the rest is filled in.
 */
extern UjobsJob *ujobs_lease_hold(int64 id, UjobsLease *lease);

/*
 * The same for any lease that has run out by `now`; NULL also when another
 * session is changing the job.
 */
extern UjobsJob *ujobs_lease_hold_expired(int64 id, TimestampTz now, UjobsLease *lease);

/* ---- of a job that is held ---- */

extern void ujobs_lease_extend(const UjobsJob *job, TimestampTz visible_at);

/* Removes the lease; the caller changes the job in the same transaction. */
extern void ujobs_lease_remove(const UjobsJob *job);

/* Suspends the job.  The attempt goes on at due_at, unless it is given back. */
typedef struct UjobsSuspension
{
	TimestampTz due_at;			/* DT_NOEND: until it is retried, or its wait is over */
	bool		give_back;		/* the attempt was none */
	const char *reason;			/* NULL: its step says it */
	Jsonb	   *error;			/* NULL: as it was */
} UjobsSuspension;

extern void ujobs_lease_suspend(const UjobsJob *job, const UjobsSuspension *suspension);

/* ---- by id ---- */

/* The lease under which a program finished the job, if its history is kept; 0: none. */
extern int64 ujobs_lease_of_done(int64 id, int32 *definition_id);

/* The definition of a live job; 0: no such job. */
extern int32 ujobs_lease_definition(int64 id);

/* What is left of a job that was cancelled. */
extern void ujobs_lease_forget(int64 id);

/* The same if there is such a leftover; false: its job is leased. */
extern bool ujobs_lease_drop_stale(int64 id);

/* ---- the dispatcher ---- */

typedef struct UjobsLeased
{
	int64		id;
	int32		definition_id;
	int16		priority;
	bool		leased;			/* in state 'l' */
	TimestampTz due_at;
	char		queue[NAMEDATALEN];
	char	   *tenant;
} UjobsLeased;

/*
 * All leased jobs; or the state of these jobs (those that are not live are
 * left out).  UjobsLeased * in the caller's context.
 */
extern List *ujobs_lease_all(void);
extern List *ujobs_lease_of(const int64 *ids, int n);

/* ---- the scheduler ---- */

typedef struct UjobsLeaseEnd
{
	TimestampTz visible_at;
	int64		job_id;
} UjobsLeaseEnd;

/* Up to max leases that ran out by `now`, after *after, in order; *after moves on. */
extern int	ujobs_lease_expired(UjobsLeaseEnd *after, TimestampTz now, UjobsLeaseEnd *out, int max);

/* When the next one after `now` runs out; DT_NOEND. */
extern TimestampTz ujobs_lease_next(TimestampTz now);

#endif							/* UJOBS_STORE_LEASE_STORE_H */
