/*
 * queue_name_store.c: how many queues there may be.
 *
 * A session looks a name up once.  Two sessions that name new queues at the
 * same time may exceed the bound by one each.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/hsearch.h"

#include "core/guc.h"
#include "store/catalogue.h"
#include "store/queue_name_store.h"

#define NAMES 1000				/* that a session remembers */

typedef struct SeenQueue
{
	char		name[NAMEDATALEN];	/* hash key; a queue has at most 63 bytes */
} SeenQueue;

static HTAB *seen = NULL;

static void
remember(const char *queue)
{
	if (hash_get_num_entries(seen) >= NAMES)
	{
		hash_destroy(seen);
		seen = NULL;
		return;
	}
	(void) hash_search(seen, queue, HASH_ENTER, NULL);
}

static bool
is_seen(const char *queue)
{
	HASHCTL		ctl = {.keysize = NAMEDATALEN, .entrysize = sizeof(SeenQueue)};

	if (seen == NULL)
		seen = hash_create("ujobs queues", 64, &ctl, HASH_ELEM | HASH_STRINGS);
	return hash_search(seen, queue, HASH_FIND, NULL) != NULL;
}

static bool
is_known(int32 definition_id, const char *queue)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int32GetDatum(definition_id));
	ujobs_query_bind_text(&args, queue);
	return DatumGetBool(ujobs_catalogue_value(UJOBS_SQL_QUEUE_NAME_KNOWN, &args,
											  BoolGetDatum(false)));
}

/* Lanes of live jobs, of which there are at least as many as queues; no more than asked for. */
static int64
count_lanes(int64 most)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int64GetDatum(most));
	return DatumGetInt64(ujobs_catalogue_value(UJOBS_SQL_QUEUE_NAME_COUNT, &args,
											   Int64GetDatum(0)));
}

void
ujobs_queue_name_check(int32 definition_id, const char *queue)
{
	if (is_seen(queue))
		return;
	if (!is_known(definition_id, queue) &&
		count_lanes(ujobs_guc_max_queues) >= ujobs_guc_max_queues)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many queues: queue \"%s\" would be another one", queue),
				 errdetail("There are %d or more already, as many as ujobs.max_queues allows.",
						   ujobs_guc_max_queues),
				 errhint("Use fewer queues, with tenants or keys to tell jobs apart; or make this one known by ujobs.set_queue, or raise the setting.")));
	remember(queue);
}
