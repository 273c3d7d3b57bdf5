/*
 * sink_redis_command.h: commands in Redis' protocol, into the buffer to be sent.
 */
#ifndef UJOBS_SINK_SINK_REDIS_COMMAND_H
#define UJOBS_SINK_SINK_REDIS_COMMAND_H

#include "sink/sink_redis_connection.h"

/* "STREAM:QUEUE", in memory of the caller's; NULL = out of memory. */
extern char *ujobs_redis_command_queue_key(const UjobsSinkOptions *options, const char *queue);

/* Begins a command of n arguments, which follow.  Nothing is sent yet. */
extern void ujobs_redis_command_begin(UjobsRedis *redis, int n);
extern void ujobs_redis_command_add(UjobsRedis *redis, const char *text);
extern void ujobs_redis_command_add_bytes(UjobsRedis *redis, const char *bytes, size_t size);
extern void ujobs_redis_command_add_joined(UjobsRedis *redis, const char *prefix, const char *text);
extern void ujobs_redis_command_add_number(UjobsRedis *redis, int64_t number);

/* A command whose arguments are all texts; the last one is NULL. */
extern void ujobs_redis_command(UjobsRedis *redis, const char *name,...) __attribute__((sentinel));

#endif							/* UJOBS_SINK_SINK_REDIS_COMMAND_H */
