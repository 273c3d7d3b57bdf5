/*
 * lane.c: windows of rows, one pair per definition and queue.
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
#include "worker/lane.h"

static MemoryContext lane_memory = NULL;
static HTAB *by_hash = NULL;	/* hash_key -> pointer */
static HTAB *woken_ids = NULL;	/* of all lanes */
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
	ctl.entrysize = sizeof(int64);
	woken_ids = hash_create("ujobs woken jobs", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
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
	lane->horizon = DT_NOEND;
	ujobs_heap_init(&lane->due, UJOBS_HEAP_BY_URGENCY, lane_memory);
	ujobs_heap_init(&lane->timers, UJOBS_HEAP_BY_TIME, lane_memory);
	ujobs_heap_init(&lane->woken, UJOBS_HEAP_BY_URGENCY, lane_memory);
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

/* ---- windows ---- */

/* Is the row beyond what the window holds?  Then disk has it. */
static bool
beyond_cursor(const UjobsLane *lane, const UjobsHeapItem *item)
{
	UjobsHeapItem last = {lane->cursor.id, lane->cursor.due_at, lane->cursor.priority};

	return lane->more && ujobs_heap_compare(UJOBS_HEAP_BY_URGENCY, item, &last) > 0;
}

static void
add_due(UjobsLane *lane, UjobsHeapItem item)
{
	if (beyond_cursor(lane, &item))
		return;
	ujobs_heap_push(&lane->due, item);
	if (lane->due.size > 2 * UJOBS_LANE_WINDOW)
	{
		UjobsHeapItem last = ujobs_heap_trim(&lane->due, UJOBS_LANE_WINDOW);

		lane->cursor = (UjobsCursor) {last.priority, last.due_at, last.id};
		lane->more = true;
	}
}

static void
add_timer(UjobsLane *lane, UjobsHeapItem item)
{
	/* A woken one is on no disk; if a window loses it, the next look at all waits finds it. */
	if ((item.due_at > lane->horizon && !item.woken) || TIMESTAMP_NOT_FINITE(item.due_at))
		return;
	ujobs_heap_push(&lane->timers, item);
	if (lane->timers.size > 2 * UJOBS_LANE_WINDOW)
		lane->horizon = ujobs_heap_trim(&lane->timers, UJOBS_LANE_WINDOW).due_at;
}

static void
add_woken(UjobsLane *lane, UjobsHeapItem item)
{
	bool		found;

	(void) hash_search(woken_ids, &item.id, HASH_ENTER, &found);
	if (!found)
		ujobs_heap_push(&lane->woken, item);
}

static void
forget_woken(UjobsLane *lane)
{
	for (int i = 0; i < lane->woken.size; i++)
		(void) hash_search(woken_ids, &lane->woken.item[i].id, HASH_REMOVE, NULL);
	ujobs_heap_clear(&lane->woken);
}

static bool
woken_is_first(const UjobsLane *lane)
{
	if (lane->due.size == 0 || lane->woken.size == 0)
		return lane->due.size == 0;
	return ujobs_heap_compare(UJOBS_HEAP_BY_URGENCY, ujobs_heap_top(&lane->woken),
							  ujobs_heap_top(&lane->due)) < 0;
}

const UjobsHeapItem *
ujobs_lane_top(const UjobsLane *lane)
{
	return ujobs_heap_top(woken_is_first(lane) ? &lane->woken : &lane->due);
}

UjobsHeapItem
ujobs_lane_pop(UjobsLane *lane)
{
	UjobsHeapItem item;

	if (!woken_is_first(lane))
		return ujobs_heap_pop(&lane->due);
	item = ujobs_heap_pop(&lane->woken);
	(void) hash_search(woken_ids, &item.id, HASH_REMOVE, NULL);
	return item;
}

void
ujobs_lane_add(UjobsLane *lane, UjobsHeapItem item, TimestampTz now)
{
	if (item.due_at > now)
		add_timer(lane, item);
	else if (item.woken)
		add_woken(lane, item);
	else
		add_due(lane, item);
}

bool
ujobs_lane_hint(const UjobsHint *hint, TimestampTz now)
{
	uint64		hash_key = hash_key_of(hint->definition_id, hint->queue_hash);
	LaneEntry  *entry = hash_search(by_hash, &hash_key, HASH_FIND, NULL);

	if (entry == NULL || !entry->lane->loaded)
		return false;
	ujobs_lane_add(entry->lane, (UjobsHeapItem) {hint->id, hint->due_at, hint->priority}, now);
	return true;
}

/* What the window holds beyond its cursor is read again, in order. */
static void
forget_beyond_cursor(UjobsLane *lane)
{
	int			size = lane->due.size;

	lane->due.size = 0;
	for (int i = 0; i < size; i++)
	{
		UjobsHeapItem item = lane->due.item[i];

		if (!beyond_cursor(lane, &item))
			ujobs_heap_push(&lane->due, item);
	}
}

bool
ujobs_lane_range(const UjobsHint *hint, TimestampTz now)
{
	uint64		hash_key = hash_key_of(hint->definition_id, hint->queue_hash);
	LaneEntry  *entry = hash_search(by_hash, &hash_key, HASH_FIND, NULL);
	UjobsHeapItem first = {hint->id, hint->due_at, hint->priority};
	UjobsLane  *lane;

	if (entry == NULL || !entry->lane->loaded)
		return false;
	lane = entry->lane;
	if (hint->due_at > now)
		lane->horizon = Min(lane->horizon, hint->due_at - 1);
	else if (!beyond_cursor(lane, &first))
	{
		lane->cursor = (UjobsCursor) {hint->priority, hint->due_at, hint->id - 1};
		lane->more = true;
		forget_beyond_cursor(lane);
	}
	return true;
}

void
ujobs_lane_fire(UjobsLane *lane, TimestampTz now)
{
	while (lane->timers.size > 0 && ujobs_heap_top(&lane->timers)->due_at <= now)
		ujobs_lane_add(lane, ujobs_heap_pop(&lane->timers), now);
}

bool
ujobs_lane_is_low(const UjobsLane *lane, TimestampTz now)
{
	if (lane->more && lane->due.size < UJOBS_LANE_WINDOW / 4)
		return true;
	return lane->horizon != DT_NOEND && (lane->timers.size == 0 || lane->horizon <= now);
}

static void
refill_due(UjobsLane *lane, TimestampTz now)
{
	UjobsHeapItem *rows = palloc(UJOBS_LANE_WINDOW * sizeof(UjobsHeapItem));
	int			n = ujobs_dispatch_due(&lane->key, &lane->cursor, now, rows, UJOBS_LANE_WINDOW);

	lane->more = n == UJOBS_LANE_WINDOW;
	for (int i = 0; i < n; i++)
		ujobs_heap_push(&lane->due, rows[i]);
	pfree(rows);
}

static void
refill_timers(UjobsLane *lane, TimestampTz now)
{
	TimestampTz horizon;
	List	   *rows = ujobs_dispatch_future(&lane->key, now, UJOBS_LANE_WINDOW, &horizon);
	ListCell   *lc;

	ujobs_heap_clear(&lane->timers);
	lane->horizon = horizon;
	foreach(lc, rows)
		add_timer(lane, *(UjobsHeapItem *) lfirst(lc));
	list_free_deep(rows);
}

void
ujobs_lane_refill(UjobsLane *lane, TimestampTz now)
{
	/* Before the timers are read anew, those that came due must not be lost. */
	ujobs_lane_fire(lane, now);
	if (lane->more && lane->due.size < UJOBS_LANE_WINDOW / 4)
		refill_due(lane, now);
	if (lane->horizon != DT_NOEND && (lane->timers.size == 0 || lane->horizon <= now))
	{
		TimestampTz from = lane->horizon;

		refill_timers(lane, now);
		/* Rows that came due behind the old horizon were in neither window. */
		if (from <= now)
		{
			ujobs_heap_clear(&lane->due);
			lane->cursor = (UjobsCursor) {PG_INT16_MIN, DT_NOBEGIN, PG_INT64_MIN};
			refill_due(lane, now);
		}
	}
}

/* ---- definitions ---- */

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
	lane->concurrency = definition != NULL ? definition->concurrency : 0;
	lane->batch = definition != NULL && definition->kind == UJOBS_KIND_ATOMIC ?
		Max(definition->batch, 1) : 1;
	if (definition != NULL && !definition->dropped && role_can_serve(definition->owner))
		lane->role = definition->owner;
	else
		lane->role = ujobs_identity_extension_owner();
}

