/*
 * sink_redis_wire.c: commands out, replies in, never longer than allowed.
 *
 * Commands wait in a buffer (sink_redis_command.c) and are sent together;
 * replies come in the same order, hiredis reads them.  While it sends, it takes
 * in what comes, so that neither side waits for the other one to read.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sink/option.h"
#include "sink/sink_redis_command.h"
#include "sink/sink_redis_tls.h"
#include "sink/sink_redis_wire.h"
#include "sink/timed_call.h"

/*
 * A host's addresses without waiting longer than allowed.
 *
 * getaddrinfo() asks name servers for as long as the system's configuration says, and
 * cannot be stopped: a timed call.
 */

/* Has its own copies: the thread that looks it up may outlive the connection. */
typedef struct Lookup
{
	char		host[256];
	char		port[8];
	int			status;			/* of getaddrinfo */
	struct addrinfo *addresses;
} Lookup;

static int
look_up(const char *host, const char *port, int flags, struct addrinfo **addresses)
{
	struct addrinfo hints;

	memset(&hints, 0, sizeof(hints));
	hints.ai_family = AF_UNSPEC;
	hints.ai_socktype = SOCK_STREAM;
	hints.ai_flags = flags | AI_NUMERICSERV;
	return getaddrinfo(host, port, &hints, addresses);
}

static void
run_lookup(void *argument)
{
	Lookup	   *lookup = argument;

	lookup->status = look_up(lookup->host, lookup->port, 0, &lookup->addresses);
}

static void
free_lookup(void *argument)
{
	Lookup	   *lookup = argument;

	if (lookup->addresses != NULL)
		freeaddrinfo(lookup->addresses);
	free(lookup);
}

/* The lookup, done; NULL with an error. */
static Lookup *
ask_name_servers(UjobsRedis *redis, UjobsSinkError *error)
{
	const UjobsRedisPlace *place = &redis->place;
	Lookup	   *lookup = calloc(1, sizeof(Lookup));
	UjobsTimedCall call = {.work = run_lookup, .release = free_lookup, .argument = lookup};
	UjobsTimedCallEnd end = UJOBS_TIMED_CALL_NOT_STARTED;

	if (lookup != NULL)
	{
		memcpy(lookup->host, place->host, sizeof(lookup->host));
		memcpy(lookup->port, place->port, sizeof(lookup->port));
		end = ujobs_timed_call_run(redis->options, redis->deadline, &call, error);
	}
	if (end == UJOBS_TIMED_CALL_DONE)
		return lookup;
	ujobs_option_fail(error,
					  end == UJOBS_TIMED_CALL_LATE ? "no name server answered for host \"%s\"" :
													 "no thread to look up host \"%s\"",
					  place->host);
	return NULL;
}

static struct addrinfo *
resolve(UjobsRedis *redis, UjobsSinkError *error)
{
	const UjobsRedisPlace *place = &redis->place;
	struct addrinfo *addresses = NULL;
	Lookup	   *lookup;

	if (look_up(place->host, place->port, AI_NUMERICHOST, &addresses) == 0)
		return addresses;
	lookup = ask_name_servers(redis, error);
	if (lookup == NULL)
		return NULL;
	if (lookup->status == 0)
	{
		addresses = lookup->addresses;
		lookup->addresses = NULL;
	}
	else
		ujobs_option_fail(error, "host \"%s\" not found: %s", place->host,
						  gai_strerror(lookup->status));
	free_lookup(lookup);
	return addresses;
}

/* ---- commands and replies ---- */

/* How long a wait lasts before the stop is looked at. */
#define SLICE_MS 150

static bool
wait_socket(UjobsRedis *redis, short events, UjobsSinkError *error)
{
	struct pollfd poller = {.fd = redis->socket, .events = events};

	for (;;)
	{
		int64_t		left = redis->deadline - ujobs_option_now();
		int			ready;

		if (ujobs_option_is_stopped(redis->options))
			return ujobs_option_fail(error, "stopped while it waited for \"%s:%s\"",
									 redis->place.host, redis->place.port);
		if (left <= 0)
			return ujobs_option_fail(error, "no answer from \"%s:%s\" in time", redis->place.host,
									 redis->place.port);
		ready = poll(&poller, 1, left < SLICE_MS ? (int) left : SLICE_MS);
		if (ready > 0)
			return true;
		if (ready < 0 && errno != EINTR)
			return ujobs_option_fail(error, "could not wait for \"%s:%s\": %s", redis->place.host,
									 redis->place.port, strerror(errno));
	}
}

static void
close_socket(UjobsRedis *redis)
{
	if (redis->socket >= 0)
		close(redis->socket);
	redis->socket = -1;
}

