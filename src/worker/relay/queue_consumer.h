/*
 * queue_consumer.h: the way of one queue's messages from a broker into this store.
 */
#ifndef UJOBS_WORKER_RELAY_QUEUE_CONSUMER_H
#define UJOBS_WORKER_RELAY_QUEUE_CONSUMER_H

#include "worker/relay/sink_connection.h"

typedef struct UjobsQueueConsumer UjobsQueueConsumer;

/* Its memory is that of the sink. */
extern UjobsQueueConsumer *ujobs_queue_consumer_open(const UjobsRelaySink *sink, const char *queue);

extern const char *ujobs_queue_consumer_queue(const UjobsQueueConsumer *consumer);

/* The queue may have been paused or resumed. */
extern void ujobs_queue_consumer_hint(UjobsQueueConsumer *consumer);

/*
 * Stores what was taken, and says how much more may be.  Outside a
 * transaction.  Returns when it wants to be called again without a
 * wake-up.
 */
extern TimestampTz ujobs_queue_consumer_run(UjobsQueueConsumer *consumer, TimestampTz now);

/* What it has taken and not stored is left to the broker. */
extern void ujobs_queue_consumer_close(UjobsQueueConsumer *consumer);

/* Parked messages whose job is defined here by now become jobs. */
extern void ujobs_queue_consumer_retry_parked(void);

#endif							/* UJOBS_WORKER_RELAY_QUEUE_CONSUMER_H */
