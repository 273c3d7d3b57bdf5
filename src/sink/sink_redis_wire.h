/*
 * sink_redis_wire.h: commands out, replies in, never longer than allowed.
 */
#ifndef UJOBS_SINK_SINK_REDIS_WIRE_H
#define UJOBS_SINK_SINK_REDIS_WIRE_H

#include "sink/sink_redis_connection.h"

/* Connects the socket, with TLS if the url wants it. */
extern bool ujobs_redis_wire_open(UjobsRedis *redis, UjobsSinkError *error);
extern void ujobs_redis_wire_close(UjobsRedis *redis);

/* Bytes of commands that wait to be sent. */
extern size_t ujobs_redis_wire_unsent(const UjobsRedis *redis);

/* Sends what waits, and keeps what comes meanwhile. */
extern bool ujobs_redis_wire_flush(UjobsRedis *redis, UjobsSinkError *error);

/*
 * Sends what waits and gives the next reply; freeReplyObject() it.  NULL = the
 * connection failed.
 */
extern redisReply *ujobs_redis_wire_reply(UjobsRedis *redis, UjobsSinkError *error);

/* Reads a reply away; false also if it is an error. */
extern bool ujobs_redis_wire_expect_ok(UjobsRedis *redis, UjobsSinkError *error);

/* Whether an error reply begins with this word. */
extern bool ujobs_redis_wire_is_error(const redisReply *reply, const char *word);

#endif							/* UJOBS_SINK_SINK_REDIS_WIRE_H */
