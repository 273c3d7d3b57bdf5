/*
 * sink_redis.c: the module of Redis: where the server is, and a connection to it.
 *
 *   url        redis://[user@]host[:port][/database], rediss:// with TLS
 *   stream     key of the outbox's stream, and the prefix of the keys of jobs
 *   claimAge   how long a message belongs to the store that claimed it
 *   tls.ca, tls.cert, tls.key    files on this server
 *
 * and the secrets user and password.  Needs Redis 6.2 or newer (XAUTOCLAIM).
 *
 * The files: this one, with publish (XADD); take (a consumer group), with entries and
 * claims; and below them wire (commands out, replies in; where the host is), command
 * (how commands are written) and tls (the socket).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink/option.h"
#include "sink/sink_redis_command.h"
#include "sink/sink_redis_take.h"
#include "sink/sink_redis_wire.h"

/*
 * Messages into streams.
 *
 * One XADD for each, all of them on their way before the first answer is
 * waited for.  The fields: id, topic, key, payload and header:NAME for each
 * header; of a job, id, payload and headers.  A server that is full, loading, a
 * replica or without rights for us is not the message's fault: then the
 * connection is given up, and all that it did not confirm is sent again.
 */

/* So much may wait in memory before it is sent. */
#define MOST_UNSENT 262144

/* Redis takes no longer string (unless its proto-max-bulk-len says so). */
#define LONGEST_PAYLOAD (512 * 1024 * 1024)

/* XADD key * field value ... */
static bool
add_message(UjobsRedis *redis, const UjobsSinkMessage *message)
{
	const char *stream = ujobs_option_find(redis->options, "stream");
	char	   *key = message->is_job ? ujobs_redis_command_queue_key(redis->options, message->topic)
		: strdup(stream != NULL ? stream : message->topic);
	int			fields = 2 + message->n_headers;

	if (key == NULL)
		return false;
	if (!message->is_job)
		fields += message->key != NULL ? 2 : 1;
	ujobs_redis_command_begin(redis, 3 + 2 * fields);
	ujobs_redis_command_add(redis, "XADD");
	ujobs_redis_command_add(redis, key);
	ujobs_redis_command_add(redis, "*");
	free(key);
	ujobs_redis_command_add(redis, "id");
	ujobs_redis_command_add(redis, message->id);
	if (!message->is_job)
	{
		ujobs_redis_command_add(redis, "topic");
		ujobs_redis_command_add(redis, message->topic);
	}
	if (!message->is_job && message->key != NULL)
	{
		ujobs_redis_command_add(redis, "key");
		ujobs_redis_command_add(redis, message->key);
	}
	for (int i = 0; i < message->n_headers; i++)
	{
		ujobs_redis_command_add_joined(redis, "header:", message->headers[i].name);
		ujobs_redis_command_add(redis, message->headers[i].value);
	}
	ujobs_redis_command_add(redis, "payload");
	ujobs_redis_command_add_bytes(redis, message->payload, message->payload_size);
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
		if (ujobs_redis_wire_is_error(reply, words[i]))
			return true;
	}
	return false;
}

/* What a reply means for its message; false: the connection is to be given up. */
static bool
set_fate(const redisReply *reply, UjobsSinkMessage *message, UjobsSinkError *error)
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
	if (ujobs_redis_wire_is_error(reply, "WRONGTYPE"))
	{
		message->fate = UJOBS_SINK_REFUSED;
		ujobs_option_fail(&message->error,
						  "the key of this stream holds something else in redis: %s", reply->str);
	}
	else if (strstr(reply->str, "invalid bulk length") != NULL)
	{
		message->fate = UJOBS_SINK_REFUSED;
		ujobs_option_fail(
			&message->error,
			"the payload of %zu bytes is longer than proto-max-bulk-len of redis allows",
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
			ujobs_option_fail(&message->error, "a payload of %zu bytes is longer than redis takes",
							  message->payload_size);
			continue;
		}
		if (!add_message(redis, message))
			return ujobs_option_fail(error, "out of memory");
		message->fate = UJOBS_SINK_BROKEN;
		if (ujobs_redis_wire_unsent(redis) > MOST_UNSENT && !ujobs_redis_wire_flush(redis, error))
			return false;
	}
	return ujobs_redis_wire_flush(redis, error);
}