/* Connects to one address. */
static bool
try_address(UjobsRedis *redis, const struct addrinfo *address, UjobsSinkError *error)
{
	int			on = 1;
	int			status = 0;
	socklen_t	size = sizeof(status);

	redis->socket = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
						   address->ai_protocol);
	if (redis->socket < 0)
		return ujobs_option_fail(error, "no socket for \"%s:%s\": %s", redis->place.host,
								 redis->place.port, strerror(errno));
	setsockopt(redis->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(redis->socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	if (connect(redis->socket, address->ai_addr, address->ai_addrlen) < 0)
	{
		status = errno;
		if (status == EINPROGRESS)
		{
			if (!wait_socket(redis, POLLOUT, error))
				return false;
			if (getsockopt(redis->socket, SOL_SOCKET, SO_ERROR, &status, &size) < 0)
				status = errno;
		}
	}
	return status == 0 || ujobs_option_fail(error, "could not connect to \"%s:%s\": %s",
											redis->place.host, redis->place.port, strerror(status));
}

static bool
begin_tls(UjobsRedis *redis, UjobsSinkError *error)
{
	bool		done = false;

	if (!ujobs_redis_tls_prepare(redis, error))
		return false;
	while (ujobs_redis_tls_step(redis, &done, error))
	{
		if (done)
			return true;
		if (!wait_socket(redis, redis->read_waits, error))
			return false;
	}
	return false;
}

bool
ujobs_redis_wire_open(UjobsRedis *redis, UjobsSinkError *error)
{
	struct addrinfo *addresses = resolve(redis, error);
	bool		connected = false;

	for (struct addrinfo *address = addresses; address != NULL && !connected;
		 address = address->ai_next)
	{
		connected = try_address(redis, address, error);
		if (!connected)
			close_socket(redis);
	}
	if (addresses != NULL)
		freeaddrinfo(addresses);
	if (!connected || (redis->place.tls && !begin_tls(redis, error)))
		return false;
	redis->reader = redisReaderCreate();
	return redis->reader != NULL || ujobs_option_fail(error, "out of memory");
}

void
ujobs_redis_wire_close(UjobsRedis *redis)
{
	if (redis->reader != NULL)
		redisReaderFree(redis->reader);
	SSL_free(redis->tls);
	SSL_CTX_free(redis->tls_context);
	close_socket(redis);
	free(redis->out);
}

size_t
ujobs_redis_wire_unsent(const UjobsRedis *redis)
{
	return redis->out_size - redis->out_sent;
}

/* Sends and receives what goes without waiting; *moved = something went. */
static bool
move_bytes(UjobsRedis *redis, bool *moved, UjobsSinkError *error)
{
	char		bytes[16384];
	ssize_t		count;

	*moved = false;
	if (redis->out_failed)
		return ujobs_option_fail(error, "out of memory");
	if (ujobs_redis_wire_unsent(redis) > 0)
	{
		count = ujobs_redis_tls_write(redis, redis->out + redis->out_sent,
									  ujobs_redis_wire_unsent(redis), error);
		if (count < 0)
		{
			/* What has come may still be read: it may be the reason. */
			redis->out_size = redis->out_sent = 0;
			return false;
		}
		*moved = count > 0;
		redis->out_sent += count;
		if (ujobs_redis_wire_unsent(redis) == 0)
			redis->out_size = redis->out_sent = 0;
	}
	count = ujobs_redis_tls_read(redis, bytes, sizeof(bytes), error);
	if (count < 0)
		return false;
	if (count > 0 && redisReaderFeed(redis->reader, bytes, count) != REDIS_OK)
		return ujobs_option_fail(error, "%s", redis->reader->errstr);
	*moved = *moved || count > 0;
	return true;
}

/* As move_bytes, but waits until something went. */
static bool
move_on(UjobsRedis *redis, UjobsSinkError *error)
{
	bool		moved;

	if (!move_bytes(redis, &moved, error))
		return false;
	return moved || wait_socket(redis,
								redis->read_waits |
									(ujobs_redis_wire_unsent(redis) > 0 ? redis->write_waits : 0),
								error);
}

bool
ujobs_redis_wire_flush(UjobsRedis *redis, UjobsSinkError *error)
{
	while (ujobs_redis_wire_unsent(redis) > 0 || redis->out_failed)
	{
		if (!move_on(redis, error))
			return false;
	}
	return true;
}

redisReply *
ujobs_redis_wire_reply(UjobsRedis *redis, UjobsSinkError *error)
{
	void	   *reply = NULL;

	for (;;)
	{
		if (redisReaderGetReply(redis->reader, &reply) != REDIS_OK)
		{
			ujobs_option_fail(error, "\"%s:%s\" does not speak as Redis does: %s",
							  redis->place.host, redis->place.port, redis->reader->errstr);
			return NULL;
		}
		if (reply != NULL)
			return reply;
		if (!move_on(redis, error))
			return NULL;
	}
}

bool
ujobs_redis_wire_expect_ok(UjobsRedis *redis, UjobsSinkError *error)
{
	redisReply *reply = ujobs_redis_wire_reply(redis, error);
	bool		ok = reply != NULL && reply->type != REDIS_REPLY_ERROR;

	if (reply != NULL && !ok)
		ujobs_option_fail(error, "\"%s:%s\" says: %s", redis->place.host, redis->place.port,
						  reply->str);
	if (reply != NULL)
		freeReplyObject(reply);
	return ok;
}

bool
ujobs_redis_wire_is_error(const redisReply *reply, const char *word)
{
	size_t		size = strlen(word);

	return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, word, size) == 0 &&
		(reply->str[size] == ' ' || reply->str[size] == '\0');
}
