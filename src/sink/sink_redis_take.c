/*
 * sink_redis_take.c: jobs out of the stream of a queue.
 *
 * Every store is a consumer of the group "ujobs", named by its uuid.  A take
 * looks at three places, in this order:
 *
 * 1. what this store has already: given to it before it was restarted, left by
 *    it, or handed over by another store (after subscribe and every few seconds);
 * 2. what some consumer has had for long without an end (as often);
 * 3. what is new, for which it waits.
 *
 * Then it claims the messages.  One that is stored leaves group and stream in one
 * transaction.  One whose claim is another store's is
 * handed over to that one: claims and consumers bear the same names.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink/option.h"
#include "sink/sink_redis_command.h"
#include "sink/sink_redis_take.h"
#include "sink/sink_redis_wire.h"

/*
 * Entries of a stream as deliveries.
 *
 * Redis gives an entry as [id, [field, value, ...]].
 */

/* The handle of a delivery, in one piece of memory with all its texts. */
typedef struct UjobsRedisEntry
{
	const char *entry;			/* the stream's id of it */
	const char *claim;			/* key of the claim on its message */
	char		owner[64];		/* whose the claim is, unless ours; "" = unknown */
} UjobsRedisEntry;

/* Is it an array of at least n elements? */
static bool
is_array(const redisReply *reply, size_t n)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements >= n;
}

/* The value of an entry's field, or NULL. */
static const redisReply *
field_of(const redisReply *fields, const char *name)
{
	for (size_t i = 0; i + 1 < fields->elements; i += 2)
	{
		const redisReply *value = fields->element[i + 1];

		if (fields->element[i]->type == REDIS_REPLY_STRING && value->type == REDIS_REPLY_STRING &&
			strcmp(fields->element[i]->str, name) == 0)
			return value;
	}
	return NULL;
}

/*
 * One entry as a delivery, in one piece of memory.  An entry that bears no id
 * was added by a program of another kind: it is called after its place.
 */
static bool
unpack(UjobsRedis *redis, const char *entry, const redisReply *fields, UjobsSinkDelivery *delivery)
{
	const redisReply *id = field_of(fields, "id");
	const redisReply *payload = field_of(fields, "payload");
	const char *stream = ujobs_option_find(redis->options, "stream");
	bool		named =
		id != NULL && id->len > 0 && id->len <= 100 && strlen(id->str) == (size_t) id->len;
	size_t		payload_size = payload != NULL ? payload->len : 0;
	size_t		entry_size = strlen(entry) + 1;
	size_t		id_size = named ? id->len + 1 : strlen(redis->queue_key) + entry_size + 1;
	size_t		claim_size = strlen(stream != NULL ? stream : "ujobs") + sizeof(":claim:") + id_size;
	UjobsRedisEntry *handle = calloc(1, sizeof(UjobsRedisEntry) + entry_size + id_size +
											claim_size + payload_size + 1);
	char	   *text;

	if (handle == NULL)
		return false;
	text = (char *) (handle + 1);
	handle->entry = memcpy(text, entry, entry_size);
	delivery->id = text += entry_size;
	if (named)
		memcpy(text, id->str, id_size);
	else
		snprintf(text, id_size, "%s/%s", redis->queue_key, entry);
	handle->claim = text += id_size;
	snprintf(text, claim_size, "%s:claim:%s", stream != NULL ? stream : "ujobs", delivery->id);
	text += claim_size;
	if (payload_size > 0)
		memcpy(text, payload->str, payload_size);
	delivery->payload = text;
	delivery->payload_size = payload_size;
	delivery->handle = handle;
	delivery->verdict = UJOBS_SINK_LEAVE;
	return true;
}

static void
free_entries(UjobsSinkDelivery *deliveries, int n)
{
	for (int i = 0; i < n; i++)
		free(deliveries[i].handle);
}

static int
unpack_entries(UjobsRedis *redis, const redisReply *entries, UjobsSinkDelivery *deliveries, int max,
			   char *last)
{
	int			n = 0;

	for (size_t i = 0; i < entries->elements && n < max; i++)
	{
		const redisReply *entry = entries->element[i];

		if (!is_array(entry, 2) || entry->element[0]->type != REDIS_REPLY_STRING)
			continue;
		snprintf(last, UJOBS_REDIS_ID_SIZE, "%s", entry->element[0]->str);
		if (!is_array(entry->element[1], 0))
		{
			UjobsSinkError ignored;

			ujobs_redis_command(redis, "XACK", redis->queue_key, UJOBS_REDIS_GROUP,
								entry->element[0]->str, NULL);
			ujobs_redis_wire_expect_ok(redis, &ignored);
		}
		else if (!unpack(redis, entry->element[0]->str, entry->element[1], &deliveries[n++]))
		{
			free_entries(deliveries, n - 1);
			return -1;
		}
	}
	return n;
}

