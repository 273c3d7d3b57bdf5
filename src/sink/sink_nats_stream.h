/*
 * sink_nats_stream.h: makes what is missing at the broker.
 */
#ifndef UJOBS_SINK_SINK_NATS_STREAM_H
#define UJOBS_SINK_SINK_NATS_STREAM_H

#include "sink/sink_nats_connection.h"

/*
 * Makes the stream that takes the subject, or adds the subject to the one
 * that ujobs made.  The fate of messages to the subject:
 * UNTRIED if they should be sent now, else FAILED or BROKEN with the reason.
 */
extern UjobsSinkFate ujobs_nats_stream_open(UjobsNats *nats, const char *subject, bool is_job,
											UjobsSinkError *error);

/* What taking needs: the streams of jobs and of claims, and the queue's consumer. */
extern bool ujobs_nats_stream_open_queue(UjobsNats *nats, const char *queue, UjobsSinkError *error);

#endif							/* UJOBS_SINK_SINK_NATS_STREAM_H */
