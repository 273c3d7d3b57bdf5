/*
 * inbox_store.h: which messages this store took in, and those that it could
 * not make a job of.
 *
 * Each function opens its own identity section and runs in the caller's
 * transaction; what is returned lives in the caller's context.
 */
#ifndef UJOBS_STORE_INBOX_STORE_H
#define UJOBS_STORE_INBOX_STORE_H

#include "postgres.h"

#include "utils/jsonb.h"
#include "utils/timestamp.h"

typedef struct UjobsInboxRow
{
	const char *message_id;
	const char *queue;
	int32		sink_id;
	int64		job_id;			/* 0 = none: parked */
	Jsonb	   *message;		/* of a parked one */
	Jsonb	   *error;			/* of a parked one */
} UjobsInboxRow;

/* For each id, whether it is in the inbox already. */
extern void ujobs_inbox_known(const char *const *ids, bool *known, int n);

/* Records them; a message that is there already raises unique_violation. */
extern void ujobs_inbox_insert(const UjobsInboxRow *rows, int n, TimestampTz now);

/*
 * The next parked messages whose job is defined here by now, or whose error
 * was another one, with id > after in order of ids, locked; those that
 * another session holds are passed over.
 */
extern UjobsInboxRow *ujobs_inbox_parked(const char *after, int max, int *n);

/* A parked message became a job, or has another error. */
extern void ujobs_inbox_settle(const UjobsInboxRow *row);

/* A parked message becomes nothing; its id stays known.  False: no such message is parked. */
extern bool ujobs_inbox_skip(const char *message_id, TimestampTz now);

#endif							/* UJOBS_STORE_INBOX_STORE_H */
