/*
 * sink_redis_resolve.c: a host's addresses without waiting longer than allowed.
 *
 * getaddrinfo() asks name servers for as long as the system's configuration says, and
 * cannot be stopped: a timed call.
 */
#include "sink/sink_redis.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "sink/timed_call.h"

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
	ujobs_option_fail(error, end == UJOBS_TIMED_CALL_LATE ? "no name server answered for host \"%s\"" :
					  "no thread to look up host \"%s\"", place->host);
	return NULL;
}

struct addrinfo *
ujobs_redis_resolve(UjobsRedis *redis, UjobsSinkError *error)
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
		ujobs_option_fail(error, "host \"%s\" not found: %s", place->host, gai_strerror(lookup->status));
	free_lookup(lookup);
	return addresses;
}
