/*
 * sink_redis_take.h: jobs out of the stream of a queue: functions of UjobsSinkModule.
 */
#ifndef UJOBS_SINK_SINK_REDIS_TAKE_H
#define UJOBS_SINK_SINK_REDIS_TAKE_H

#include "sink/sink_redis_connection.h"

extern bool ujobs_redis_take_subscribe(void *connection, const char *queue, UjobsSinkError *error);
extern int	ujobs_redis_take(void *connection, UjobsSinkDelivery *deliveries, int max, int wait_ms,
							UjobsSinkError *error);
extern bool ujobs_redis_take_settle(void *connection, UjobsSinkDelivery *deliveries, int n,
									UjobsSinkError *error);

#endif							/* UJOBS_SINK_SINK_REDIS_TAKE_H */
