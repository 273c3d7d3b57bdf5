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
 * The files: this one; publish (XADD); take (a consumer group) with entry and
 * claim; and below them command and wire (commands out, replies in), tls (the
 * socket) and name (where the host is).
 */
#include "sink/sink_redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PORT "6379"
#define DEFAULT_CLAIM_MS (24 * 3600 * INT64_C(1000))

/* Copies what stands before end; false if it does not fit or holds a blank. */
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
	return text[0] != '\0' && strlen(text) <= 5 && strspn(text, "0123456789") == strlen(text) && atol(text) <= max;
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
	if (host_end < end && (*host_end != ':' || !copy_part(place->port, sizeof(place->port), host_end + 1, end)))
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
		return ujobs_option_fail(error, "option \"url\" holds a password, which belongs to set_sink_secret");
	if (strchr(end, '@') != NULL)
		return ujobs_option_fail(error, "option \"url\" has an @ behind the host");
	if (at != NULL && !copy_part(place->user, sizeof(place->user), begin, at))
		return ujobs_option_fail(error, "option \"url\" has no valid user");
	if (!parse_host(at != NULL ? at + 1 : begin, end, place))
		return ujobs_option_fail(error, "option \"url\" has no valid host and port");
	if (*end == '/' && end[1] != '\0' && !copy_part(place->database, sizeof(place->database), end + 1, end + strlen(end)))
		return ujobs_option_fail(error, "option \"url\" has no valid database number");
	if (!is_number(place->database, 99999) || *end == '?' || *end == '#')
		return ujobs_option_fail(error, "option \"url\" may end with /database, a number, and nothing behind it");
	return true;
}

static bool
read_options(const UjobsSinkOptions *options, UjobsRedisPlace *place, int64_t *claim_ms, UjobsSinkError *error)
{
	const char *url = ujobs_option_find(options, "url");
	const char *stream = ujobs_option_find(options, "stream");
	bool		tls = ujobs_option_find(options, "tls.ca") || ujobs_option_find(options, "tls.cert") || ujobs_option_find(options, "tls.key");

	if (url == NULL)
		return ujobs_option_fail(error, "option \"url\" is missing, such as redis://127.0.0.1:6379/0");
	if (!parse_url(url, place, error))
		return false;
	if (tls && !place->tls)
		return ujobs_option_fail(error, "option \"url\" must begin with rediss:// where options of tls are given");
	if ((ujobs_option_find(options, "tls.cert") == NULL) != (ujobs_option_find(options, "tls.key") == NULL))
		return ujobs_option_fail(error, "options \"tls.cert\" and \"tls.key\" belong together");
	if (stream != NULL && stream[0] == '\0')
		return ujobs_option_fail(error, "option \"stream\" is empty");
	if ((place->user[0] != '\0' || ujobs_option_secret(options, "user") != NULL) &&
		options->n_secrets > 0 && ujobs_option_secret(options, "password") == NULL)
		return ujobs_option_fail(error, "secret \"password\" is missing");
	*claim_ms = DEFAULT_CLAIM_MS;
	if (!ujobs_option_read_span(options, "claimAge", claim_ms, error))
		return false;
	return *claim_ms >= 1000 || ujobs_option_fail(error, "option \"claimAge\" must be one second or more");
}

static bool
examine(const UjobsSinkOptions *options, UjobsSinkError *error)
{
	UjobsRedisPlace place;
	int64_t		claim_ms;

	return read_options(options, &place, &claim_ms, error);
}

char *
ujobs_redis_queue_key(const UjobsSinkOptions *options, const char *queue)
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
		if (!ujobs_redis_expect_ok(redis, error))
			return false;
	}
	return true;
}

static void
disconnect(void *connection)
{
	UjobsRedis *redis = connection;

	ujobs_redis_close(redis);
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
		!ujobs_redis_open(redis, error) || !log_in(redis, error))
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
	.examine = examine,
	.connect = connect_redis,
	.publish = ujobs_redis_publish,
	.subscribe = ujobs_redis_subscribe,
	.take = ujobs_redis_take,
	.settle = ujobs_redis_settle,
	.disconnect = disconnect
};

UJOBS_SINK_EXPORT const UjobsSinkModule *ujobs_sink_module(void);

UJOBS_SINK_EXPORT const UjobsSinkModule *
ujobs_sink_module(void)
{
	return &module;
}
