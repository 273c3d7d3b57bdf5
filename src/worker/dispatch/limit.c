/*
 * limit.c: step 3 of the walk: units of limits.
 */
#include "postgres.h"

#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/hash.h"
#include "worker/dispatch/limit.h"

static UjobsArea *area;
static MemoryContext memory;
static HTAB *caps;
static int	limited[UJOBS_CAP_KINDS];	/* how many have a limit; of tenants: queues that give them one */
static bool changed = false;
static dlist_head freed = DLIST_STATIC_INIT(freed);
static pairingheap *watch;
static int	first_place = 0;	/* none before it is free in area->caps */

/* A pairing heap has its greatest on top. */
static int
later_first(const pairingheap_node *a, const pairingheap_node *b, void *arg)
{
	TimestampTz x = pairingheap_const_container(UjobsCap, watch_node, a)->watch_at;
	TimestampTz y = pairingheap_const_container(UjobsCap, watch_node, b)->watch_at;

	return x < y ? 1 : x > y ? -1 : 0;
}

void
ujobs_limit_init(UjobsArea *my_area)
{
	HASHCTL		ctl = {.keysize = sizeof(UjobsCapKey), .entrysize = sizeof(UjobsCap)};

	area = my_area;
	memory = AllocSetContextCreate(TopMemoryContext, "ujobs limits", ALLOCSET_DEFAULT_SIZES);
	ctl.hcxt = memory;
	caps = hash_create("ujobs limits", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	watch = MemoryContextAllocZero(memory, sizeof(pairingheap));
	watch->ph_compare = later_first;
	memset(area->caps, 0, sizeof(area->caps));
}

UjobsCap *
ujobs_limit_cap(UjobsCapKind kind, uint32 of, uint64 tenant)
{
	UjobsCapKey key = {kind, of, tenant};
	bool		found;
	UjobsCap   *cap = hash_search(caps, &key, HASH_ENTER, &found);

	if (found)
		return cap;
	memset(cap, 0, sizeof(*cap));
	cap->key = key;
	cap->shown = -1;
	dlist_init(&cap->waiting);
	if (kind == UJOBS_CAP_TENANT)
	{
		cap->queue = ujobs_limit_cap(UJOBS_CAP_QUEUE, of, 0);
		cap->queue->users++;
		cap->limit = cap->queue->per_tenant;
	}
	return cap;
}

static UjobsCap *
find(UjobsCapKind kind, uint32 of, uint64 tenant)
{
	UjobsCapKey key = {kind, of, tenant};

	return hash_search(caps, &key, HASH_FIND, NULL);
}

/* ---- for those who ask why ---- */

static void
hide(UjobsCap *cap)
{
	if (cap->shown < 0)
		return;
	area->caps[cap->shown].kind = 0;
	first_place = Min(first_place, cap->shown);
	cap->shown = -1;
}

static bool
find_place(UjobsCap *cap)
{
	while (first_place < UJOBS_CAPS_SHOWN && area->caps[first_place].kind != 0)
		first_place++;
	if (first_place == UJOBS_CAPS_SHOWN)
		return false;
	cap->shown = first_place;
	return true;
}

void
ujobs_limit_show(UjobsCap *cap)
{
	UjobsCapShown *shown;

	if ((ujobs_limit_used(cap) == 0 || cap->limit == 0) && !cap->watched)
	{
		hide(cap);
		return;
	}
	if (cap->shown < 0 && !find_place(cap))
		return;					/* too many at a time: why() will know less */
	shown = &area->caps[cap->shown];
	shown->of = cap->key.of;
	shown->tenant_hash = cap->key.tenant;
	shown->used = ujobs_limit_used(cap);
	shown->until = cap->watched ? cap->watch_at : 0;
	shown->kind = cap->key.kind + 1;
}

/* ---- rates ---- */

bool
ujobs_limit_rate_allows(UjobsCap *cap, TimestampTz now)
{
	return !ujobs_limit_has_rate(cap) ||
		   ujobs_rate_allows(&cap->rate, &cap->queue->rate_limit, now);
}

static void
set_freed(UjobsCap *cap)
{
	if (cap->freed || dlist_is_empty(&cap->waiting))
		return;
	cap->freed = true;
	dlist_push_tail(&freed, &cap->freed_node);
}

static void
unwatch(UjobsCap *cap)
{
	if (!cap->watched)
		return;
	pairingheap_remove(watch, &cap->watch_node);
	cap->watched = false;
	ujobs_limit_show(cap);
}

void
ujobs_limit_watch_rate(UjobsCap *cap, TimestampTz now)
{
	TimestampTz next = ujobs_rate_next(&cap->rate, &cap->queue->rate_limit, now);

	if (cap->watched && cap->watch_at == next)
		return;
	unwatch(cap);
	cap->watch_at = next;
	cap->watched = true;
	pairingheap_add(watch, &cap->watch_node);
	ujobs_limit_show(cap);
}

/* A tenant at its rate is watched although no job may wait yet: why() tells. */
static void
follow_rate(UjobsCap *cap, TimestampTz now)
{
	if (ujobs_limit_rate_allows(cap, now))
		unwatch(cap);
	else
		ujobs_limit_watch_rate(cap, now);
}

void
ujobs_limit_rate_give(UjobsCap *cap)
{
	Assert(ujobs_limit_has_rate(cap));
	cap->rate.pending++;
	follow_rate(cap, GetCurrentTimestamp());
}

void
ujobs_limit_rate_began(const UjobsTicket *ticket, TimestampTz at)
{
	UjobsCap   *cap = find(UJOBS_CAP_TENANT, ticket->queue_hash, ticket->tenant_hash);

	if (cap == NULL || cap->rate.pending == 0)
		return;
	cap->rate.pending--;
	if (ujobs_limit_has_rate(cap))
		ujobs_rate_start(&cap->rate, &cap->queue->rate_limit, at, memory);
	follow_rate(cap, GetCurrentTimestamp());
	set_freed(cap);				/* when they may try again is known better now */
}

void
ujobs_limit_rate_back(const UjobsTicket *ticket)
{
	UjobsCap   *cap = find(UJOBS_CAP_TENANT, ticket->queue_hash, ticket->tenant_hash);

	if (cap == NULL || cap->rate.pending == 0)
		return;
	cap->rate.pending--;
	follow_rate(cap, GetCurrentTimestamp());
	set_freed(cap);
}

TimestampTz
ujobs_limit_next(void)
{
	if (!dlist_is_empty(&freed))
		return 0;
	if (pairingheap_is_empty(watch))
		return DT_NOEND;
	return pairingheap_container(UjobsCap, watch_node, pairingheap_first(watch))->watch_at;
}

UjobsCap *
ujobs_limit_next_freed(TimestampTz now)
{
	UjobsCap   *cap;

	while (!pairingheap_is_empty(watch))
	{
		cap = pairingheap_container(UjobsCap, watch_node, pairingheap_first(watch));
		if (cap->watch_at > now)
			break;
		unwatch(cap);
		follow_rate(cap, now);	/* a rate that was lowered may allow nothing still */
		set_freed(cap);
	}
	if (dlist_is_empty(&freed))
		return NULL;
	cap = dlist_container(UjobsCap, freed_node, dlist_pop_head_node(&freed));
	cap->freed = false;
	return cap;
}

/* ---- units ---- */

void
ujobs_limit_take_executor(UjobsCap *cap)
{
	cap->executors++;
	ujobs_limit_show(cap);
}

void
ujobs_limit_return_executor(UjobsCap *cap)
{
	Assert(cap->executors > 0);
	cap->executors--;
	if (ujobs_limit_is_free(cap))
		set_freed(cap);
	ujobs_limit_show(cap);
}

static void
add_outside(UjobsCap *cap, int n)
{
	cap->outside += n;
	Assert(cap->outside >= 0);
	if (n < 0 && ujobs_limit_is_free(cap))
		set_freed(cap);
	ujobs_limit_show(cap);
}

static void
count_outside(const UjobsTicket *ticket, int n)
{
	add_outside(ujobs_limit_cap(UJOBS_CAP_DEFINITION, ticket->definition_id, 0), n);
	add_outside(ujobs_limit_cap(UJOBS_CAP_QUEUE, ticket->queue_hash, 0), n);
	if (ticket->tenant_hash != 0)
		add_outside(ujobs_limit_cap(UJOBS_CAP_TENANT, ticket->queue_hash, ticket->tenant_hash), n);
}

void
ujobs_limit_take_outside(const UjobsTicket *ticket)
{
	count_outside(ticket, 1);
}

void
ujobs_limit_return_outside(const UjobsTicket *ticket)
{
	count_outside(ticket, -1);
}

bool
ujobs_limit_any(void)
{
	return limited[UJOBS_CAP_DEFINITION] + limited[UJOBS_CAP_QUEUE] + limited[UJOBS_CAP_TENANT] > 0;
}

int
ujobs_limit_of(const UjobsTicket *ticket, UjobsCap **under)
{
	int			n = 0;
	UjobsCap   *queue = NULL;

	if (!ujobs_limit_any())
		return 0;
	if (limited[UJOBS_CAP_DEFINITION] > 0)
		under[n++] = find(UJOBS_CAP_DEFINITION, ticket->definition_id, 0);
	if (n > 0 && (under[0] == NULL || under[0]->limit == 0))
		n = 0;
	if (limited[UJOBS_CAP_QUEUE] + limited[UJOBS_CAP_TENANT] > 0)
		queue = find(UJOBS_CAP_QUEUE, ticket->queue_hash, 0);
	if (queue != NULL && queue->limit > 0)
		under[n++] = queue;
	if (queue != NULL && queue->per_tenant > 0 && ticket->tenant_hash != 0)
		under[n++] = ujobs_limit_cap(UJOBS_CAP_TENANT, ticket->queue_hash, ticket->tenant_hash);
	return n;
}

/* ---- changes ---- */

void
ujobs_limit_set_definition(UjobsCap *cap, int limit)
{
	if (cap->limit == limit)
		return;
	limited[UJOBS_CAP_DEFINITION] += (limit > 0) - (cap->limit > 0);
	cap->limit = limit;
	changed = true;
	ujobs_limit_show(cap);
}

static bool
set_queue(UjobsCap *cap, const UjobsQueueRow *row)
{
	bool		differs = cap->limit != row->concurrency || cap->per_tenant != row->per_tenant ||
		cap->rate_limit.starts != row->rate_per_tenant || cap->rate_limit.window != row->rate_window;

	if (!differs)
		return false;
	limited[UJOBS_CAP_QUEUE] += (row->concurrency > 0) - (cap->limit > 0);
	limited[UJOBS_CAP_TENANT] += (row->per_tenant > 0) - (cap->per_tenant > 0);
	cap->limit = row->concurrency;
	cap->per_tenant = row->per_tenant;
	cap->rate_limit.starts = row->rate_per_tenant;
	cap->rate_limit.window = row->rate_window;
	ujobs_limit_show(cap);
	return true;
}

static const UjobsQueueRow *
row_of(const UjobsCap *cap, const List *queues)
{
	static const UjobsQueueRow none = {.name = ""};
	ListCell   *lc;

	foreach(lc, queues)
	{
		const UjobsQueueRow *row = lfirst(lc);

		if (ujobs_hash_queue(row->name) == cap->key.of)
			return row;
	}
	return &none;
}

/* All tenants that wait try again. */
static void
follow_queues(TimestampTz now)
{
	HASH_SEQ_STATUS status;
	UjobsCap   *cap;

	hash_seq_init(&status, caps);
	while ((cap = hash_seq_search(&status)) != NULL)
	{
		if (cap->key.kind != UJOBS_CAP_TENANT)
			continue;
		cap->limit = cap->queue->per_tenant;
		if (!ujobs_limit_has_rate(cap))
			ujobs_rate_forget(&cap->rate);
		unwatch(cap);
		follow_rate(cap, now);
		ujobs_limit_show(cap);
		set_freed(cap);
	}
}

bool
ujobs_limit_take_change(void)
{
	bool		was = changed;

	changed = false;
	return was;
}

void
ujobs_limit_set_queues(const List *queues)
{
	HASH_SEQ_STATUS status;
	UjobsCap   *cap;
	ListCell   *lc;
	bool		differs = false;

	foreach(lc, queues)
		(void) ujobs_limit_cap(UJOBS_CAP_QUEUE,
							   ujobs_hash_queue(((UjobsQueueRow *) lfirst(lc))->name), 0);
	hash_seq_init(&status, caps);
	while ((cap = hash_seq_search(&status)) != NULL)
	{
		if (cap->key.kind == UJOBS_CAP_QUEUE)
			differs |= set_queue(cap, row_of(cap, queues));
	}
	if (!differs)
		return;
	changed = true;
	follow_queues(GetCurrentTimestamp());
}

void
ujobs_limit_forget_executors(void)
{
	HASH_SEQ_STATUS status;
	UjobsCap   *cap;

	hash_seq_init(&status, caps);
	while ((cap = hash_seq_search(&status)) != NULL)
	{
		cap->executors = 0;
		ujobs_limit_show(cap);
	}
}

static bool
is_forgettable(UjobsCap *cap, TimestampTz now)
{
	if (cap->users > 0 || ujobs_limit_used(cap) > 0 || cap->freed || cap->watched ||
		!dlist_is_empty(&cap->waiting))
		return false;
	if (cap->key.kind == UJOBS_CAP_TENANT && !ujobs_limit_has_rate(cap))
		return cap->rate.pending == 0;
	if (cap->key.kind == UJOBS_CAP_TENANT)
		return ujobs_rate_is_empty(&cap->rate, &cap->queue->rate_limit, now);
	return false;				/* definitions and queues are few */
}

void
ujobs_limit_sweep(TimestampTz now)
{
	HASH_SEQ_STATUS status;
	UjobsCap   *cap;

	hash_seq_init(&status, caps);
	while ((cap = hash_seq_search(&status)) != NULL)
	{
		if (!is_forgettable(cap, now))
			continue;
		hide(cap);
		ujobs_rate_forget(&cap->rate);
		if (cap->queue != NULL)
			cap->queue->users--;
		(void) hash_search(caps, &cap->key, HASH_REMOVE, NULL);
	}
}
