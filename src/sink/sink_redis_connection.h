/*
 * sink_redis_connection.h: one connection to a Redis server, as the files of this module share it.
 */
#ifndef UJOBS_SINK_SINK_REDIS_CONNECTION_H
#define UJOBS_SINK_SINK_REDIS_CONNECTION_H

#include <hiredis/hiredis.h>
#include <openssl/ssl.h>

#include "sink/option.h"

/* The consumer group of every store. */
#define UJOBS_REDIS_GROUP "ujobs"

/* Size of the id of an entry, two numbers of 64 bits. */
#define UJOBS_REDIS_ID_SIZE 48

/* Where the server is: the parts of a url. */
typedef struct UjobsRedisPlace
{
	char		user[128];		/* "" = none */
	char		host[256];
	char		port[8];
	char		database[8];
	bool		tls;
} UjobsRedisPlace;

typedef struct UjobsRedis
{
	const UjobsSinkOptions *options;
	UjobsRedisPlace place;
	int64_t		claim_ms;		/* how long a claim is kept */
	int64_t		deadline;		/* of the call at work, by ujobs_option_now() */

	/* The wire. */
	int			socket;			/* -1 = none */
	SSL_CTX    *tls_context;
	SSL		   *tls;			/* NULL = plain */
	short		read_waits;		/* poll() events until reading and writing go on */
	short		write_waits;
	redisReader *reader;		/* bytes that came, and replies made of them */
	char	   *out;			/* commands: those before sent are gone */
	size_t		out_size;
	size_t		out_capacity;
	size_t		out_sent;
	bool		out_failed;		/* no memory for a command */

	/* What it takes, after subscribe. */
	char	   *queue_key;		/* the stream */
	char		pending[UJOBS_REDIS_ID_SIZE];	/* last entry seen of those this store has already; "" = all seen */
	char		idle[UJOBS_REDIS_ID_SIZE];		/* where XAUTOCLAIM goes on; "" = it went round */
	int64_t		next_round;		/* when both begin anew */
} UjobsRedis;

#endif							/* UJOBS_SINK_SINK_REDIS_CONNECTION_H */
