/*
 * sink_redis_entry.c: entries of a stream as deliveries.
 *
 * Redis gives an entry as [id, [field, value, ...]].
 */
#include "sink/sink_redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
ujobs_redis_entry_is_array(const redisReply *reply, size_t n)
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
	bool		named = id != NULL && id->len > 0 && id->len <= 100 && strlen(id->str) == (size_t) id->len;
	size_t		payload_size = payload != NULL ? payload->len : 0;
	size_t		entry_size = strlen(entry) + 1;
	size_t		id_size = named ? id->len + 1 : strlen(redis->queue_key) + entry_size + 1;
	size_t		claim_size = strlen(stream != NULL ? stream : "ujobs") + sizeof(":claim:") + id_size;
	UjobsRedisEntry *handle = calloc(1, sizeof(UjobsRedisEntry) + entry_size + id_size + claim_size + payload_size + 1);
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

void
ujobs_redis_entry_free(UjobsSinkDelivery *deliveries, int n)
{
	for (int i = 0; i < n; i++)
		free(deliveries[i].handle);
}

int
ujobs_redis_entry_unpack(UjobsRedis *redis, const redisReply *entries, UjobsSinkDelivery *deliveries, int max, char *last)
{
	int			n = 0;

	for (size_t i = 0; i < entries->elements && n < max; i++)
	{
		const redisReply *entry = entries->element[i];

		if (!ujobs_redis_entry_is_array(entry, 2) || entry->element[0]->type != REDIS_REPLY_STRING)
			continue;
		snprintf(last, UJOBS_REDIS_ID_SIZE, "%s", entry->element[0]->str);
		if (!ujobs_redis_entry_is_array(entry->element[1], 0))
		{
			UjobsSinkError ignored;

			ujobs_redis_command(redis, "XACK", redis->queue_key, UJOBS_REDIS_GROUP, entry->element[0]->str, NULL);
			ujobs_redis_expect_ok(redis, &ignored);
		}
		else if (!unpack(redis, entry->element[0]->str, entry->element[1], &deliveries[n++]))
		{
			ujobs_redis_entry_free(deliveries, n - 1);
			return -1;
		}
	}
	return n;
}

const redisReply *
ujobs_redis_entry_list(const redisReply *reply)
{
	const redisReply *stream = reply->element[0];

	return ujobs_redis_entry_is_array(stream, 2) && ujobs_redis_entry_is_array(stream->element[1], 1) ? stream->element[1] : NULL;
}
