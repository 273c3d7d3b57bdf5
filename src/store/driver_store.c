/*
 * driver_store.c: the session's cache of queues that live on a broker.
 *
 * Every enqueue asks, and nearly every answer is no: that costs one test.
 * A session that changes a queue invalidates the relcache entry of the definition
 * table (ujobs_definition_invalidate); the list is read anew after that, with
 * the latest snapshot, because it outlives the transaction.
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "core/identity.h"
#include "core/invalidation.h"
#include "core/sink_module.h"
#include "store/catalogue.h"
#include "store/driver_store.h"

static MemoryContext cache_context = NULL;
static UjobsDriver *drivers = NULL;
static int	n_drivers = 0;
static UjobsInvalidation invalidation = {.table = "definition"};

static void
decode(const UjobsResult *r, uint64 row, UjobsDriver *driver)
{
	driver->queue = ujobs_query_result_text(r, row, 0, cache_context);
	driver->driver = ujobs_query_result_text(r, row, 1, cache_context);
	driver->sink_id = DatumGetInt32(ujobs_query_result_datum(r, row, 2));
	driver->sink = ujobs_query_result_text(r, row, 3, cache_context);
	driver->key = (bytea *) DatumGetPointer(ujobs_query_result_copy(r, row, 5, cache_context));
	driver->max_payload = ujobs_sink_module_max_payload(
		driver->driver, ujobs_query_result_jsonb(r, row, 4, CurrentMemoryContext));
}

static void
load(void)
{
	UjobsIdentity identity;
	UjobsResult result;

	ujobs_identity_enter(&identity);
	PushActiveSnapshot(GetLatestSnapshot());
	result = ujobs_query_read(ujobs_catalogue_statement(UJOBS_SQL_DRIVER_QUEUES), NULL);
	drivers = MemoryContextAllocZero(cache_context, Max(result.rows, 1) * sizeof(UjobsDriver));
	for (uint64 row = 0; row < result.rows; row++)
		decode(&result, row, &drivers[row]);
	PopActiveSnapshot();
	ujobs_identity_leave(&identity);
	n_drivers = (int) result.rows;
}

static void
refresh(void)
{
	if (cache_context == NULL)
		cache_context = AllocSetContextCreate(CacheMemoryContext, "ujobs drivers of queues",
											  ALLOCSET_SMALL_SIZES);
	n_drivers = 0;
	MemoryContextReset(cache_context);
	ujobs_invalidation_begin(&invalidation);
	PG_TRY();
	{
		load();
	}
	PG_CATCH();
	{
		n_drivers = 0;
		invalidation.fresh = false;
		PG_RE_THROW();
	}
	PG_END_TRY();
}

const UjobsDriver *
ujobs_driver_of_queue(const char *queue)
{
	if (!invalidation.fresh)
		refresh();
	for (int i = 0; i < n_drivers; i++)
	{
		if (strcmp(drivers[i].queue, queue) == 0)
			return &drivers[i];
	}
	return NULL;
}