static bool
publish(void *connection, UjobsSinkMessage *messages, int n, UjobsSinkError *error)
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
		reply = ujobs_redis_wire_reply(redis, usable ? error : &ignored);
		if (reply == NULL)
			return false;
		usable = set_fate(reply, &messages[i], usable ? error : &ignored) && usable;
		freeReplyObject(reply);
	}
	return usable;
}

/* ---- the module ---- */

#define DEFAULT_PORT "6379"
#define DEFAULT_CLAIM_MS (24 * 3600 * INT64_C(1000))

/* Copies the text before end; false if it does not fit or holds a blank. */
static bool
copy_part(char *part, size_t size, const char *begin, const char *end)
{
	size_t		length = end - begin;

	if (length >= size)
		return false;
	memcpy(part, begin, length);
	part[length] = '\0';
	return strpbrk(part, " \t\r\n") == NULL;
}

static bool
is_number(const char *text, long max)
{
	return text[0] != '\0' && strlen(text) <= 5 && strspn(text, "0123456789") == strlen(text) &&
		   atol(text) <= max;
}

/* "host", "host:port" or "[address]:port" */
static bool
parse_host(const char *begin, const char *end, UjobsRedisPlace *place)
{
	const char *host_end = begin;

	if (*begin == '[')
	{
		const char *closing = memchr(begin, ']', end - begin);

		if (closing == NULL || !copy_part(place->host, sizeof(place->host), begin + 1, closing))
			return false;
		host_end = closing + 1;
	}
	else
	{
		host_end += strcspn(begin, ":/?#");
		if (host_end > end || !copy_part(place->host, sizeof(place->host), begin, host_end))
			return false;
	}
	if (host_end < end &&
		(*host_end != ':' || !copy_part(place->port, sizeof(place->port), host_end + 1, end)))
		return false;
	return place->host[0] != '\0' && is_number(place->port, 65535);
}

static bool
parse_url(const char *url, UjobsRedisPlace *place, UjobsSinkError *error)
{
	const char *begin;
	const char *end;
	const char *at;

	memset(place, 0, sizeof(*place));
	strcpy(place->port, DEFAULT_PORT);
	strcpy(place->database, "0");
	place->tls = strncmp(url, "rediss://", 9) == 0;
	if (!place->tls && strncmp(url, "redis://", 8) != 0)
		return ujobs_option_fail(error, "option \"url\" must begin with redis:// or rediss://");
	begin = url + (place->tls ? 9 : 8);
	end = begin + strcspn(begin, "/?#");
	at = memchr(begin, '@', end - begin);
	if (at != NULL && memchr(begin, ':', at - begin) != NULL)
		return ujobs_option_fail(
			error, "option \"url\" holds a password, which belongs to set_sink_secret");
	if (strchr(end, '@') != NULL)
		return ujobs_option_fail(error, "option \"url\" has an @ behind the host");
	if (at != NULL && !copy_part(place->user, sizeof(place->user), begin, at))
		return ujobs_option_fail(error, "option \"url\" has no valid user");
	if (!parse_host(at != NULL ? at + 1 : begin, end, place))
		return ujobs_option_fail(error, "option \"url\" has no valid host and port");
	if (*end == '/' && end[1] != '\0' &&
		!copy_part(place->database, sizeof(place->database), end + 1, end + strlen(end)))
		return ujobs_option_fail(error, "option \"url\" has no valid database number");
	if (!is_number(place->database, 99999) || *end == '?' || *end == '#')
		return ujobs_option_fail(
			error, "option \"url\" may end with /database, a number, and nothing behind it");
	return true;
}

