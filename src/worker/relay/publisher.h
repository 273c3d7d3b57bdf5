/*
 * publisher.h: the way of committed messages to one sink.
 */
#ifndef UJOBS_WORKER_RELAY_PUBLISHER_H
#define UJOBS_WORKER_RELAY_PUBLISHER_H

#include "worker/relay/sink_connection.h"

typedef struct UjobsPublisher UjobsPublisher;

/* Its memory is that of the sink. */
extern UjobsPublisher *ujobs_publisher_open(const UjobsRelaySink *sink);

/* Rows from this id on were committed or changed. */
extern void ujobs_publisher_hint(UjobsPublisher *publisher, int64 id);

/*
 * Records what came back, reads and sends what is next.  Outside a
 * transaction.  Returns when it wants to be called again without a
 * wake-up.
 */
extern TimestampTz ujobs_publisher_run(UjobsPublisher *publisher, TimestampTz now);

/* Sends nothing more.  True once all that was sent is recorded. */
extern bool ujobs_publisher_retire(UjobsPublisher *publisher);

/* What is still in flight will be sent again by the next publisher. */
extern void ujobs_publisher_close(UjobsPublisher *publisher);

#endif							/* UJOBS_WORKER_RELAY_PUBLISHER_H */
