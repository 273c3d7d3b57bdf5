/*
 * outbox_store.h: messages to other systems, from the transaction that writes
 * them to the one that records their delivery.
 *
 * Each function opens its own identity section and runs in the caller's
 * transaction; what is returned lives in the caller's context.
 */
#ifndef UJOBS_STORE_OUTBOX_STORE_H
#define UJOBS_STORE_OUTBOX_STORE_H

#include "postgres.h"

#include "utils/jsonb.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

/* ---- who publishes ---- */

typedef struct UjobsOutboxMessage
{
	int32		sink_id;
	TimestampTz created_at;
	Oid			publisher;
	bool		is_job;			/* topic is the queue's name */
	const char *topic;
	const char *key;			/* NULL = none */
	Jsonb	   *headers;		/* an object of strings */
} UjobsOutboxMessage;

/*
 * One row for each of the payloads, in their order, and the hint for their
 * commit.  ids: of the messages (uuid), NULL = new ones.  Returns the greatest
 * outbox id.
 */
extern int64 ujobs_outbox_write(const UjobsOutboxMessage *message, Jsonb *const *payloads,
								const pg_uuid_t *ids, int n);

/* ---- the relay ---- */

/* They are delivered: moves the rows in one statement.  How many were still there. */
extern int64 ujobs_outbox_delivered(const int64 *ids, int n, TimestampTz now);

typedef struct UjobsOutboxFailure
{
	int64		id;
	int32		attempts;		/* with this one */
	TimestampTz due_at;
	bool		parked;
	const char *error;			/* text, in UTF-8 or what is left of it */
} UjobsOutboxFailure;

/* Rows that were retried, skipped or changed meanwhile (other attempts) stay as they are. */
extern void ujobs_outbox_failed(const UjobsOutboxFailure *failures, int n);

/* ---- people ---- */

typedef enum UjobsOutboxFound
{
	UJOBS_OUTBOX_DONE,
	UJOBS_OUTBOX_PUBLISHED,		/* delivered already */
	UJOBS_OUTBOX_UNKNOWN
} UjobsOutboxFound;

/* Due now, attempts 0, not parked. */
extern UjobsOutboxFound ujobs_outbox_retry(int64 id, TimestampTz now);

/* Deletes it. */
extern UjobsOutboxFound ujobs_outbox_skip(int64 id);

#endif							/* UJOBS_STORE_OUTBOX_STORE_H */