static const redisReply *
list_entries(const redisReply *reply)
{
	const redisReply *stream = reply->element[0];

	return is_array(stream, 2) && is_array(stream->element[1], 1) ? stream->element[1] : NULL;
}

/*
 * Which store a message belongs to.
 *
 * The key STREAM:claim:ID holds the uuid of the store that may make a job of
 * the message.  SET NX is the decision: the first one wins.  A later one reads
 * who that was.
 */

static UjobsRedisEntry *
entry_of(const UjobsSinkDelivery *delivery)
{
	return delivery->handle;
}

/* Tries to claim all of them. */
static bool
try_all(UjobsRedis *redis, UjobsSinkDelivery *deliveries, int n, UjobsSinkError *error)
{
	for (int i = 0; i < n; i++)
	{
		ujobs_redis_command_begin(redis, 6);
		ujobs_redis_command_add(redis, "SET");
		ujobs_redis_command_add(redis, entry_of(&deliveries[i])->claim);
		ujobs_redis_command_add(redis, redis->options->store_id);
		ujobs_redis_command_add(redis, "NX");
		ujobs_redis_command_add(redis, "PX");
		ujobs_redis_command_add_number(redis, redis->claim_ms);
	}
	for (int i = 0; i < n; i++)
	{
		redisReply *reply = ujobs_redis_wire_reply(redis, error);

		if (reply == NULL)
			return false;
		if (reply->type == REDIS_REPLY_ERROR)
		{
			ujobs_option_fail(error, "could not claim a message: %s", reply->str);
			freeReplyObject(reply);
			return false;
		}
		deliveries[i].ours = reply->type == REDIS_REPLY_STATUS;
		freeReplyObject(reply);
	}
	return true;
}

/* Whose are those that were claimed before? */
static bool
look_at_others(UjobsRedis *redis, UjobsSinkDelivery *deliveries, int n, UjobsSinkError *error)
{
	for (int i = 0; i < n; i++)
	{
		if (!deliveries[i].ours)
			ujobs_redis_command(redis, "GET", entry_of(&deliveries[i])->claim, NULL);
	}
	for (int i = 0; i < n; i++)
	{
		UjobsRedisEntry *entry = entry_of(&deliveries[i]);
		redisReply *reply;

		if (deliveries[i].ours)
			continue;
		reply = ujobs_redis_wire_reply(redis, error);
		if (reply == NULL)
			return false;
		if (reply->type == REDIS_REPLY_STRING)
		{
			deliveries[i].ours = strcmp(reply->str, redis->options->store_id) == 0;
			snprintf(entry->owner, sizeof(entry->owner), "%s",
					 deliveries[i].ours ? "" : reply->str);
		}
		freeReplyObject(reply);
	}
	return true;
}

static bool
claim_all(UjobsRedis *redis, UjobsSinkDelivery *deliveries, int n, UjobsSinkError *error)
{
	return try_all(redis, deliveries, n, error) && look_at_others(redis, deliveries, n, error);
}

/* ---- taking ---- */

#define ROUND_MS 5000			/* between looks at 1. and 2. */
#define IDLE_MS "30000"			/* how long is long */

/* The group, and the stream if it is not there yet; all that is in it is new. */
static bool
make_group(UjobsRedis *redis, UjobsSinkError *error)
{
	redisReply *reply;
	bool		made;

	ujobs_redis_command(redis, "XGROUP", "CREATE", redis->queue_key, UJOBS_REDIS_GROUP, "0",
						"MKSTREAM", NULL);
	reply = ujobs_redis_wire_reply(redis, error);
	if (reply == NULL)
		return false;
	made = reply->type != REDIS_REPLY_ERROR || ujobs_redis_wire_is_error(reply, "BUSYGROUP");
	if (!made)
		ujobs_option_fail(error, "could not make group \"%s\" of stream \"%s\": %s",
						  UJOBS_REDIS_GROUP, redis->queue_key, reply->str);
	freeReplyObject(reply);
	return made;
}

