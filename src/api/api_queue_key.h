/*
 * api_queue_key.h: the keys that sign the messages of a broker's queue.
 */
#ifndef UJOBS_API_API_QUEUE_KEY_H
#define UJOBS_API_API_QUEUE_KEY_H

#include "postgres.h"

/* Makes a key for the queue, unless one signs its messages. */
extern void ujobs_queue_key_require(const char *queue);

#endif							/* UJOBS_API_API_QUEUE_KEY_H */
