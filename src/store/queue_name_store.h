/*
 * queue_name_store.h: how many queues there may be.
 *
 * A queue is a name that jobs have.  Each costs the dispatcher memory and the
 * metrics some rows, and any role that may enqueue can name one.
 */
#ifndef UJOBS_STORE_QUEUE_NAME_STORE_H
#define UJOBS_STORE_QUEUE_NAME_STORE_H

#include "postgres.h"

/*
 * May a job of the definition go to that queue?  Raises 53400 when the queue is
 * not known (by live jobs of the definition, a definition or set_queue) and
 * there are ujobs.max_queues already.  In a transaction.
 */
extern void ujobs_queue_name_check(int32 definition_id, const char *queue);

#endif							/* UJOBS_STORE_QUEUE_NAME_STORE_H */
