/*
 * match_store.h: which suspended jobs need wait no longer?
 *
 * An event and a wait meet whichever commits last, if each side's commit is
 * followed by a look from that side with a new snapshot.  Every function here
 * takes one, opens its own identity section, and needs a transaction.  What
 * satisfies a wait is one predicate, the same that the waiting job uses when
 * it looks (event_store.h); so who is found here finds its event.
 */
#ifndef UJOBS_STORE_MATCH_STORE_H
#define UJOBS_STORE_MATCH_STORE_H

#include "postgres.h"

#include "utils/timestamp.h"

/* A job that may go on now. */
typedef struct UjobsMatched
{
	int64		id;
	int32		definition_id;
	int16		priority;
	TransactionId writer;		/* of the row's version */
	uint64		tenant_hash;
	char		queue[NAMEDATALEN];
} UjobsMatched;

/* In the caller's context; a job may be in it more than once. */
typedef struct UjobsMatches
{
	int64		n;
	UjobsMatched *job;
} UjobsMatches;

/* Those who wait for one of these events. */
extern UjobsMatches ujobs_match_events(const int64 *event_ids, int n, TimestampTz now);

/* Those of these jobs whose wait is over. */
extern UjobsMatches ujobs_match_waits(const int64 *job_ids, int n, TimestampTz now);

/* Those who wait for one of these jobs, if it is not live any more. */
extern UjobsMatches ujobs_match_ended(const int64 *child_ids, int n);

/* All whose wait is over; with writer: rows as old as that transaction, or younger. */
extern UjobsMatches ujobs_match_all(TimestampTz now, TransactionId writer);

/* The jobs that these jobs wait for; job_ids NULL: that any job waits for. */
extern int64 *ujobs_match_children(const int64 *job_ids, int n, int *n_children);

#endif							/* UJOBS_STORE_MATCH_STORE_H */
