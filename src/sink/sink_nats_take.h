/*
 * sink_nats_take.h: jobs of a queue: functions of UjobsSinkModule.
 */
#ifndef UJOBS_SINK_SINK_NATS_TAKE_H
#define UJOBS_SINK_SINK_NATS_TAKE_H

#include "sink/sink_nats_connection.h"

extern bool ujobs_nats_take_subscribe(void *connection, const char *queue, UjobsSinkError *error);
extern int	ujobs_nats_take(void *connection, UjobsSinkDelivery *deliveries, int max, int wait_ms,
						   UjobsSinkError *error);
extern bool ujobs_nats_take_settle(void *connection, UjobsSinkDelivery *deliveries, int n,
								   UjobsSinkError *error);

/* Gives back what has arrived but was not taken, and forgets the queue. */
extern void ujobs_nats_take_end(UjobsNats *nats);

#endif							/* UJOBS_SINK_SINK_NATS_TAKE_H */
