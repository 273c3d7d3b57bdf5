/*
 * delivery.h: what became of a batch, into rows.
 */
#ifndef UJOBS_WORKER_RELAY_DELIVERY_H
#define UJOBS_WORKER_RELAY_DELIVERY_H

#include "worker/relay/sink_connection.h"

/*
 * In the caller's transaction and memory.  What is unknown stays as it is, and
 * is sent again.  Returns when the first of those that failed is due again.
 */
extern TimestampTz ujobs_delivery_record(const UjobsRelaySink *sink, const UjobsSinkBatch *batch,
										 TimestampTz now);

#endif							/* UJOBS_WORKER_RELAY_DELIVERY_H */
