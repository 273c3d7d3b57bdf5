/*
 * tenant_queue.c: step 3 of the walk: which tenant of a lane is served next.
 */
#include "postgres.h"

#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/hash.h"
#include "worker/dispatch/tenant_queue.h"

#define LEAST_WINDOW 16
#define LARGEST_WINDOW 1024		/* of a tenant */
#define REFILLS_AT_ONCE 32		/* then jobs are handed out */

static MemoryContext memory = NULL;
static HTAB *woken_ids = NULL;	/* of all tenant queues */
static pairingheap *timed;
static dlist_head wanting_rows = DLIST_STATIC_INIT(wanting_rows);
static int	n_tenants = 0;		/* tenant queues of tenants */
static int	n_blocked = 0;
static uint64 serves = 0;		/* so far */
static uint64 plain_served = 0; /* jobs without a tenant take part as if they had one */

/* A pairing heap has its greatest on top. */
static int
timed_compare(const pairingheap_node *a, const pairingheap_node *b, void *arg)
{
	TimestampTz x = pairingheap_const_container(UjobsTenantQueue, timed_node, a)->next;
	TimestampTz y = pairingheap_const_container(UjobsTenantQueue, timed_node, b)->next;

	return x < y ? 1 : x > y ? -1 : 0;
}

void
ujobs_tenant_queue_init(void)
{
	HASHCTL		ctl = {.keysize = sizeof(int64), .entrysize = sizeof(int64)};

	memory = AllocSetContextCreate(TopMemoryContext, "ujobs tenant queues", ALLOCSET_DEFAULT_SIZES);
	ctl.hcxt = memory;
	woken_ids = hash_create("ujobs woken jobs", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	timed = MemoryContextAllocZero(memory, sizeof(pairingheap));
	timed->ph_compare = timed_compare;
}

/* ---- which one is first ---- */

uint64
ujobs_tenant_queue_served_at(const UjobsTenantQueue *tq)
{
	return tq->cap != NULL ? tq->cap->served : plain_served;
}

void
ujobs_tenant_queue_serve(UjobsTenantQueue *tq)
{
	if (tq->cap != NULL)
		tq->cap->served = ++serves;
	else
		plain_served = ++serves;
}

static int
compare_first(const UjobsHeapItem *a, uint64 served_a, const UjobsHeapItem *b, uint64 served_b)
{
	if (a->priority != b->priority)
		return a->priority < b->priority ? -1 : 1;
	if (served_a != served_b)
		return served_a < served_b ? -1 : 1;
	return ujobs_heap_compare(UJOBS_HEAP_BY_URGENCY, a, b);
}

/* The order of a lane's heap, by what each was when it was placed. */
static int
ready_compare(const pairingheap_node *a, const pairingheap_node *b, void *arg)
{
	const UjobsTenantQueue *x = pairingheap_const_container(UjobsTenantQueue, ready_node, a);
	const UjobsTenantQueue *y = pairingheap_const_container(UjobsTenantQueue, ready_node, b);

	return -compare_first(&x->first, x->served, &y->first, y->served);
}

int
ujobs_tenant_queue_compare(const UjobsTenantQueue *a, const UjobsTenantQueue *b)
{
	return compare_first(ujobs_tenant_queue_top(a), ujobs_tenant_queue_served_at(a),
						 ujobs_tenant_queue_top(b), ujobs_tenant_queue_served_at(b));
}

/* ---- birth and end ---- */

UjobsTenantQueue *
ujobs_tenant_queue_create(UjobsLane *lane, uint64 tenant_hash, const char *tenant)
{
	UjobsTenantQueue *tq = MemoryContextAllocZero(memory, sizeof(UjobsTenantQueue));

	tq->lane = lane;
	tq->tenant_hash = tenant_hash;
	tq->tenant = tenant != NULL ? MemoryContextStrdup(memory, tenant) : NULL;
	tq->next = DT_NOEND;
	ujobs_window_init(&tq->window, memory);
	ujobs_heap_init(&tq->woken, UJOBS_HEAP_BY_URGENCY, memory);
	lane->ready.ph_compare = ready_compare;
	if (tenant_hash != 0)
	{
		tq->cap = ujobs_limit_cap(UJOBS_CAP_TENANT, lane->queue_hash, tenant_hash);
		tq->cap->users++;
		n_tenants++;
	}
	return tq;
}

int
ujobs_tenant_queue_count(void)
{
	return n_tenants;
}

static void
know_tenant(UjobsTenantQueue *tq, const char *tenant)
{
	if (tq->tenant == NULL)
		tq->tenant = MemoryContextStrdup(memory, tenant);
}

bool
ujobs_tenant_queue_is_empty(const UjobsTenantQueue *tq)
{
	return ujobs_window_is_empty(&tq->window) && tq->woken.size == 0 && !tq->stale;
}

/* ---- its place in the lane ---- */

static void
set_wants_rows(UjobsTenantQueue *tq, bool wants)
{
	if (tq->wants_rows == wants)
		return;
	tq->wants_rows = wants;
	if (wants)
		dlist_push_tail(&wanting_rows, &tq->wants_rows_node);
	else
		dlist_delete(&tq->wants_rows_node);
}

static void
leave_place(UjobsTenantQueue *tq)
{
	if (tq->ready)
		pairingheap_remove(&tq->lane->ready, &tq->ready_node);
	tq->ready = false;
	tq->lane->waiting -= tq->counted;
	tq->counted = 0;
	if (tq->blocked)
	{
		dlist_delete(&tq->blocked_node);
		n_blocked--;
	}
	tq->blocked = false;
}

static void
take_place(UjobsTenantQueue *tq)
{
	const UjobsHeapItem *top = ujobs_tenant_queue_top(tq);

	if (top == NULL)
		return;
	tq->first = *top;
	tq->served = ujobs_tenant_queue_served_at(tq);
	tq->ready = true;
	pairingheap_add(&tq->lane->ready, &tq->ready_node);
	tq->counted = ujobs_tenant_queue_waiting(tq);
	tq->lane->waiting += tq->counted;
}

static int
window_size(const UjobsTenantQueue *tq)
{
	if (tq->cap == NULL)
		return UJOBS_PLAIN_WINDOW;
	return Max(LEAST_WINDOW, Min(LARGEST_WINDOW, UJOBS_TENANT_WINDOWS / n_tenants));
}

static void
set_time(UjobsTenantQueue *tq)
{
	TimestampTz next = ujobs_window_next(&tq->window);

	if (tq->timed && tq->next == next)
		return;
	if (tq->timed)
		pairingheap_remove(timed, &tq->timed_node);
	tq->next = next;
	tq->timed = next != DT_NOEND;
	if (tq->timed)
		pairingheap_add(timed, &tq->timed_node);
}

static void
set_wants(UjobsTenantQueue *tq)
{
	set_wants_rows(tq, tq->stale || ujobs_window_wants_due(&tq->window, window_size(tq)));
	set_time(tq);
}

void
ujobs_tenant_queue_place(UjobsTenantQueue *tq)
{
	leave_place(tq);
	take_place(tq);
	set_wants(tq);
}

static void
block(UjobsTenantQueue *tq)
{
	leave_place(tq);
	tq->blocked = true;
	dlist_push_tail(&tq->cap->waiting, &tq->blocked_node);
	n_blocked++;
}

int
ujobs_tenant_queue_blocked(void)
{
	return n_blocked;
}

void
ujobs_tenant_queue_unblock(TimestampTz now)
{
	UjobsCap   *cap;

	while ((cap = ujobs_limit_next_freed(now)) != NULL)
	{
		while (!dlist_is_empty(&cap->waiting))
			ujobs_tenant_queue_place(
				dlist_container(UjobsTenantQueue, blocked_node, dlist_head_node(&cap->waiting)));
	}
}

UjobsTenantQueue *
ujobs_tenant_queue_best(UjobsLane *lane, TimestampTz now)
{
	while (!pairingheap_is_empty(&lane->ready))
	{
		UjobsTenantQueue *tq = pairingheap_container(UjobsTenantQueue, ready_node,
													 pairingheap_first(&lane->ready));

		if (tq->served != ujobs_tenant_queue_served_at(tq))
			ujobs_tenant_queue_place(tq);	/* its tenant was served elsewhere meanwhile */
		else if (tq->cap != NULL && !ujobs_limit_rate_allows(tq->cap, now))
		{
			ujobs_limit_watch_rate(tq->cap, now);
			block(tq);
		}
		else if (tq->cap != NULL && !ujobs_limit_is_free(tq->cap))
			block(tq);
		else
			return tq;
	}
	return NULL;
}

void
ujobs_tenant_queue_free(UjobsTenantQueue *tq)
{
	Assert(tq->holders == 0);
	leave_place(tq);
	set_wants_rows(tq, false);
	if (tq->timed)
		pairingheap_remove(timed, &tq->timed_node);
	if (tq->cap != NULL)
	{
		tq->cap->users--;
		n_tenants--;
	}
	ujobs_window_free(&tq->window);
	ujobs_heap_free(&tq->woken);
	if (tq->tenant != NULL)
		pfree(tq->tenant);
	pfree(tq);
}

void
ujobs_tenant_queue_mark_seen(UjobsTenantQueue *tq, const char *tenant)
{
	tq->seen = tq->stale = true;
	know_tenant(tq, tenant);
	ujobs_tenant_queue_place(tq);
}

/* ---- jobs come and go ---- */

static void
add_woken(UjobsTenantQueue *tq, UjobsHeapItem item)
{
	bool		found;

	(void) hash_search(woken_ids, &item.id, HASH_ENTER, &found);
	if (!found)
		ujobs_heap_push(&tq->woken, item);
}

static void
forget_woken(UjobsTenantQueue *tq)
{
	for (int i = 0; i < tq->woken.size; i++)
		(void) hash_search(woken_ids, &tq->woken.item[i].id, HASH_REMOVE, NULL);
	ujobs_heap_clear(&tq->woken);
}

static bool
woken_is_first(const UjobsTenantQueue *tq)
{
	const UjobsHeapItem *due = ujobs_heap_top(&tq->window.due);
	const UjobsHeapItem *woken = ujobs_heap_top(&tq->woken);

	if (due == NULL || woken == NULL)
		return due == NULL;
	return ujobs_heap_compare(UJOBS_HEAP_BY_URGENCY, woken, due) < 0;
}

const UjobsHeapItem *
ujobs_tenant_queue_top(const UjobsTenantQueue *tq)
{
	return ujobs_heap_top(woken_is_first(tq) ? &tq->woken : &tq->window.due);
}

UjobsHeapItem
ujobs_tenant_queue_pop(UjobsTenantQueue *tq)
{
	UjobsHeapItem item;

	Assert(ujobs_tenant_queue_waiting(tq) > 0);
	if (!woken_is_first(tq))
		return ujobs_heap_pop(&tq->window.due);
	item = ujobs_heap_pop(&tq->woken);
	(void) hash_search(woken_ids, &item.id, HASH_REMOVE, NULL);
	return item;
}

static void
add(UjobsTenantQueue *tq, UjobsHeapItem item, TimestampTz now)
{
	if (item.due_at > now)
		ujobs_window_add_timer(&tq->window, item, window_size(tq));
	else if (item.woken)
		add_woken(tq, item);
	else
		ujobs_window_add_due(&tq->window, item, window_size(tq));
}

/* Most new jobs come behind others, and their tenant queue stays where it is. */
static bool
keeps_place(UjobsTenantQueue *tq)
{
	const UjobsHeapItem *top;
	int			waiting = ujobs_tenant_queue_waiting(tq);

	if (tq->blocked)
		return true;
	if (!tq->ready)
		return waiting == 0;
	top = ujobs_tenant_queue_top(tq);
	if (top == NULL || top->id != tq->first.id)
		return false;
	tq->lane->waiting += waiting - tq->counted;
	tq->counted = waiting;
	return true;
}

void
ujobs_tenant_queue_add(UjobsTenantQueue *tq, UjobsHeapItem item, TimestampTz now)
{
	tq->some_id = item.id;
	add(tq, item, now);
	if (keeps_place(tq))
		set_wants(tq);
	else
		ujobs_tenant_queue_place(tq);
}

void
ujobs_tenant_queue_add_range(UjobsTenantQueue *tq, UjobsHeapItem first, TimestampTz now)
{
	tq->some_id = first.id;
	ujobs_window_add_range(&tq->window, first, now);
	ujobs_tenant_queue_place(tq);
}

static void
fire(UjobsTenantQueue *tq, TimestampTz now)
{
	UjobsHeapItem item;

	while (ujobs_window_pop_timer(&tq->window, now, &item))
		add(tq, item, now);
}

/* ---- reading rows ---- */

/* The tenant's name where hints told only its hash.  False: no row of it is left that is known. */
static bool
find_key(UjobsTenantQueue *tq, UjobsLaneKey *key)
{
	if (tq->tenant == NULL)
	{
		char	   *name = ujobs_dispatch_tenant_of(tq->some_id);

		if (name == NULL || ujobs_hash_tenant(name) != tq->tenant_hash)
			return false;
		know_tenant(tq, name);
	}
	*key = tq->lane->key;
	key->tenant = tq->tenant;
	return true;
}

static void
read_due(UjobsTenantQueue *tq, const UjobsLaneKey *key, TimestampTz now)
{
	int			size = window_size(tq);
	UjobsHeapItem *rows = palloc(size * sizeof(UjobsHeapItem));
	int			n = ujobs_dispatch_due(key, &tq->window.cursor, now, rows, size);

	tq->window.more = n == size;
	for (int i = 0; i < n; i++)
		ujobs_heap_push(&tq->window.due, rows[i]);
	pfree(rows);
}

static void
read_timers(UjobsTenantQueue *tq, const UjobsLaneKey *key, TimestampTz now)
{
	TimestampTz horizon;
	int			size = window_size(tq);
	List	   *rows = ujobs_dispatch_future(key, now, size, &horizon);
	ListCell   *lc;

	ujobs_heap_clear(&tq->window.timers);
	tq->window.horizon = horizon;
	foreach(lc, rows)
		ujobs_window_add_timer(&tq->window, *(UjobsHeapItem *) lfirst(lc), size);
	list_free_deep(rows);
}

static void
read_both(UjobsTenantQueue *tq, const UjobsLaneKey *key, TimestampTz now)
{
	tq->window.cursor = (UjobsCursor) {PG_INT16_MIN, DT_NOBEGIN, PG_INT64_MIN};
	read_due(tq, key, now);
	read_timers(tq, key, now);
}

/* Few rows, as most tenants have: all of them at once.  False when they are more. */
static bool
read_few(UjobsTenantQueue *tq, const UjobsLaneKey *key, TimestampTz now)
{
	int			max = window_size(tq);
	UjobsHeapItem *rows = palloc(max * sizeof(UjobsHeapItem));
	int			n = ujobs_dispatch_tenant_rows(key, rows, max);

	for (int i = 0; i < n && n < max; i++)
		add(tq, rows[i], now);
	pfree(rows);
	return n < max;
}

void
ujobs_tenant_queue_clear(UjobsTenantQueue *tq)
{
	ujobs_window_clear(&tq->window);
	forget_woken(tq);
	tq->stale = false;
	ujobs_tenant_queue_place(tq);
}

void
ujobs_tenant_queue_reread(UjobsTenantQueue *tq, TimestampTz now)
{
	UjobsLaneKey key;

	tq->stale = false;
	if (find_key(tq, &key))
	{
		ujobs_window_clear(&tq->window);
		if (tq->cap == NULL || !read_few(tq, &key, now))
			read_both(tq, &key, now);
	}
	ujobs_tenant_queue_place(tq);
}

static void
refill(UjobsTenantQueue *tq, TimestampTz now)
{
	UjobsLaneKey key;

	if (tq->stale)
	{
		ujobs_tenant_queue_reread(tq, now);
		return;
	}
	/* Before the timers are read anew, those that came due must not be lost. */
	fire(tq, now);
	if (!find_key(tq, &key))
	{
		/* Its rows are gone; should there be others, a rescan finds them. */
		tq->window.more = false;
		tq->window.horizon = DT_NOEND;
	}
	else if (tq->window.horizon <= now)
	{
		/* Rows that came due behind the old horizon were in neither heap. */
		ujobs_heap_clear(&tq->window.due);
		read_both(tq, &key, now);
	}
	else
	{
		if (ujobs_window_wants_due(&tq->window, window_size(tq)))
			read_due(tq, &key, now);
		if (ujobs_window_wants_timers(&tq->window))
			read_timers(tq, &key, now);
	}
	ujobs_tenant_queue_place(tq);
}

/* ---- all of them ---- */

void
ujobs_tenant_queue_fire_all(TimestampTz now)
{
	while (!pairingheap_is_empty(timed))
	{
		UjobsTenantQueue *tq = pairingheap_container(UjobsTenantQueue, timed_node,
													 pairingheap_first(timed));

		if (tq->next > now)
			break;
		fire(tq, now);
		if (!keeps_place(tq))
			ujobs_tenant_queue_place(tq);
		/* With what is left it wants rows from disk: until it has them there is nothing to time. */
		set_time(tq);
		if (tq->timed && tq->next <= now)
		{
			pairingheap_remove(timed, &tq->timed_node);
			tq->timed = false;
			set_wants_rows(tq, true);
		}
	}
}

bool
ujobs_tenant_queue_wants_rows(void)
{
	return !dlist_is_empty(&wanting_rows);
}

void
ujobs_tenant_queue_refill_some(TimestampTz now)
{
	for (int left = REFILLS_AT_ONCE; left > 0 && !dlist_is_empty(&wanting_rows); left--)
	{
		UjobsTenantQueue *tq = dlist_container(UjobsTenantQueue, wants_rows_node,
											   dlist_pop_head_node(&wanting_rows));

		tq->wants_rows = false;
		refill(tq, now);
	}
}

TimestampTz
ujobs_tenant_queue_next(void)
{
	if (!dlist_is_empty(&wanting_rows))
		return 0;
	if (pairingheap_is_empty(timed))
		return DT_NOEND;
	return pairingheap_container(UjobsTenantQueue, timed_node, pairingheap_first(timed))->next;
}
