/*
 * sink_redis_claim.c: which store a message belongs to.
 *
 * The key STREAM:claim:ID holds the home of the store that may make a job of
 * the message.  SET NX is the decision: the first one wins.  Whoever comes later
 * reads who that was.
 */
#include "sink/sink_redis.h"

#include <stdio.h>
#include <string.h>

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
		ujobs_redis_begin(redis, 6);
		ujobs_redis_add(redis, "SET");
		ujobs_redis_add(redis, entry_of(&deliveries[i])->claim);
		ujobs_redis_add(redis, redis->options->home);
		ujobs_redis_add(redis, "NX");
		ujobs_redis_add(redis, "PX");
		ujobs_redis_add_number(redis, redis->claim_ms);
	}
	for (int i = 0; i < n; i++)
	{
		redisReply *reply = ujobs_redis_reply(redis, error);

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

/* Whose are those that somebody has claimed before? */
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
		reply = ujobs_redis_reply(redis, error);
		if (reply == NULL)
			return false;
		if (reply->type == REDIS_REPLY_STRING)
		{
			deliveries[i].ours = strcmp(reply->str, redis->options->home) == 0;
			snprintf(entry->owner, sizeof(entry->owner), "%s", deliveries[i].ours ? "" : reply->str);
		}
		freeReplyObject(reply);
	}
	return true;
}

bool
ujobs_redis_claim(UjobsRedis *redis, UjobsSinkDelivery *deliveries, int n, UjobsSinkError *error)
{
	return try_all(redis, deliveries, n, error) && look_at_others(redis, deliveries, n, error);
}
