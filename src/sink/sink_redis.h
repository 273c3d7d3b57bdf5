/*
 * sink_redis.h: one connection to a Redis server, as the files of this module share it.
 */
#ifndef UJOBS_SINK_SINK_REDIS_H
#define UJOBS_SINK_SINK_REDIS_H

#include "sink/option.h"

#include <hiredis/hiredis.h>
#include <netdb.h>
#include <openssl/ssl.h>

/* The consumer group of every store. */
#define UJOBS_REDIS_GROUP "ujobs"

/* Room for the id of an entry, two numbers of 64 bits. */
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
	size_t		out_room;
	size_t		out_sent;
	bool		out_failed;		/* no memory for a command */

	/* What it takes, after subscribe. */
	char	   *queue_key;		/* the stream */
	char		pending[UJOBS_REDIS_ID_SIZE];	/* last entry seen of those this home has already; "" = all seen */
	char		idle[UJOBS_REDIS_ID_SIZE];		/* where XAUTOCLAIM goes on; "" = it went round */
	int64_t		next_round;		/* when both begin anew */
} UjobsRedis;

/* sink_redis.c */

/* "STREAM:QUEUE", in memory of the caller's; NULL = out of memory. */
extern char *ujobs_redis_queue_key(const UjobsSinkOptions *options, const char *queue);

/* sink_redis_resolve.c: the addresses of the host, within the deadline; freeaddrinfo() them. */
extern struct addrinfo *ujobs_redis_resolve(UjobsRedis *redis, UjobsSinkError *error);

/* sink_redis_tls.c: reads and writes of a socket, plain or not. */

/* Begins TLS on the socket; false with an error.  One step: true as well when *done is not yet. */
extern bool ujobs_redis_tls_prepare(UjobsRedis *redis, UjobsSinkError *error);
extern bool ujobs_redis_tls_step(UjobsRedis *redis, bool *done, UjobsSinkError *error);

/* Bytes moved; 0 = wait for read_waits or write_waits first; -1 with an error. */
extern ssize_t ujobs_redis_read(UjobsRedis *redis, char *bytes, size_t size, UjobsSinkError *error);
extern ssize_t ujobs_redis_write(UjobsRedis *redis, const char *bytes, size_t size, UjobsSinkError *error);

/* sink_redis_command.c: commands into the buffer. */

/* Begins a command of n arguments, which follow.  Nothing is sent yet. */
extern void ujobs_redis_begin(UjobsRedis *redis, int n);
extern void ujobs_redis_add(UjobsRedis *redis, const char *text);
extern void ujobs_redis_add_bytes(UjobsRedis *redis, const char *bytes, size_t size);
extern void ujobs_redis_add_joined(UjobsRedis *redis, const char *prefix, const char *text);
extern void ujobs_redis_add_number(UjobsRedis *redis, int64_t number);

/* A command whose arguments are all texts; the last one is NULL. */
extern void ujobs_redis_command(UjobsRedis *redis, const char *name,...) __attribute__((sentinel));

/* sink_redis_wire.c: commands out, replies in. */

/* Connects the socket, with TLS if the url wants it. */
extern bool ujobs_redis_open(UjobsRedis *redis, UjobsSinkError *error);
extern void ujobs_redis_close(UjobsRedis *redis);

/* Bytes of commands that wait to be sent. */
extern size_t ujobs_redis_unsent(const UjobsRedis *redis);

/* Sends what waits, and keeps what comes meanwhile. */
extern bool ujobs_redis_flush(UjobsRedis *redis, UjobsSinkError *error);

/* Sends what waits and gives the next reply; freeReplyObject() it.  NULL = the connection failed. */
extern redisReply *ujobs_redis_reply(UjobsRedis *redis, UjobsSinkError *error);

/* Reads a reply away; false also if it is an error. */
extern bool ujobs_redis_expect_ok(UjobsRedis *redis, UjobsSinkError *error);

/* Waits for poll() events of the socket until the deadline or the stop. */
extern bool ujobs_redis_wait(UjobsRedis *redis, short events, UjobsSinkError *error);

/* Whether an error reply begins with this word. */
extern bool ujobs_redis_is_error(const redisReply *reply, const char *word);

/* sink_redis_publish.c, sink_redis_take.c: those of UjobsSinkModule. */
extern bool ujobs_redis_publish(void *connection, UjobsSinkMessage *messages, int n, UjobsSinkError *error);
extern bool ujobs_redis_subscribe(void *connection, const char *queue, UjobsSinkError *error);
extern int	ujobs_redis_take(void *connection, UjobsSinkDelivery *deliveries, int max, int wait_ms, UjobsSinkError *error);
extern bool ujobs_redis_settle(void *connection, UjobsSinkDelivery *deliveries, int n, UjobsSinkError *error);

/* One entry of the stream as a delivery's handle, in one piece of memory with all the texts of the delivery. */
typedef struct UjobsRedisEntry
{
	const char *entry;			/* the stream's id of it */
	const char *claim;			/* key of the claim on its message */
	char		owner[64];		/* whose the claim is, unless ours; "" = unknown */
} UjobsRedisEntry;

/* sink_redis_entry.c */

/* An array of at least n elements. */
extern bool ujobs_redis_entry_is_array(const redisReply *reply, size_t n);

/* The entries in a reply to XREADGROUP, of one stream; NULL = none. */
extern const redisReply *ujobs_redis_entry_list(const redisReply *reply);

/*
 * Entries as deliveries; their number, -1 = out of memory.  last: set to the id
 * of the last one, if there are any.  One that was deleted meanwhile has no
 * fields; it is taken off the group's list.
 */
extern int	ujobs_redis_entry_unpack(UjobsRedis *redis, const redisReply *entries, UjobsSinkDelivery *deliveries, int max, char *last);

/* What belongs to deliveries of ujobs_redis_entry_unpack. */
extern void ujobs_redis_entry_free(UjobsSinkDelivery *deliveries, int n);

/* sink_redis_claim.c: claims the messages for this home; sets ours and owner of each. */
extern bool ujobs_redis_claim(UjobsRedis *redis, UjobsSinkDelivery *deliveries, int n, UjobsSinkError *error);

#endif							/* UJOBS_SINK_SINK_REDIS_H */
