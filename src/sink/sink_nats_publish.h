/*
 * sink_nats_publish.h: messages to JetStream, confirmed one by one: a function of UjobsSinkModule.
 */
#ifndef UJOBS_SINK_SINK_NATS_PUBLISH_H
#define UJOBS_SINK_SINK_NATS_PUBLISH_H

#include "sink/sink_nats_connection.h"

extern bool ujobs_nats_publish(void *connection, UjobsSinkMessage *messages, int n,
							   UjobsSinkError *error);

#endif							/* UJOBS_SINK_SINK_NATS_PUBLISH_H */