static bool
is_among(const char *name, const List *names)
{
	ListCell   *lc;

	foreach(lc, names)
	{
		if (strcmp(name, lfirst(lc)) == 0)
			return true;
	}
	return false;
}

void
ujobs_lane_reload_definitions(void)
{
	List	   *paused = ujobs_dispatch_paused();

	for (int i = 0; i < n_lanes; i++)
	{
		load_definition(lanes[i]);
		lanes[i]->paused = is_among(lanes[i]->key.queue, paused);
	}
	list_free_deep(paused);
}

static void
lane_reread(UjobsLane *lane, TimestampTz now)
{
	ujobs_heap_clear(&lane->due);
	ujobs_heap_clear(&lane->timers);
	lane->more = false;
	lane->horizon = DT_NOEND;
	lane->cursor = (UjobsCursor) {PG_INT16_MIN, DT_NOBEGIN, PG_INT64_MIN};
	refill_due(lane, now);
	refill_timers(lane, now);
}

void
ujobs_lane_discover(TimestampTz now)
{
	UjobsLaneKey key = {PG_INT32_MIN, ""};
	int			known = n_lanes;
	List	   *paused = ujobs_dispatch_paused();

	while (ujobs_dispatch_next_lane(&key))
		(void) lane_of(&key);
	for (int i = known; i < n_lanes; i++)
	{
		load_definition(lanes[i]);
		lanes[i]->paused = is_among(lanes[i]->key.queue, paused);
		lane_reread(lanes[i], now);
	}
	list_free_deep(paused);
}

void
ujobs_lane_rescan(TimestampTz now)
{
	UjobsLaneKey key = {PG_INT32_MIN, ""};

	for (int i = 0; i < n_lanes; i++)
		lanes[i]->seen = false;
	while (ujobs_dispatch_next_lane(&key))
		lane_of(&key)->seen = true;
	ujobs_lane_reload_definitions();
	for (int i = 0; i < n_lanes; i++)
	{
		if (lanes[i]->seen)
			lane_reread(lanes[i], now);
		else
		{
			ujobs_heap_clear(&lanes[i]->due);
			ujobs_heap_clear(&lanes[i]->timers);
			forget_woken(lanes[i]);
			lanes[i]->more = false;
			lanes[i]->horizon = DT_NOEND;
		}
	}
}

TimestampTz
ujobs_lane_next(const UjobsLane *lane)
{
	const UjobsHeapItem *top = ujobs_heap_top(&lane->timers);

	return top ? Min(top->due_at, lane->horizon) : lane->horizon;
}
