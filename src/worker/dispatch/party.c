/*
 * party.c: windows on rows, one pair per definition, queue and tenant.
 */
#include "postgres.h"

#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "worker/dispatch/lane.h"
#include "worker/dispatch/party.h"

#define LEAST_WINDOW 16
#define LARGEST_WINDOW 1024		/* of a tenant */
#define REFILLS_AT_ONCE 32		/* then jobs are handed out */

static MemoryContext memory = NULL;
static HTAB *woken_ids = NULL;	/* of all parties */
static pairingheap *timed;
static dlist_head low = DLIST_STATIC_INIT(low);
static int	n_parties = 0;		/* of tenants */
static int	n_blocked = 0;

static int
timed_compare(const pairingheap_node *a, const pairingheap_node *b, void *arg)
{
	TimestampTz x = pairingheap_const_container(UjobsParty, timed_node, a)->next;
	TimestampTz y = pairingheap_const_container(UjobsParty, timed_node, b)->next;

	return x < y ? 1 : x > y ? -1 : 0;
}

void
ujobs_party_init(void)
{
	HASHCTL		ctl = {.keysize = sizeof(int64), .entrysize = sizeof(int64)};

	memory = AllocSetContextCreate(TopMemoryContext, "ujobs parties", ALLOCSET_DEFAULT_SIZES);
	ctl.hcxt = memory;
	woken_ids = hash_create("ujobs woken jobs", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	timed = MemoryContextAllocZero(memory, sizeof(pairingheap));
	timed->ph_compare = timed_compare;
}

int
ujobs_party_count(void)
{
	return n_parties;
}

UjobsParty *
ujobs_party_create(UjobsLane *lane, uint64 tenant_hash, const char *tenant)
{
	UjobsParty *party = MemoryContextAllocZero(memory, sizeof(UjobsParty));

	party->lane = lane;
	party->tenant_hash = tenant_hash;
	party->tenant = tenant != NULL ? MemoryContextStrdup(memory, tenant) : NULL;
	party->horizon = DT_NOEND;
	party->next = DT_NOEND;
	ujobs_heap_init(&party->due, UJOBS_HEAP_BY_URGENCY, memory);
	ujobs_heap_init(&party->timers, UJOBS_HEAP_BY_TIME, memory);
	ujobs_heap_init(&party->woken, UJOBS_HEAP_BY_URGENCY, memory);
	if (tenant_hash != 0)
	{
		party->cap = ujobs_limit_cap(UJOBS_CAP_TENANT, lane->queue_hash, tenant_hash);
		party->cap->users++;
		n_parties++;
	}
	return party;
}

void
ujobs_party_know(UjobsParty *party, const char *tenant)
{
	if (party->tenant == NULL)
		party->tenant = MemoryContextStrdup(memory, tenant);
}

bool
ujobs_party_is_empty(const UjobsParty *party)
{
	return party->due.size + party->timers.size + party->woken.size == 0 && !party->more &&
		party->horizon == DT_NOEND && !party->stale;
}

/* ---- its place in the lane ---- */

static void
set_low(UjobsParty *party, bool is_low)
{
	if (party->low == is_low)
		return;
	party->low = is_low;
	if (is_low)
		dlist_push_tail(&low, &party->low_node);
	else
		dlist_delete(&party->low_node);
}

static void
leave_place(UjobsParty *party)
{
	if (party->ready)
		pairingheap_remove(&party->lane->ready, &party->ready_node);
	party->ready = false;
	party->lane->waiting -= party->counted;
	party->counted = 0;
	if (party->blocked)
	{
		dlist_delete(&party->blocked_node);
		n_blocked--;
	}
	party->blocked = false;
}

static void
take_place(UjobsParty *party)
{
	const UjobsHeapItem *top = ujobs_party_top(party);

	if (top == NULL)
		return;
	party->first = *top;
	party->turn = ujobs_party_turn(party);
	party->ready = true;
	pairingheap_add(&party->lane->ready, &party->ready_node);
	party->counted = ujobs_party_waiting(party);
	party->lane->waiting += party->counted;
}

static int
window_of(const UjobsParty *party)
{
	if (party->cap == NULL)
		return UJOBS_PARTY_WINDOW;
	return Max(LEAST_WINDOW, Min(LARGEST_WINDOW, UJOBS_PARTY_WINDOWS / n_parties));
}

static bool
is_low(const UjobsParty *party)
{
	return party->stale || (party->more && party->due.size < window_of(party) / 4);
}

/* Its timers, or when the rows beyond them are due. */
static void
set_time(UjobsParty *party)
{
	const UjobsHeapItem *top = ujobs_heap_top(&party->timers);
	TimestampTz next = top ? Min(top->due_at, party->horizon) : party->horizon;

	/* A window without timers is filled before its horizon. */
	if (top == NULL && next != DT_NOEND)
		next = 0;
	if (party->timed && party->next == next)
		return;
	if (party->timed)
		pairingheap_remove(timed, &party->timed_node);
	party->next = next;
	party->timed = next != DT_NOEND;
	if (party->timed)
		pairingheap_add(timed, &party->timed_node);
}

void
ujobs_party_place(UjobsParty *party)
{
	leave_place(party);
	take_place(party);
	set_low(party, is_low(party));
	set_time(party);
}

void
ujobs_party_block(UjobsParty *party)
{
	leave_place(party);
	party->blocked = true;
	dlist_push_tail(&party->cap->waiting, &party->blocked_node);
	n_blocked++;
}

int
ujobs_party_blocked(void)
{
	return n_blocked;
}

void
ujobs_party_unblock(TimestampTz now)
{
	UjobsCap   *cap;

	while ((cap = ujobs_limit_next_freed(now)) != NULL)
	{
		while (!dlist_is_empty(&cap->waiting))
			ujobs_party_place(dlist_container(UjobsParty, blocked_node, dlist_head_node(&cap->waiting)));
	}
}

void
ujobs_party_free(UjobsParty *party)
{
	leave_place(party);
	set_low(party, false);
	if (party->timed)
		pairingheap_remove(timed, &party->timed_node);
	if (party->cap != NULL)
	{
		party->cap->users--;
		n_parties--;
	}
	ujobs_heap_free(&party->due);
	ujobs_heap_free(&party->timers);
	ujobs_heap_free(&party->woken);
	if (party->tenant != NULL)
		pfree(party->tenant);
	pfree(party);
}

/* ---- windows ---- */

/* Is the row beyond what the window holds?  Then disk has it. */
static bool
beyond_cursor(const UjobsParty *party, const UjobsHeapItem *item)
{
	UjobsHeapItem last = {party->cursor.id, party->cursor.due_at, party->cursor.priority};

	return party->more && ujobs_heap_compare(UJOBS_HEAP_BY_URGENCY, item, &last) > 0;
}

static void
add_due(UjobsParty *party, UjobsHeapItem item)
{
	if (beyond_cursor(party, &item))
		return;
	ujobs_heap_push(&party->due, item);
	if (party->due.size > 2 * window_of(party))
	{
		UjobsHeapItem last = ujobs_heap_trim(&party->due, window_of(party));

		party->cursor = (UjobsCursor) {last.priority, last.due_at, last.id};
		party->more = true;
	}
}

static void
add_timer(UjobsParty *party, UjobsHeapItem item)
{
	/* A woken one is on no disk; if a window loses it, the next look at all waits finds it. */
	if ((item.due_at > party->horizon && !item.woken) || TIMESTAMP_NOT_FINITE(item.due_at))
		return;
	ujobs_heap_push(&party->timers, item);
	if (party->timers.size > 2 * window_of(party))
		party->horizon = ujobs_heap_trim(&party->timers, window_of(party)).due_at;
}

static void
add_woken(UjobsParty *party, UjobsHeapItem item)
{
	bool		found;

	(void) hash_search(woken_ids, &item.id, HASH_ENTER, &found);
	if (!found)
		ujobs_heap_push(&party->woken, item);
}

static void
forget_woken(UjobsParty *party)
{
	for (int i = 0; i < party->woken.size; i++)
		(void) hash_search(woken_ids, &party->woken.item[i].id, HASH_REMOVE, NULL);
	ujobs_heap_clear(&party->woken);
}

static bool
woken_is_first(const UjobsParty *party)
{
	if (party->due.size == 0 || party->woken.size == 0)
		return party->due.size == 0;
	return ujobs_heap_compare(UJOBS_HEAP_BY_URGENCY, ujobs_heap_top(&party->woken),
							  ujobs_heap_top(&party->due)) < 0;
}

const UjobsHeapItem *
ujobs_party_top(const UjobsParty *party)
{
	return ujobs_heap_top(woken_is_first(party) ? &party->woken : &party->due);
}

UjobsHeapItem
ujobs_party_pop(UjobsParty *party)
{
	UjobsHeapItem item;

	if (!woken_is_first(party))
		return ujobs_heap_pop(&party->due);
	item = ujobs_heap_pop(&party->woken);
	(void) hash_search(woken_ids, &item.id, HASH_REMOVE, NULL);
	return item;
}

static void
add(UjobsParty *party, UjobsHeapItem item, TimestampTz now)
{
	if (item.due_at > now)
		add_timer(party, item);
	else if (item.woken)
		add_woken(party, item);
	else
		add_due(party, item);
}

/* Most new jobs stand behind others, and their party stays where it is. */
static bool
keeps_place(UjobsParty *party)
{
	const UjobsHeapItem *top;
	int			waiting = ujobs_party_waiting(party);

	if (party->blocked)
		return true;
	if (!party->ready)
		return waiting == 0;
	top = ujobs_party_top(party);
	if (top == NULL || top->id != party->first.id)
		return false;
	party->lane->waiting += waiting - party->counted;
	party->counted = waiting;
	return true;
}

void
ujobs_party_add(UjobsParty *party, UjobsHeapItem item, TimestampTz now)
{
	party->some_id = item.id;
	add(party, item, now);
	if (!keeps_place(party))
	{
		ujobs_party_place(party);
		return;
	}
	set_low(party, is_low(party));
	set_time(party);
}

/* What the window holds beyond its cursor is read again, in order. */
static void
forget_beyond_cursor(UjobsParty *party)
{
	int			size = party->due.size;

	party->due.size = 0;
	for (int i = 0; i < size; i++)
	{
		UjobsHeapItem item = party->due.item[i];

		if (!beyond_cursor(party, &item))
			ujobs_heap_push(&party->due, item);
	}
}

void
ujobs_party_range(UjobsParty *party, UjobsHeapItem first, TimestampTz now)
{
	party->some_id = first.id;
	if (first.due_at > now)
		party->horizon = Min(party->horizon, first.due_at - 1);
	else if (!beyond_cursor(party, &first))
	{
		party->cursor = (UjobsCursor) {first.priority, first.due_at, first.id - 1};
		party->more = true;
		forget_beyond_cursor(party);
	}
	ujobs_party_place(party);
}

static void
fire(UjobsParty *party, TimestampTz now)
{
	while (party->timers.size > 0 && ujobs_heap_top(&party->timers)->due_at <= now)
		add(party, ujobs_heap_pop(&party->timers), now);
}

/* ---- reading ---- */

/* The name of a tenant that hints told by its hash only.  False: no row of it is left that is known. */
static bool
know_name(UjobsParty *party, UjobsLaneKey *key)
{
	if (party->tenant == NULL)
	{
		char	   *name = ujobs_dispatch_tenant_of(party->some_id);

		if (name == NULL || ujobs_tenant_hash(name) != party->tenant_hash)
			return false;
		ujobs_party_know(party, name);
	}
	*key = party->lane->key;
	key->tenant = party->tenant;
	return true;
}

static void
refill_due(UjobsParty *party, const UjobsLaneKey *key, TimestampTz now)
{
	int			window = window_of(party);
	UjobsHeapItem *rows = palloc(window * sizeof(UjobsHeapItem));
	int			n = ujobs_dispatch_due(key, &party->cursor, now, rows, window);

	party->more = n == window;
	for (int i = 0; i < n; i++)
		ujobs_heap_push(&party->due, rows[i]);
	pfree(rows);
}

static void
refill_timers(UjobsParty *party, const UjobsLaneKey *key, TimestampTz now)
{
	TimestampTz horizon;
	List	   *rows = ujobs_dispatch_future(key, now, window_of(party), &horizon);
	ListCell   *lc;

	ujobs_heap_clear(&party->timers);
	party->horizon = horizon;
	foreach(lc, rows)
		add_timer(party, *(UjobsHeapItem *) lfirst(lc));
	list_free_deep(rows);
}

static void
read_both(UjobsParty *party, const UjobsLaneKey *key, TimestampTz now)
{
	party->cursor = (UjobsCursor) {PG_INT16_MIN, DT_NOBEGIN, PG_INT64_MIN};
	refill_due(party, key, now);
	refill_timers(party, key, now);
}

/* Few rows, as most tenants have: all of them at once.  False when they are more. */
static bool
read_few(UjobsParty *party, const UjobsLaneKey *key, TimestampTz now)
{
	int			max = window_of(party);
	UjobsHeapItem *rows = palloc(max * sizeof(UjobsHeapItem));
	int			n = ujobs_dispatch_tenant_rows(key, rows, max);

	for (int i = 0; i < n && n < max; i++)
		add(party, rows[i], now);
	pfree(rows);
	return n < max;
}

void
ujobs_party_clear(UjobsParty *party)
{
	ujobs_heap_clear(&party->due);
	ujobs_heap_clear(&party->timers);
	forget_woken(party);
	party->more = party->stale = false;
	party->horizon = DT_NOEND;
	ujobs_party_place(party);
}

void
ujobs_party_reread(UjobsParty *party, TimestampTz now)
{
	UjobsLaneKey key;

	party->stale = false;
	if (know_name(party, &key))
	{
		ujobs_heap_clear(&party->due);
		ujobs_heap_clear(&party->timers);
		party->more = false;
		party->horizon = DT_NOEND;
		if (party->cap == NULL || !read_few(party, &key, now))
			read_both(party, &key, now);
	}
	ujobs_party_place(party);
}

static void
refill(UjobsParty *party, TimestampTz now)
{
	UjobsLaneKey key;

	if (party->stale)
	{
		ujobs_party_reread(party, now);
		return;
	}
	/* Before the timers are read anew, those that came due must not be lost. */
	fire(party, now);
	if (!know_name(party, &key))
	{
		/* Its rows are gone; should there be others, a rescan finds them. */
		party->more = false;
		party->horizon = DT_NOEND;
	}
	else if (party->horizon <= now)
	{
		/* Rows that came due behind the old horizon were in neither window. */
		ujobs_heap_clear(&party->due);
		read_both(party, &key, now);
	}
	else
	{
		if (party->more && party->due.size < window_of(party) / 4)
			refill_due(party, &key, now);
		if (party->horizon != DT_NOEND && party->timers.size == 0)
			refill_timers(party, &key, now);
	}
	ujobs_party_place(party);
}

/* ---- all of them ---- */

void
ujobs_party_fire_all(TimestampTz now)
{
	while (!pairingheap_is_empty(timed))
	{
		UjobsParty *party = pairingheap_container(UjobsParty, timed_node, pairingheap_first(timed));

		if (party->next > now)
			break;
		fire(party, now);
		if (!keeps_place(party))
			ujobs_party_place(party);
		/* With what is left it wants rows from disk: until it has them there is nothing to time. */
		set_time(party);
		if (party->timed && party->next <= now)
		{
			pairingheap_remove(timed, &party->timed_node);
			party->timed = false;
			set_low(party, true);
		}
	}
}

bool
ujobs_party_refill_all(TimestampTz now, void (*begin) (void))
{
	int			left = REFILLS_AT_ONCE;

	if (dlist_is_empty(&low))
		return false;
	begin();
	while (left-- > 0 && !dlist_is_empty(&low))
	{
		UjobsParty *party = dlist_container(UjobsParty, low_node, dlist_pop_head_node(&low));

		party->low = false;
		refill(party, now);
	}
	return true;
}

TimestampTz
ujobs_party_next(void)
{
	if (!dlist_is_empty(&low))
		return 0;
	if (pairingheap_is_empty(timed))
		return DT_NOEND;
	return pairingheap_container(UjobsParty, timed_node, pairingheap_first(timed))->next;
}
