/*
 * queues.c: step 3 of the walk: from hints and rows to tenant queues.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "core/hash.h"
#include "worker/dispatch/queues.h"

/* More tenants with jobs wait on disk until others are through. */
#define MAX_TENANT_QUEUES 20000

typedef struct Key
{
	UjobsLane  *lane;
	uint64		tenant_hash;
} Key;

typedef struct Entry
{
	Key			key;
	UjobsTenantQueue *tq;
} Entry;

static HTAB *by_tenant;

void
ujobs_queue_init(UjobsArea *area)
{
	HASHCTL		ctl = {.keysize = sizeof(Key), .entrysize = sizeof(Entry)};

	ujobs_limit_init(area);
	ujobs_lane_init();
	ujobs_tenant_queue_init();
	by_tenant = hash_create("ujobs queues by tenant", 256, &ctl, HASH_ELEM | HASH_BLOBS);
}

/* ---- where a job belongs ---- */

static UjobsTenantQueue *
get(UjobsLane *lane, uint64 tenant_hash, const char *tenant)
{
	Key			key = {lane, tenant_hash};
	Entry	   *entry;

	if (tenant_hash == 0)
		return lane->plain;
	entry = hash_search(by_tenant, &key, HASH_FIND, NULL);
	if (entry != NULL)
		return entry->tq;
	if (ujobs_tenant_queue_count() >= MAX_TENANT_QUEUES)
		return NULL;
	entry = hash_search(by_tenant, &key, HASH_ENTER, NULL);
	entry->tq = ujobs_tenant_queue_create(lane, tenant_hash, tenant);
	return entry->tq;
}

UjobsTenantQueue *
ujobs_queue_of(UjobsLane *lane, uint64 tenant_hash)
{
	return get(lane, tenant_hash, NULL);
}

UjobsTenantQueue *
ujobs_queue_find(int32 definition_id, const char *queue, uint64 tenant_hash, TimestampTz now)
{
	UjobsLane  *lane = ujobs_lane_find(definition_id, queue);

	if (lane == NULL)
	{
		ujobs_queue_discover(now);
		lane = ujobs_lane_find(definition_id, queue);
	}
	return lane == NULL ? NULL : ujobs_queue_of(lane, tenant_hash);
}

bool
ujobs_queue_hint(const UjobsHint *hint, TimestampTz now)
{
	UjobsLane  *lane = ujobs_lane_find_hash(hint->definition_id, hint->queue_hash);
	UjobsTenantQueue *tq;
	UjobsHeapItem item = {hint->id, hint->due_at, hint->priority};

	if (lane == NULL || !lane->loaded)
		return false;
	tq = ujobs_queue_of(lane, hint->tenant_hash);
	if (tq == NULL)
		return true;
	if (hint->kind == UJOBS_HINT_RANGE)
		ujobs_tenant_queue_add_range(tq, item, now);
	else
		ujobs_tenant_queue_add(tq, item, now);
	return true;
}

/* ---- reading rows ---- */

/* The lane, with the queue of its jobs without a tenant. */
static UjobsLane *
lane_of(const UjobsLaneKey *key)
{
	UjobsLane  *lane = ujobs_lane_get(key);

	if (lane->plain == NULL)
		lane->plain = ujobs_tenant_queue_create(lane, 0, "");
	return lane;
}

/* Its tenants on disk; their rows are read in the rounds that follow. */
static void
list_tenants(UjobsLane *lane)
{
	List	   *tenants = ujobs_dispatch_tenants(&lane->key, MAX_TENANT_QUEUES);
	ListCell   *lc;

	foreach(lc, tenants)
	{
		const char *tenant = lfirst(lc);
		UjobsTenantQueue *tq = get(lane, ujobs_hash_tenant(tenant), tenant);

		if (tq == NULL)
			break;
		ujobs_tenant_queue_mark_seen(tq, tenant);
	}
	list_free_deep(tenants);
}

static void
reread(UjobsLane *lane, TimestampTz now)
{
	if (ujobs_dispatch_has_plain(&lane->key))
		ujobs_tenant_queue_reread(lane->plain, now);
	else
		ujobs_tenant_queue_clear(lane->plain);
	list_tenants(lane);
}

void
ujobs_queue_discover(TimestampTz now)
{
	UjobsLaneKey key = {PG_INT32_MIN, "", ""};
	int			known = ujobs_lane_count();

	Assert(IsTransactionState());
	while (ujobs_dispatch_next_lane(&key))
		(void) lane_of(&key);
	ujobs_lane_load(known);
	for (int i = known; i < ujobs_lane_count(); i++)
		reread(ujobs_lane_at(i), now);
}

static void
forget(Entry *entry)
{
	UjobsTenantQueue *tq = entry->tq;

	(void) hash_search(by_tenant, &entry->key, HASH_REMOVE, NULL);
	ujobs_tenant_queue_free(tq);
}

/* Tenants that are through make space for others before these are listed. */
static void
begin_rescan(void)
{
	HASH_SEQ_STATUS status;
	Entry	   *entry;

	hash_seq_init(&status, by_tenant);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		entry->tq->seen = false;
		if (entry->tq->holders == 0 && ujobs_tenant_queue_is_empty(entry->tq))
			forget(entry);
	}
	for (int i = 0; i < ujobs_lane_count(); i++)
		ujobs_lane_at(i)->seen = false;
}

/* Of tenants without rows nothing is kept, but what tickets and grants point to. */
static void
forget_unseen(void)
{
	HASH_SEQ_STATUS status;
	Entry	   *entry;

	hash_seq_init(&status, by_tenant);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->tq->seen)
			continue;
		ujobs_tenant_queue_clear(entry->tq);
		if (entry->tq->holders == 0)
			forget(entry);
	}
}

void
ujobs_queue_rescan(TimestampTz now)
{
	UjobsLaneKey key = {PG_INT32_MIN, "", ""};

	Assert(IsTransactionState());
	begin_rescan();
	while (ujobs_dispatch_next_lane(&key))
		lane_of(&key)->seen = true;
	ujobs_lane_load(0);
	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		UjobsLane  *lane = ujobs_lane_at(i);

		if (lane->seen)
			reread(lane, now);
		else
			ujobs_tenant_queue_clear(lane->plain);
	}
	forget_unseen();
	ujobs_limit_sweep(now);
}

/* ---- what waits ---- */

int64
ujobs_queue_waiting_for(Oid role)
{
	int64		n = 0;

	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		UjobsLane  *lane = ujobs_lane_at(i);

		if (lane->waiting > 0 && lane->role == role && ujobs_lane_allows(lane))
			n += lane->waiting;
	}
	return n;
}

bool
ujobs_queue_waits_for_limit(void)
{
	if (ujobs_tenant_queue_blocked() > 0)
		return true;
	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		UjobsLane  *lane = ujobs_lane_at(i);

		if (lane->waiting > 0 && !lane->paused &&
			(lane->definition_cap->limit > 0 || lane->queue_cap->limit > 0 ||
			 lane->queue_cap->per_tenant > 0))
			return true;
	}
	return false;
}