bool
ujobs_redis_take_subscribe(void *connection, const char *queue, UjobsSinkError *error)
{
	UjobsRedis *redis = connection;

	redis->deadline = ujobs_option_now() + redis->options->timeout_ms;
	free(redis->queue_key);
	redis->queue_key = ujobs_redis_command_queue_key(redis->options, queue);
	if (redis->queue_key == NULL)
		return ujobs_option_fail(error, "out of memory");
	redis->next_round = 0;
	return make_group(redis, error);
}

/*
 * Reads the reply to a request for entries.  NULL = there are none; then the
 * error stays "" unless it failed.
 */
static redisReply *
receive(UjobsRedis *redis, UjobsSinkError *error)
{
	redisReply *reply;

	error->text[0] = '\0';
	reply = ujobs_redis_wire_reply(redis, error);
	if (reply == NULL || is_array(reply, 1))
		return reply;
	if (ujobs_redis_wire_is_error(reply, "NOGROUP") ||
		ujobs_redis_wire_is_error(reply, "UNBLOCKED"))
	{
		/* The server has lost its data, or the stream was deleted. */
		make_group(redis, error);
	}
	else if (reply->type == REDIS_REPLY_ERROR)
		ujobs_option_fail(error, "could not read stream \"%s\": %s", redis->queue_key, reply->str);
	freeReplyObject(reply);
	return NULL;
}

/* XREADGROUP: of those this store has, behind an entry, or new ones (">"). */
static redisReply *
read_group(UjobsRedis *redis, const char *from, int max, int wait_ms, UjobsSinkError *error)
{
	ujobs_redis_command_begin(redis, wait_ms > 0 ? 11 : 9);
	ujobs_redis_command_add(redis, "XREADGROUP");
	ujobs_redis_command_add(redis, "GROUP");
	ujobs_redis_command_add(redis, UJOBS_REDIS_GROUP);
	ujobs_redis_command_add(redis, redis->options->store_id);
	ujobs_redis_command_add(redis, "COUNT");
	ujobs_redis_command_add_number(redis, max);
	if (wait_ms > 0)
	{
		ujobs_redis_command_add(redis, "BLOCK");
		ujobs_redis_command_add_number(redis, wait_ms);
	}
	ujobs_redis_command_add(redis, "STREAMS");
	ujobs_redis_command_add(redis, redis->queue_key);
	ujobs_redis_command_add(redis, from);
	return receive(redis, error);
}

/* XAUTOCLAIM: those that any consumer has had for long, from an entry on. */
static redisReply *
read_idle(UjobsRedis *redis, const char *from, int max, UjobsSinkError *error)
{
	ujobs_redis_command_begin(redis, 8);
	ujobs_redis_command_add(redis, "XAUTOCLAIM");
	ujobs_redis_command_add(redis, redis->queue_key);
	ujobs_redis_command_add(redis, UJOBS_REDIS_GROUP);
	ujobs_redis_command_add(redis, redis->options->store_id);
	ujobs_redis_command_add(redis, IDLE_MS);
	ujobs_redis_command_add(redis, from);
	ujobs_redis_command_add(redis, "COUNT");
	ujobs_redis_command_add_number(redis, max);
	return receive(redis, error);
}

/* 1. What this store has. */
static int
take_pending(UjobsRedis *redis, UjobsSinkDelivery *deliveries, int max, UjobsSinkError *error)
{
	redisReply *reply = read_group(redis, redis->pending, max, 0, error);
	const redisReply *entries = reply != NULL ? list_entries(reply) : NULL;
	int			n = 0;

	if (entries != NULL)
		n = unpack_entries(redis, entries, deliveries, max, redis->pending);
	else
		redis->pending[0] = '\0';
	if (reply != NULL)
		freeReplyObject(reply);
	return n;
}

/* 2. What others, or this store, have had for long. */
static int
take_idle(UjobsRedis *redis, UjobsSinkDelivery *deliveries, int max, UjobsSinkError *error)
{
	redisReply *reply = read_idle(redis, redis->idle, max, error);
	char		ignored[UJOBS_REDIS_ID_SIZE];
	int			n = 0;

	redis->idle[0] = '\0';
	if (reply != NULL && is_array(reply, 2) && reply->element[0]->type == REDIS_REPLY_STRING)
	{
		if (strcmp(reply->element[0]->str, "0-0") != 0)
			snprintf(redis->idle, sizeof(redis->idle), "%s", reply->element[0]->str);
		n = unpack_entries(redis, reply->element[1], deliveries, max, ignored);
	}
	if (reply != NULL)
		freeReplyObject(reply);
	return n;
}

