/*
 * lane.c: lanes, and the parties in them, by key.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "catalog/pg_authid.h"
#include "access/htup_details.h"

#include "core/compat.h"
#include "core/identity.h"
#include "store/definition_store.h"
#include "worker/dispatch/lane.h"

static MemoryContext lane_memory = NULL;
static HTAB *by_hash = NULL;	/* hash_key -> lane */
static HTAB *by_tenant = NULL;	/* (lane, tenant's hash) -> party */
static UjobsLane **lanes = NULL;
static int	n_lanes = 0;
static int	lanes_capacity = 0;

typedef struct LaneEntry
{
	uint64		hash_key;
	UjobsLane  *lane;
} LaneEntry;

typedef struct PartyKey
{
	UjobsLane  *lane;
	uint64		tenant_hash;
} PartyKey;

typedef struct PartyEntry
{
	PartyKey	key;
	UjobsParty *party;
} PartyEntry;

void
ujobs_lane_init(void)
{
	HASHCTL		ctl = {.keysize = sizeof(uint64), .entrysize = sizeof(LaneEntry)};

	lane_memory = AllocSetContextCreate(TopMemoryContext, "ujobs lanes", ALLOCSET_DEFAULT_SIZES);
	ctl.hcxt = lane_memory;
	by_hash = hash_create("ujobs lanes", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	ctl.keysize = sizeof(PartyKey);
	ctl.entrysize = sizeof(PartyEntry);
	by_tenant = hash_create("ujobs parties", 256, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	lanes_capacity = 64;
	lanes = MemoryContextAlloc(lane_memory, lanes_capacity * sizeof(UjobsLane *));
	ujobs_party_init();
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
	lane->queue_hash = ujobs_queue_hash(key->queue);
	lane->ready.ph_compare = ujobs_party_order;
	lane->definition_cap = ujobs_limit_cap(UJOBS_CAP_DEFINITION, key->definition_id, 0);
	lane->queue_cap = ujobs_limit_cap(UJOBS_CAP_QUEUE, lane->queue_hash, 0);
	lane->plain = ujobs_party_create(lane, 0, "");
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
static UjobsLane *
lane_of(const UjobsLaneKey *key)
{
	uint64		hash_key = hash_key_of(key->definition_id, ujobs_queue_hash(key->queue));

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
ujobs_lane_find(const UjobsLaneKey *key)
{
	uint64		hash_key = hash_key_of(key->definition_id, ujobs_queue_hash(key->queue));

	for (;; hash_key++)
	{
		LaneEntry  *entry = hash_search(by_hash, &hash_key, HASH_FIND, NULL);

		if (entry == NULL)
			return NULL;
		if (strcmp(entry->lane->key.queue, key->queue) == 0)
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

/* ---- parties ---- */

static UjobsParty *
find_party(UjobsLane *lane, uint64 tenant_hash)
{
	PartyKey	key = {lane, tenant_hash};
	PartyEntry *entry = hash_search(by_tenant, &key, HASH_FIND, NULL);

	return entry == NULL ? NULL : entry->party;
}

static UjobsParty *
make_party(UjobsLane *lane, uint64 tenant_hash, const char *tenant)
{
	PartyKey	key = {lane, tenant_hash};
	PartyEntry *entry;

	if (ujobs_party_count() >= UJOBS_MAX_PARTIES)
		return NULL;			/* a rescan finds it when others are through */
	entry = hash_search(by_tenant, &key, HASH_ENTER, NULL);
	entry->party = ujobs_party_create(lane, tenant_hash, tenant);
	return entry->party;
}

UjobsParty *
ujobs_lane_party(UjobsLane *lane, uint64 tenant_hash)
{
	UjobsParty *party;

	if (tenant_hash == 0)
		return lane->plain;
	party = find_party(lane, tenant_hash);
	return party != NULL ? party : make_party(lane, tenant_hash, NULL);
}

UjobsParty *
ujobs_lane_best(UjobsLane *lane, TimestampTz now)
{
	while (!pairingheap_is_empty(&lane->ready))
	{
		UjobsParty *party = pairingheap_container(UjobsParty, ready_node, pairingheap_first(&lane->ready));

		if (party->cap == NULL)
		{
			if (ujobs_party_keeps_turn(party))
				return party;
			ujobs_party_place(party);
		}
		else if (!ujobs_party_keeps_turn(party))
			ujobs_party_place(party);	/* its tenant was served elsewhere meanwhile */
		else if (!ujobs_limit_rate_allows(party->cap, now))
		{
			ujobs_limit_watch_rate(party->cap, now);
			ujobs_party_block(party);
		}
		else if (!ujobs_limit_is_free(party->cap))
			ujobs_party_block(party);
		else
			return party;
	}
	return NULL;
}

/* ---- hints ---- */

/* False when the lane is not known: rows must say what is there. */
static bool
take_hint(const UjobsHint *hint, void (*take) (UjobsParty *party, UjobsHeapItem item, TimestampTz now), TimestampTz now)
{
	UjobsLane  *lane = ujobs_lane_find_hash(hint->definition_id, hint->queue_hash);
	UjobsParty *party;

	if (lane == NULL || !lane->loaded)
		return false;
	party = ujobs_lane_party(lane, hint->tenant_hash);
	if (party != NULL)
		take(party, (UjobsHeapItem) {hint->id, hint->due_at, hint->priority}, now);
	return true;
}

bool
ujobs_lane_hint(const UjobsHint *hint, TimestampTz now)
{
	return take_hint(hint, ujobs_party_add, now);
}

bool
ujobs_lane_range(const UjobsHint *hint, TimestampTz now)
{
	return take_hint(hint, ujobs_party_range, now);
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
	return can;
}

/*
 * Without an owner that can serve, an executor of the extension's owner takes
 * the jobs, to settle them; it never calls a handler of somebody else.
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
	ujobs_limit_set_definition(lane->definition_cap, definition != NULL ? definition->concurrency : 0);
}

/* From that lane on. */
static void
load(int first)
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

void
ujobs_lane_reload_definitions(void)
{
	load(0);
}

/* ---- reading rows ---- */

/* Its tenants on disk; their rows are read in the rounds that follow. */
static void
list_tenants(UjobsLane *lane)
{
	List	   *tenants = ujobs_dispatch_tenants(&lane->key, UJOBS_MAX_PARTIES);
	ListCell   *lc;

	foreach(lc, tenants)
	{
		const char *tenant = lfirst(lc);
		uint64		hash = ujobs_tenant_hash(tenant);
		UjobsParty *party = find_party(lane, hash);

		if (party == NULL)
			party = make_party(lane, hash, tenant);
		if (party == NULL)
			break;
		party->seen = party->stale = true;
		ujobs_party_know(party, tenant);
		ujobs_party_place(party);
	}
	list_free_deep(tenants);
}

static void
lane_reread(UjobsLane *lane, TimestampTz now)
{
	if (ujobs_dispatch_has_plain(&lane->key))
		ujobs_party_reread(lane->plain, now);
	else
		ujobs_party_clear(lane->plain);
	list_tenants(lane);
}

void
ujobs_lane_discover(TimestampTz now)
{
	UjobsLaneKey key = {PG_INT32_MIN, "", ""};
	int			known = n_lanes;

	while (ujobs_dispatch_next_lane(&key))
		(void) lane_of(&key);
	load(known);
	for (int i = known; i < n_lanes; i++)
		lane_reread(lanes[i], now);
}

static void
forget_party(PartyEntry *entry)
{
	UjobsParty *party = entry->party;

	(void) hash_search(by_tenant, &entry->key, HASH_REMOVE, NULL);
	ujobs_party_free(party);
}

/* Those who are through, before others are listed. */
static void
make_room(void)
{
	HASH_SEQ_STATUS status;
	PartyEntry *entry;

	hash_seq_init(&status, by_tenant);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->party->out == 0 && ujobs_party_is_empty(entry->party))
			forget_party(entry);
	}
}

/* Tenants without rows: nothing is kept of those that nobody points to. */
static void
sweep_parties(TimestampTz now)
{
	HASH_SEQ_STATUS status;
	PartyEntry *entry;

	hash_seq_init(&status, by_tenant);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		UjobsParty *party = entry->party;

		if (!party->seen)
			ujobs_party_clear(party);
		if (!party->seen && party->out == 0)
			forget_party(entry);
	}
	ujobs_limit_sweep(now);
}

static void
forget_seen(void)
{
	HASH_SEQ_STATUS status;
	PartyEntry *entry;

	hash_seq_init(&status, by_tenant);
	while ((entry = hash_seq_search(&status)) != NULL)
		entry->party->seen = false;
	for (int i = 0; i < n_lanes; i++)
		lanes[i]->seen = false;
}

void
ujobs_lane_rescan(TimestampTz now)
{
	UjobsLaneKey key = {PG_INT32_MIN, "", ""};

	forget_seen();
	make_room();
	while (ujobs_dispatch_next_lane(&key))
		lane_of(&key)->seen = true;
	load(0);
	for (int i = 0; i < n_lanes; i++)
	{
		if (lanes[i]->seen)
			lane_reread(lanes[i], now);
		else
			ujobs_party_clear(lanes[i]->plain);
	}
	sweep_parties(now);
}
