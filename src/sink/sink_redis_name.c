/*
 * sink_redis_name.c: a host's addresses without waiting longer than allowed.
 *
 * getaddrinfo() asks name servers for as long as the system's configuration
 * says, and cannot be stopped.  So a thread asks; who does not want to wait for
 * it any longer leaves the question to it, and the last of the two frees it.
 */
#include "sink/sink_redis.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* How long a wait lasts before the stop is looked at. */
#define SLICE_NS 50000000L

typedef struct Question
{
	pthread_mutex_t lock;
	pthread_cond_t answered;
	char		host[256];
	char		port[8];
	bool		done;
	bool		left;			/* nobody waits */
	int			status;			/* of getaddrinfo */
	struct addrinfo *addresses;
} Question;

static void
free_question(Question *question)
{
	pthread_mutex_destroy(&question->lock);
	pthread_cond_destroy(&question->answered);
	free(question);
}

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

static void *
answer(void *argument)
{
	Question   *question = argument;
	struct addrinfo *addresses = NULL;
	int			status = look_up(question->host, question->port, 0, &addresses);
	bool		left;

	pthread_mutex_lock(&question->lock);
	left = question->left;
	question->done = true;
	question->status = status;
	question->addresses = addresses;
	pthread_cond_signal(&question->answered);
	pthread_mutex_unlock(&question->lock);
	if (left)
	{
		if (status == 0)
			freeaddrinfo(addresses);
		free_question(question);
	}
	return NULL;
}

/* A question that a thread is looking for an answer to. */
static Question *
ask(const UjobsRedisPlace *place)
{
	Question   *question = calloc(1, sizeof(Question));
	pthread_attr_t attributes;
	pthread_t	thread;
	int			status;

	if (question == NULL)
		return NULL;
	pthread_mutex_init(&question->lock, NULL);
	pthread_cond_init(&question->answered, NULL);
	memcpy(question->host, place->host, sizeof(question->host));
	memcpy(question->port, place->port, sizeof(question->port));
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	status = pthread_create(&thread, &attributes, answer, question);
	pthread_attr_destroy(&attributes);
	if (status != 0)
	{
		free_question(question);
		return NULL;
	}
	return question;
}

/* Waits for the answer; false = not any longer, and the thread is left alone with it. */
static bool
await(UjobsRedis *redis, Question *question)
{
	bool		done;

	pthread_mutex_lock(&question->lock);
	while (!question->done && !ujobs_option_is_stopped(redis->options) && ujobs_option_now() < redis->deadline)
	{
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += SLICE_NS;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		pthread_cond_timedwait(&question->answered, &question->lock, &until);
	}
	done = question->done;
	question->left = !done;
	pthread_mutex_unlock(&question->lock);
	return done;
}

struct addrinfo *
ujobs_redis_resolve(UjobsRedis *redis, UjobsSinkError *error)
{
	const UjobsRedisPlace *place = &redis->place;
	struct addrinfo *addresses = NULL;
	Question   *question;
	int			status;

	if (look_up(place->host, place->port, AI_NUMERICHOST, &addresses) == 0)
		return addresses;
	question = ask(place);
	if (question == NULL)
	{
		ujobs_option_fail(error, "no thread to look up host \"%s\"", place->host);
		return NULL;
	}
	if (!await(redis, question))
	{
		ujobs_option_fail(error, "no name server answered for host \"%s\"", place->host);
		return NULL;
	}
	status = question->status;
	addresses = question->addresses;
	free_question(question);
	if (status != 0)
	{
		ujobs_option_fail(error, "host \"%s\" not found: %s", place->host, gai_strerror(status));
		return NULL;
	}
	return addresses;
}
