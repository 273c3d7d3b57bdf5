/*
 * queue_key_store.h: the keys that sign the messages of a broker's queue.
 */
#ifndef UJOBS_STORE_QUEUE_KEY_STORE_H
#define UJOBS_STORE_QUEUE_KEY_STORE_H

#include "postgres.h"

#include "datatype/timestamp.h"

typedef struct UjobsQueueKeys
{
	int			n;
	bytea	  **key;			/* the one that signs first, if there is one */
	bool		signs;
} UjobsQueueKeys;

/* All keys of the queue; in the current context. */
extern UjobsQueueKeys ujobs_queue_key_all(const char *queue);

/* Accepts the key from now on, and signs with it if `signs`. */
extern void ujobs_queue_key_add(const char *queue, bytea *key, bool signs, TimestampTz now);

/* Accepts only the key that signs. */
extern void ujobs_queue_key_retire(const char *queue);

/* May messages that this queue gets from this sink be unsigned? */
extern bool ujobs_queue_key_allows_unsigned(const char *queue, int32 sink_id);

#endif							/* UJOBS_STORE_QUEUE_KEY_STORE_H */
