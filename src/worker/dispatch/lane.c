/*
 * lane.c: step 3 of the walk: lanes by key, and what their definitions say.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "access/htup_details.h"

#include "core/compat.h"
#include "core/hash.h"
#include "core/identity.h"
#include "store/definition_store.h"
#include "worker/dispatch/lane.h"

static MemoryContext lane_memory = NULL;
static HTAB *by_hash = NULL;	/* hash_key -> lane */
static UjobsLane **lanes = NULL;
static int	n_lanes = 0;
static int	lanes_capacity = 0;

typedef struct LaneEntry
{
	uint64		hash_key;
	UjobsLane  *lane;
} LaneEntry;

void
ujobs_lane_init(void)
{
	HASHCTL		ctl = {.keysize = sizeof(uint64), .entrysize = sizeof(LaneEntry)};

	lane_memory = AllocSetContextCreate(TopMemoryContext, "ujobs lanes", ALLOCSET_DEFAULT_SIZES);
	ctl.hcxt = lane_memory;
	by_hash = hash_create("ujobs lanes", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	lanes_capacity = 64;
	lanes = MemoryContextAlloc(lane_memory, lanes_capacity * sizeof(UjobsLane *));
}

int
ujobs_lane_count(void)
{
	return n_lanes;
}

UjobsLane *
ujobs_lane_at(int index)
{
	return lanes[index];
}

static inline uint64
hash_key_of(int32 definition_id, uint32 queue_hash)
{
	return ((uint64) (uint32) definition_id << 32) | queue_hash;
}

static UjobsLane *
lane_create(const UjobsLaneKey *key, LaneEntry *entry)
{
	UjobsLane  *lane = MemoryContextAllocZero(lane_memory, sizeof(UjobsLane));

	lane->key = *key;
	lane->key.tenant = "";
	lane->queue_hash = ujobs_hash_queue(key->queue);
	lane->definition_cap = ujobs_limit_cap(UJOBS_CAP_DEFINITION, key->definition_id, 0);
	lane->queue_cap = ujobs_limit_cap(UJOBS_CAP_QUEUE, lane->queue_hash, 0);
	if (n_lanes == lanes_capacity)
	{
		lanes_capacity *= 2;
		lanes = repalloc(lanes, lanes_capacity * sizeof(UjobsLane *));
	}
	lanes[n_lanes++] = lane;
	entry->lane = lane;
	return lane;
}

/*
 * By name.  Two queues of one definition with the same hash take the next
 * key: a hint may then land in the other's window, where the id is as good.
 */
UjobsLane *
ujobs_lane_get(const UjobsLaneKey *key)
{
	uint64		hash_key = hash_key_of(key->definition_id, ujobs_hash_queue(key->queue));

	for (;; hash_key++)
	{
		bool		found;
		LaneEntry  *entry = hash_search(by_hash, &hash_key, HASH_ENTER, &found);

		if (!found)
			return lane_create(key, entry);
		if (strcmp(entry->lane->key.queue, key->queue) == 0)
			return entry->lane;
	}
}

UjobsLane *
ujobs_lane_find(int32 definition_id, const char *queue)
{
	uint64		hash_key = hash_key_of(definition_id, ujobs_hash_queue(queue));

	for (;; hash_key++)
	{
		LaneEntry  *entry = hash_search(by_hash, &hash_key, HASH_FIND, NULL);

		if (entry == NULL)
			return NULL;
		if (strcmp(entry->lane->key.queue, queue) == 0)
			return entry->lane;
	}
}

UjobsLane *
ujobs_lane_find_hash(int32 definition_id, uint32 queue_hash)
{
	uint64		hash_key = hash_key_of(definition_id, queue_hash);
	LaneEntry  *entry = hash_search(by_hash, &hash_key, HASH_FIND, NULL);

	return entry == NULL ? NULL : entry->lane;
}

/* ---- definitions and queues ---- */

static bool
role_can_serve(Oid role)
{
	HeapTuple	tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(role));
	bool		can;

	if (!HeapTupleIsValid(tuple))
		return false;
	can = !UJOBS_COMPAT_OWNER_NEEDS_LOGIN || ((Form_pg_authid) GETSTRUCT(tuple))->rolcanlogin;
	ReleaseSysCache(tuple);
	return can &&
		object_aclcheck(DatabaseRelationId, MyDatabaseId, role, ACL_CONNECT) == ACLCHECK_OK;
}

/*
 * Without an owner that can serve, an executor of the extension's owner takes
 * the jobs, to settle them; it never calls a handler of another role.
 */
static void
load_definition(UjobsLane *lane)
{
	const UjobsDefinition *definition = ujobs_definition_by_id(lane->key.definition_id);

	lane->loaded = true;
	lane->outside = definition != NULL && !definition->dropped &&
		definition->kind == UJOBS_KIND_EXTERNAL;
	lane->batch = definition != NULL && definition->kind == UJOBS_KIND_ATOMIC ?
		Max(definition->batch, 1) : 1;
	if (lane->outside)
		lane->role = InvalidOid;
	else if (definition != NULL && !definition->dropped && role_can_serve(definition->owner))
		lane->role = definition->owner;
	else
		lane->role = ujobs_identity_extension_owner();
	ujobs_limit_set_definition(lane->definition_cap,
							   definition != NULL ? definition->concurrency : 0);
}

void
ujobs_lane_load(int first)
{
	List	   *queues = ujobs_dispatch_queues();

	ujobs_limit_set_queues(queues);
	for (int i = first; i < n_lanes; i++)
	{
		load_definition(lanes[i]);
		lanes[i]->paused = ujobs_dispatch_is_paused(queues, lanes[i]->key.queue);
	}
	list_free_deep(queues);
}