/* 3. What is new. */
static int
take_new(UjobsRedis *redis, UjobsSinkDelivery *deliveries, int max, int wait_ms,
		 UjobsSinkError *error)
{
	redisReply *reply = read_group(redis, ">", max, wait_ms, error);
	const redisReply *entries = reply != NULL ? list_entries(reply) : NULL;
	char		ignored[UJOBS_REDIS_ID_SIZE];
	int			n = 0;

	if (entries != NULL)
		n = unpack_entries(redis, entries, deliveries, max, ignored);
	if (reply != NULL)
		freeReplyObject(reply);
	return n;
}

/* From the first place that has some. */
static int
take_any(UjobsRedis *redis, UjobsSinkDelivery *deliveries, int max, int wait_ms,
		 UjobsSinkError *error)
{
	int			n = 0;

	if (ujobs_option_now() >= redis->next_round)
	{
		strcpy(redis->pending, "0");
		strcpy(redis->idle, "0-0");
		redis->next_round = ujobs_option_now() + ROUND_MS;
	}
	while (n == 0 && redis->pending[0] != '\0' && error->text[0] == '\0')
		n = take_pending(redis, deliveries, max, error);
	while (n == 0 && redis->idle[0] != '\0' && error->text[0] == '\0')
		n = take_idle(redis, deliveries, max, error);
	if (n == 0 && error->text[0] == '\0')
		n = take_new(redis, deliveries, max, wait_ms, error);
	if (n < 0)
		ujobs_option_fail(error, "out of memory");
	return n;
}

int
ujobs_redis_take(void *connection, UjobsSinkDelivery *deliveries, int max, int wait_ms,
				 UjobsSinkError *error)
{
	UjobsRedis *redis = connection;
	int			n;

	redis->deadline = ujobs_option_now() + wait_ms + redis->options->timeout_ms;
	error->text[0] = '\0';
	n = take_any(redis, deliveries, max, wait_ms, error);
	if (n > 0 && error->text[0] == '\0' && claim_all(redis, deliveries, n, error))
		return n;
	if (n > 0)
		free_entries(deliveries, n);
	return error->text[0] == '\0' ? 0 : -1;
}

/* COMMAND key [group] id ... of those that are stored. */
static void
add_stored(UjobsRedis *redis, const char *command, const char *group, UjobsSinkDelivery *deliveries,
		   int n)
{
	int			stored = 0;

	for (int i = 0; i < n; i++)
		stored += deliveries[i].verdict == UJOBS_SINK_DONE;
	ujobs_redis_command_begin(redis, 2 + (group != NULL) + stored);
	ujobs_redis_command_add(redis, command);
	ujobs_redis_command_add(redis, redis->queue_key);
	if (group != NULL)
		ujobs_redis_command_add(redis, group);
	for (int i = 0; i < n; i++)
	{
		if (deliveries[i].verdict == UJOBS_SINK_DONE)
			ujobs_redis_command_add(redis, ((UjobsRedisEntry *) deliveries[i].handle)->entry);
	}
}

/* Gives each that is not ours to the consumer whose it is; the number of commands. */
static int
transfer(UjobsRedis *redis, UjobsSinkDelivery *deliveries, int n)
{
	int			replies = 0;

	for (int i = 0; i < n; i++)
	{
		UjobsRedisEntry *entry = deliveries[i].handle;

		if (deliveries[i].verdict == UJOBS_SINK_DONE || deliveries[i].ours ||
			entry->owner[0] == '\0')
			continue;
		ujobs_redis_command(redis, "XCLAIM", redis->queue_key, UJOBS_REDIS_GROUP, entry->owner, "0",
							entry->entry, "JUSTID", NULL);
		replies++;
	}
	return replies;
}

bool
ujobs_redis_take_settle(void *connection, UjobsSinkDelivery *deliveries, int n,
						UjobsSinkError *error)
{
	UjobsRedis *redis = connection;
	int			replies;
	bool		settled = true;
	bool		any = false;

	redis->deadline = ujobs_option_now() + redis->options->timeout_ms;
	replies = transfer(redis, deliveries, n);
	for (int i = 0; i < n; i++)
		any = any || deliveries[i].verdict == UJOBS_SINK_DONE;
	if (any)
	{
		ujobs_redis_command(redis, "MULTI", NULL);
		add_stored(redis, "XACK", UJOBS_REDIS_GROUP, deliveries, n);
		add_stored(redis, "XDEL", NULL, deliveries, n);
		ujobs_redis_command(redis, "EXEC", NULL);
		replies += 4;
	}
	free_entries(deliveries, n);
	while (settled && replies-- > 0)
		settled = ujobs_redis_wire_expect_ok(redis, error);
	return settled;
}
