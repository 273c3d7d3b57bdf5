/*
 * sink_redis_command.c: commands in Redis' protocol, into the buffer to be sent.
 *
 * A command is "*N", then for each of its N words "$SIZE" and the word, lines
 * ended by CR LF.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink/option.h"
#include "sink/sink_redis_command.h"

static void
put(UjobsRedis *redis, const char *bytes, size_t size)
{
	if (redis->out_capacity - redis->out_size < size)
	{
		size_t		capacity = (redis->out_size + size) * 2 + 4096;
		char	   *out = realloc(redis->out, capacity);

		if (out == NULL)
		{
			redis->out_failed = true;
			return;
		}
		redis->out = out;
		redis->out_capacity = capacity;
	}
	memcpy(redis->out + redis->out_size, bytes, size);
	redis->out_size += size;
}

/* "*3\r\n" or "$5\r\n" */
static void
put_count(UjobsRedis *redis, char kind, size_t count)
{
	char		text[32];

	put(redis, text, snprintf(text, sizeof(text), "%c%zu\r\n", kind, count));
}

void
ujobs_redis_command_begin(UjobsRedis *redis, int n)
{
	put_count(redis, '*', n);
}

void
ujobs_redis_command_add_bytes(UjobsRedis *redis, const char *bytes, size_t size)
{
	put_count(redis, '$', size);
	put(redis, bytes, size);
	put(redis, "\r\n", 2);
}

void
ujobs_redis_command_add(UjobsRedis *redis, const char *text)
{
	ujobs_redis_command_add_bytes(redis, text, strlen(text));
}

void
ujobs_redis_command_add_joined(UjobsRedis *redis, const char *prefix, const char *text)
{
	put_count(redis, '$', strlen(prefix) + strlen(text));
	put(redis, prefix, strlen(prefix));
	put(redis, text, strlen(text));
	put(redis, "\r\n", 2);
}

void
ujobs_redis_command_add_number(UjobsRedis *redis, int64_t number)
{
	char		text[32];

	snprintf(text, sizeof(text), "%lld", (long long) number);
	ujobs_redis_command_add(redis, text);
}

void
ujobs_redis_command(UjobsRedis *redis, const char *name,...)
{
	va_list		arguments;
	int			n = 1;

	va_start(arguments, name);
	while (va_arg(arguments, const char *) != NULL)
		n++;
	va_end(arguments);
	ujobs_redis_command_begin(redis, n);
	ujobs_redis_command_add(redis, name);
	va_start(arguments, name);
	while (--n > 0)
		ujobs_redis_command_add(redis, va_arg(arguments, const char *));
	va_end(arguments);
}

char *
ujobs_redis_command_queue_key(const UjobsSinkOptions *options, const char *queue)
{
	const char *stream = ujobs_option_find(options, "stream");
	size_t		size;
	char	   *key;

	if (stream == NULL)
		stream = "ujobs";
	size = strlen(stream) + strlen(queue) + 2;
	key = malloc(size);
	if (key != NULL)
		snprintf(key, size, "%s:%s", stream, queue);
	return key;
}
