/*
 * sink_redis_tls.h: reads and writes of a socket, plain or encrypted.
 */
#ifndef UJOBS_SINK_SINK_REDIS_TLS_H
#define UJOBS_SINK_SINK_REDIS_TLS_H

#include "sink/sink_redis_connection.h"

/* Begins TLS on the socket; false with an error.  One step: true as well when *done is not yet. */
extern bool ujobs_redis_tls_prepare(UjobsRedis *redis, UjobsSinkError *error);
extern bool ujobs_redis_tls_step(UjobsRedis *redis, bool *done, UjobsSinkError *error);

/* Bytes moved; 0 = wait for read_waits or write_waits first; -1 with an error. */
extern ssize_t ujobs_redis_tls_read(UjobsRedis *redis, char *bytes, size_t size,
									UjobsSinkError *error);
extern ssize_t ujobs_redis_tls_write(UjobsRedis *redis, const char *bytes, size_t size,
									 UjobsSinkError *error);

#endif							/* UJOBS_SINK_SINK_REDIS_TLS_H */
