/*
 * retention_store.h: what the scheduler does to keep the store small and true.
 */
#ifndef UJOBS_STORE_RETENTION_STORE_H
#define UJOBS_STORE_RETENTION_STORE_H

#include "core/identity.h"

/* Each opens its own identity section; the caller holds a transaction. */

/*
 * Empties the partition that the ring has left behind: rows with longer
 * retention are renewed into a later one, the rest goes by TRUNCATE.  Call
 * under a short lock_timeout.  False when it was empty already.
 */
extern bool ujobs_retention_rotate(TimestampTz now);

/*
 * After days without an engine, partitions hold rows that should be gone:
 * deletes them from this one if its first row says so.
 */
extern void ujobs_retention_expire(int slot, TimestampTz now);

/* What is deleted when its time has come, a batch a transaction. */
typedef enum UjobsKept
{
	UJOBS_KEPT_EVENTS,			/* from when they expire */
	UJOBS_KEPT_PUBLISHED,		/* messages, from when they were */
	UJOBS_KEPT_TAKEN			/* messages, from when they were taken in; those that are parked stay */
} UjobsKept;

/* Deletes those of a time up to this one, the oldest first, at most max; how many. */
extern int64 ujobs_retention_delete_batch(UjobsKept what, TimestampTz until, int max);

/*
 * Removes steps whose job is neither live nor in history: those that stayed
 * rows when their job finished (see sql/51_steps.sql), after its history went.
 * Looks at each job that has steps.
 */
extern void ujobs_retention_left_steps(void);

/* Roles renamed since: a dump must carry the name of today. */
extern void ujobs_retention_names(void);

#endif							/* UJOBS_STORE_RETENTION_STORE_H */
