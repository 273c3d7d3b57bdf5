/*
 * event_store.h: named facts, and the look-up of the one that a wait takes.
 *
 * Each function opens its own identity section; the caller holds a transaction.
 */
#ifndef UJOBS_STORE_EVENT_STORE_H
#define UJOBS_STORE_EVENT_STORE_H

#include "postgres.h"

#include "utils/jsonb.h"
#include "utils/timestamp.h"

typedef struct UjobsEvent
{
	TimestampTz published_at;
	TimestampTz expires_at;
	const char *name;
	const char *match;			/* NULL: none */
	Jsonb	   *payload;
} UjobsEvent;

/* One row in this transaction, and a hint for its commit.  Returns the event's id. */
extern int64 ujobs_event_publish(const UjobsEvent *event);

typedef struct UjobsEventFound
{
	int64		id;
	Jsonb	   *payload;		/* in the caller's context */
} UjobsEventFound;

/*
 * The earliest event, by id, that satisfies the wait in this row of job_step:
 * what the dispatcher woke the job for, unless it expired meanwhile.  Sees
 * all that is committed and what this transaction wrote.  False: none.
 */
extern bool ujobs_event_find(int64 job_id, int32 seq, TimestampTz now, UjobsEventFound *out);

#endif							/* UJOBS_STORE_EVENT_STORE_H */
