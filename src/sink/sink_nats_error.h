/*
 * sink_nats_error.h: texts of what went wrong.
 */
#ifndef UJOBS_SINK_SINK_NATS_ERROR_H
#define UJOBS_SINK_SINK_NATS_ERROR_H

#include "sink/sink_nats_connection.h"

/* What libnats says of the last call of this thread, or "". */
extern const char *ujobs_nats_error_detail(void);

/* "what: what libnats says" of a call of this thread that just failed; false. */
extern bool ujobs_nats_error_status(UjobsSinkError *error, const char *what, natsStatus status);

/* Is the answer of JetStream an error?  Its number, 10000 and more, and text. */
extern bool ujobs_nats_error_answered(natsMsg *answer, int *code, UjobsSinkError *error);

/* The number means: the server cannot now, whatever the message. */
extern bool ujobs_nats_error_is_shortage(int code);

#endif							/* UJOBS_SINK_SINK_NATS_ERROR_H */
