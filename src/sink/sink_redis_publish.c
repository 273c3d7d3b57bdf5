/*
 * sink_redis_publish.c: messages into streams.
 *
 * One XADD for each, all of them on their way before the first answer is
 * waited for.  The fields: id, topic, key, payload and header:NAME for each
 * header; of a job, id, payload and headers.  A server that is full, loading, a
 * replica or without rights for us is not the message's fault: then the
 * connection is given up, and all that it did not confirm is sent again.
 */
#include "sink/sink_redis.h"

#include <stdlib.h>
#include <string.h>

/* So much may wait in memory before it is sent. */
#define MOST_UNSENT 262144

/* Redis takes no longer string (unless its proto-max-bulk-len says so). */
#define LONGEST_PAYLOAD (512 * 1024 * 1024)

/* XADD key * field value ... */
static bool
add_message(UjobsRedis *redis, const UjobsSinkMessage *message)
{
	const char *stream = ujobs_option_find(redis->options, "stream");
	char	   *key = message->is_job ? ujobs_redis_queue_key(redis->options, message->topic)
		: strdup(stream != NULL ? stream : message->topic);
	int			fields = 2 + message->n_headers;

	if (key == NULL)
		return false;
	if (!message->is_job)
		fields += message->key != NULL ? 2 : 1;
	ujobs_redis_begin(redis, 3 + 2 * fields);
	ujobs_redis_add(redis, "XADD");
	ujobs_redis_add(redis, key);
	ujobs_redis_add(redis, "*");
	free(key);
	ujobs_redis_add(redis, "id");
	ujobs_redis_add(redis, message->id);
	if (!message->is_job)
	{
		ujobs_redis_add(redis, "topic");
		ujobs_redis_add(redis, message->topic);
	}
	if (!message->is_job && message->key != NULL)
	{
		ujobs_redis_add(redis, "key");
		ujobs_redis_add(redis, message->key);
	}
	for (int i = 0; i < message->n_headers; i++)
	{
		ujobs_redis_add_joined(redis, "header:", message->headers[i].name);
		ujobs_redis_add(redis, message->headers[i].value);
	}
	ujobs_redis_add(redis, "payload");
	ujobs_redis_add_bytes(redis, message->payload, message->payload_size);
	return true;
}

/* Is this an error of the server's own state? */
static bool
is_server_fault(const redisReply *reply)
{
	static const char *const words[] = {"OOM", "LOADING", "BUSY", "MASTERDOWN", "READONLY", "MISCONF", "NOREPLICAS",
	"CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "NOAUTH", "WRONGPASS", NULL};

	for (int i = 0; words[i] != NULL; i++)
	{
		if (ujobs_redis_is_error(reply, words[i]))
			return true;
	}
	return false;
}

/* What a reply means for its message; false: the connection is to be given up. */
static bool
judge(const redisReply *reply, UjobsSinkMessage *message, UjobsSinkError *error)
{
	if (reply->type != REDIS_REPLY_ERROR)
	{
		message->fate = UJOBS_SINK_DELIVERED;
		return true;
	}
	if (is_server_fault(reply))
	{
		message->fate = UJOBS_SINK_BROKEN;
		return ujobs_option_fail(error, "redis refuses for now: %s", reply->str);
	}
	message->fate = UJOBS_SINK_FAILED;
	if (ujobs_redis_is_error(reply, "WRONGTYPE"))
	{
		message->fate = UJOBS_SINK_REFUSED;
		ujobs_option_fail(&message->error, "the key of this stream holds something else in redis: %s", reply->str);
	}
	else if (strstr(reply->str, "invalid bulk length") != NULL)
	{
		message->fate = UJOBS_SINK_REFUSED;
		ujobs_option_fail(&message->error, "the payload of %zu bytes is longer than proto-max-bulk-len of redis allows",
						  message->payload_size);
	}
	else
		ujobs_option_fail(&message->error, "redis refuses it: %s", reply->str);
	return true;
}

/* Gives the commands away; the messages sent are BROKEN until their replies come. */
static bool
send_all(UjobsRedis *redis, UjobsSinkMessage *messages, int n, UjobsSinkError *error)
{
	for (int i = 0; i < n; i++)
	{
		UjobsSinkMessage *message = &messages[i];

		if (message->payload_size > LONGEST_PAYLOAD)
		{
			message->fate = UJOBS_SINK_REFUSED;
			ujobs_option_fail(&message->error, "a payload of %zu bytes is longer than redis takes", message->payload_size);
			continue;
		}
		if (!add_message(redis, message))
			return ujobs_option_fail(error, "out of memory");
		message->fate = UJOBS_SINK_BROKEN;
		if (ujobs_redis_unsent(redis) > MOST_UNSENT && !ujobs_redis_flush(redis, error))
			return false;
	}
	return ujobs_redis_flush(redis, error);
}

bool
ujobs_redis_publish(void *connection, UjobsSinkMessage *messages, int n, UjobsSinkError *error)
{
	UjobsRedis *redis = connection;
	UjobsSinkError ignored;
	bool		usable;

	redis->deadline = ujobs_option_now() + redis->options->timeout_ms;
	for (int i = 0; i < n; i++)
		messages[i].fate = UJOBS_SINK_UNTRIED;
	usable = send_all(redis, messages, n, error);
	for (int i = 0; i < n && messages[i].fate != UJOBS_SINK_UNTRIED; i++)
	{
		redisReply *reply;

		if (messages[i].fate == UJOBS_SINK_REFUSED)
			continue;
		/* Also when sending failed: the answers that came are still true. */
		reply = ujobs_redis_reply(redis, usable ? error : &ignored);
		if (reply == NULL)
			return false;
		usable = judge(reply, &messages[i], usable ? error : &ignored) && usable;
		freeReplyObject(reply);
	}
	return usable;
}