static bool
read_options(const UjobsSinkOptions *options, UjobsRedisPlace *place, int64_t *claim_ms,
			 UjobsSinkError *error)
{
	const char *url = ujobs_option_find(options, "url");
	const char *stream = ujobs_option_find(options, "stream");
	bool		tls = ujobs_option_find(options, "tls.ca") || ujobs_option_find(options, "tls.cert") || ujobs_option_find(options, "tls.key");

	if (url == NULL)
		return ujobs_option_fail(error,
								 "option \"url\" is missing, such as redis://127.0.0.1:6379/0");
	if (!parse_url(url, place, error))
		return false;
	if (tls && !place->tls)
		return ujobs_option_fail(
			error, "option \"url\" must begin with rediss:// where options of tls are given");
	if ((ujobs_option_find(options, "tls.cert") == NULL) !=
		(ujobs_option_find(options, "tls.key") == NULL))
		return ujobs_option_fail(error, "options \"tls.cert\" and \"tls.key\" belong together");
	if (stream != NULL && stream[0] == '\0')
		return ujobs_option_fail(error, "option \"stream\" is empty");
	if ((place->user[0] != '\0' || ujobs_option_secret(options, "user") != NULL) &&
		options->n_secrets > 0 && ujobs_option_secret(options, "password") == NULL)
		return ujobs_option_fail(error, "secret \"password\" is missing");
	*claim_ms = DEFAULT_CLAIM_MS;
	if (!ujobs_option_read_span(options, "claimAge", claim_ms, error))
		return false;
	return *claim_ms >= 1000 ||
		   ujobs_option_fail(error, "option \"claimAge\" must be one second or more");
}

static bool
validate(const UjobsSinkOptions *options, UjobsSinkError *error)
{
	UjobsRedisPlace place;
	int64_t		claim_ms;

	return read_options(options, &place, &claim_ms, error);
}

/* Who this is, and which database it is about. */
static bool
log_in(UjobsRedis *redis, UjobsSinkError *error)
{
	const char *user = ujobs_option_secret(redis->options, "user");
	const char *password = ujobs_option_secret(redis->options, "password");
	int			replies = 1;

	if (user == NULL && redis->place.user[0] != '\0')
		user = redis->place.user;
	if (password != NULL)
	{
		if (user != NULL)
			ujobs_redis_command(redis, "AUTH", user, password, NULL);
		else
			ujobs_redis_command(redis, "AUTH", password, NULL);
		replies++;
	}
	if (strcmp(redis->place.database, "0") != 0)
	{
		ujobs_redis_command(redis, "SELECT", redis->place.database, NULL);
		replies++;
	}
	ujobs_redis_command(redis, "PING", NULL);
	while (replies-- > 0)
	{
		if (!ujobs_redis_wire_expect_ok(redis, error))
			return false;
	}
	return true;
}

static void
disconnect(void *connection)
{
	UjobsRedis *redis = connection;

	ujobs_redis_wire_close(redis);
	free(redis->queue_key);
	free(redis);
}

static void *
connect_redis(const UjobsSinkOptions *options, UjobsSinkError *error)
{
	UjobsRedis *redis = calloc(1, sizeof(UjobsRedis));

	if (redis == NULL)
	{
		ujobs_option_fail(error, "out of memory");
		return NULL;
	}
	redis->options = options;
	redis->socket = -1;
	redis->deadline = ujobs_option_now() + options->timeout_ms;
	if (!read_options(options, &redis->place, &redis->claim_ms, error) ||
		!ujobs_redis_wire_open(redis, error) || !log_in(redis, error))
	{
		disconnect(redis);
		return NULL;
	}
	return redis;
}

static const char *const option_names[] = {"url", "stream", "claimAge", "tls.ca", "tls.cert", "tls.key", NULL};
static const char *const secret_names[] = {"user", "password", NULL};

static const UjobsSinkModule module = {
	.version = UJOBS_SINK_VERSION,
	.size = sizeof(UjobsSinkModule),
	.kind = "redis",
	.takes_jobs = true,
	.option_names = option_names,
	.secret_names = secret_names,
	.validate = validate,
	.connect = connect_redis,
	.publish = publish,
	.subscribe = ujobs_redis_take_subscribe,
	.take = ujobs_redis_take,
	.settle = ujobs_redis_take_settle,
	.disconnect = disconnect
};

UJOBS_SINK_EXPORT const UjobsSinkModule *
ujobs_sink_module(void)
{
	return &module;
}
