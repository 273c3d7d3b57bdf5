/*
 * outside.c: step 3 of the walk for programs outside: grants and leases.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/hsearch.h"
#include "utils/timestamp.h"

#include "core/hash.h"
#include "worker/dispatch/outside.h"

#define LEASED (-1)				/* instead of a place */
#define LATER_US 200000

/* A job that a program has, or may get. */
typedef struct Entry
{
	int64		id;
	int			place;			/* of the claim whose transaction runs, or LEASED */
	int			number;			/* of the grant there */
	bool		counted;		/* units of limits are taken for it */
	bool		rated;			/* under its tenant's rate, and not yet begun */
	UjobsTicket ticket;			/* whose units: nothing else of it is used */
	UjobsTenantQueue *tq;		/* NULL: taken over from a former dispatcher, not looked up yet */
	UjobsHeapItem item;
	bool		hinted;			/* look at its row */
	bool		wait_is_over;
	bool		seen;			/* by the rescan that runs */
	UjobsHint	hint;
} Entry;

static UjobsArea *area;
static HTAB *entries;
static int	hinted = 0;			/* entries that are leased and hinted, about */
static bool adopted = true;		/* there may be entries that are not counted */
static uint64 first_unread;	/* claims from this number on asked after the round's hints were taken */
static int	n_known[UJOBS_MAX_CLAIMS];	/* grants of each place that are entries, or were */

void
ujobs_outside_init(UjobsArea *my_area)
{
	HASHCTL		ctl = {.keysize = sizeof(int64), .entrysize = sizeof(Entry)};

	area = my_area;
	entries = hash_create("ujobs jobs outside", 256, &ctl, HASH_ELEM | HASH_BLOBS);
}

/* ---- entries ---- */

static Entry *
find(int64 id)
{
	return hash_search(entries, &id, HASH_FIND, NULL);
}

/* From now on it counts as running. */
static void
count(Entry *e, const UjobsTicket *ticket, UjobsTenantQueue *tq)
{
	e->ticket = *ticket;
	e->counted = true;
	e->tq = tq;
	if (tq != NULL)
		tq->holders++;
	ujobs_limit_take_outside(ticket);
}

static Entry *
enter(int64 id, int place, int number, UjobsHeapItem item)
{
	bool		found;
	Entry	   *e = hash_search(entries, &id, HASH_ENTER, &found);

	if (found)
		return e;
	memset((char *) e + sizeof(int64), 0, sizeof(Entry) - sizeof(int64));
	e->place = place;
	e->number = number;
	e->item = item;
	return e;
}

/* It does not count any more; the hints that came meanwhile go with it. */
static UjobsReturned *
leave(Entry *e, UjobsReturns *returns)
{
	UjobsReturned *job = ujobs_outstanding_append(returns, e->id);

	job->tq = e->tq;
	job->item = e->item;
	job->hinted = e->hinted && e->hint.kind == UJOBS_HINT_JOB;
	job->hint = e->hint;
	job->wait_is_over = e->wait_is_over;
	if (e->counted)
		ujobs_limit_return_outside(&e->ticket);
	if (e->rated)
		ujobs_limit_rate_back(&e->ticket);
	if (e->tq != NULL)
		e->tq->holders--;
	(void) hash_search(entries, &e->id, HASH_REMOVE, NULL);
	return job;
}

static void
put_back(Entry *e, TimestampTz not_before, UjobsReturns *returns)
{
	UjobsReturned *job = leave(e, returns);

	job->unrun = true;
	job->not_before = not_before;
}

bool
ujobs_outside_has(int64 id)
{
	return find(id) != NULL;
}

int
ujobs_outside_count(void)
{
	return (int) hash_get_num_entries(entries);
}

void
ujobs_outside_hint(const UjobsHint *hint)
{
	Entry	   *e = find(hint->id);

	if (e == NULL)
		return;
	e->hinted = true;
	e->hint = *hint;
	hinted++;
}

void
ujobs_outside_wait_is_over(int64 id)
{
	Entry	   *e = find(id);

	if (e != NULL)
		e->wait_is_over = true;
}

/* ---- what sessions tell ---- */

static void
follow_grant(int place, int number, const UjobsGrant *grant, UjobsReturns *returns, TimestampTz now)
{
	Entry	   *e = find(grant->id);

	/* One that was given back may have been granted again since. */
	if (e == NULL || e->place != place || e->number != number)
		return;
	switch ((UjobsFate) grant->fate)
	{
		case UJOBS_FATE_OPEN:
			break;
		case UJOBS_FATE_BACK:
			put_back(e, 0, returns);
			break;
		case UJOBS_FATE_LATER:
			put_back(e, now + LATER_US, returns);
			break;
		case UJOBS_FATE_GONE:
			(void) leave(e, returns);
			break;
		case UJOBS_FATE_LEASED:
			e->place = LEASED;
			if (e->rated)
				ujobs_limit_rate_began(&e->ticket, now);
			e->rated = false;
			hinted += e->hinted;
			break;
	}
}

/* Granted by a former dispatcher. */
static void
adopt(int place, int number, const UjobsGrant *grant)
{
	if (grant->fate != UJOBS_FATE_OPEN)
		return;					/* the rows say it, or will */
	(void) enter(grant->id, place, number, (UjobsHeapItem) {grant->id, 0, 0, grant->woken});
	adopted = true;
}

static void
follow(int place, const UjobsClaim *claim, UjobsReturns *returns, TimestampTz now)
{
	for (int i = n_known[place]; i < claim->n_grants; i++)
		adopt(place, i, &claim->grant[i]);
	n_known[place] = claim->n_grants;
	for (int i = 0; i < claim->n_grants; i++)
		follow_grant(place, i, &claim->grant[i], returns, now);
	if (claim->state != UJOBS_CLAIM_ENDED)
		return;
	n_known[place] = 0;
	ujobs_claim_release(area, place);
}

void
ujobs_outside_sync(UjobsReturns *returns, TimestampTz now)
{
	UjobsClaim	claim;

	if (pg_atomic_read_u32(&area->claims.taken) == 0)
		return;
	for (int i = 0; i < UJOBS_MAX_CLAIMS; i++)
	{
		if (ujobs_claim_read(area, i, &claim))
			follow(i, &claim, returns, now);
	}
}

/* ---- looking at rows ---- */

bool
ujobs_outside_is_pending(void)
{
	return hinted > 0;
}

typedef bool (*Wanted) (const Entry *e);

static bool
is_hinted(const Entry *e)
{
	return e->hinted && e->place == LEASED;
}

static bool
is_uncounted(const Entry *e)
{
	return !e->counted;
}

/* The ids of entries of one kind, palloc'd. */
static int64 *
collect(Wanted wanted, int *n)
{
	HASH_SEQ_STATUS status;
	Entry	   *e;
	int64	   *ids = palloc((hash_get_num_entries(entries) + 1) * sizeof(int64));

	*n = 0;
	hash_seq_init(&status, entries);
	while ((e = hash_seq_search(&status)) != NULL)
	{
		if (wanted(e))
			ids[(*n)++] = e->id;
	}
	return ids;
}

/* Those that are leased stay; of the others the hint counts. */
void
ujobs_outside_look(UjobsReturns *returns)
{
	int			n;
	int64	   *ids = collect(is_hinted, &n);
	ListCell   *lc;

	Assert(IsTransactionState());
	hinted = 0;
	if (n == 0)
		return;
	foreach(lc, ujobs_lease_of(ids, n))
	{
		UjobsLeased *leased = lfirst(lc);

		if (leased->leased)
			find(leased->id)->hinted = false;
	}
	for (int i = 0; i < n; i++)
	{
		Entry	   *e = find(ids[i]);

		if (e != NULL && e->hinted)
			(void) leave(e, returns);
	}
}

void
ujobs_outside_place(const UjobsLeased *leased, UjobsTenantQueue *tq)
{
	Entry	   *e = find(leased->id);
	UjobsTicket ticket = {
		.id = leased->id,
		.definition_id = leased->definition_id,
		.queue_hash = ujobs_hash_queue(leased->queue),
		.tenant_hash = ujobs_hash_tenant(leased->tenant)
	};

	if (e != NULL && !e->counted)
		count(e, &ticket, tq);
}

/* The rows of grants that a former dispatcher gave, as of before their claims. */
static List *
rows_of_adopted(void)
{
	int			n;
	int64	   *ids = collect(is_uncounted, &n);
	List	   *rows;
	ListCell   *lc;

	adopted = false;
	if (n == 0)
		return NIL;
	rows = ujobs_lease_of(ids, n);
	foreach(lc, rows)
	{
		const UjobsLeased *job = lfirst(lc);
		Entry	   *e = find(job->id);

		e->item.due_at = job->due_at;
		e->item.priority = job->priority;
	}
	return rows;
}

/* Enters what is leased; appends what was not counted yet. */
static List *
see_all(List *unplaced)
{
	ListCell   *lc;

	foreach(lc, ujobs_lease_all())
	{
		UjobsLeased *leased = lfirst(lc);
		Entry	   *e = enter(leased->id, LEASED, 0,
							  (UjobsHeapItem) {leased->id, leased->due_at, leased->priority});

		e->seen = true;
		if (!e->counted)
			unplaced = lappend(unplaced, leased);
	}
	return unplaced;
}

List *
ujobs_outside_rescan(UjobsReturns *returns)
{
	HASH_SEQ_STATUS status;
	Entry	   *e;
	List	   *unplaced;

	Assert(IsTransactionState());
	unplaced = adopted ? rows_of_adopted() : NIL;
	hash_seq_init(&status, entries);
	while ((e = hash_seq_search(&status)) != NULL)
		e->seen = false;
	unplaced = see_all(unplaced);
	hash_seq_init(&status, entries);
	while ((e = hash_seq_search(&status)) != NULL)
	{
		if (e->place == LEASED && !e->seen)
			(void) leave(e, returns);	/* a scan allows the removal of the entry at hand */
	}
	return unplaced;
}

/* ---- answering ---- */

void
ujobs_outside_begin_round(void)
{
	first_unread = pg_atomic_read_u64(&area->claims.next_number);
	pg_memory_barrier();
}

typedef struct Asking
{
	int			place;
	uint64		number;
} Asking;

static int
by_number(const void *a, const void *b)
{
	const Asking *first = a;
	const Asking *second = b;

	return (first->number > second->number) - (first->number < second->number);
}

int
ujobs_outside_asking(int *places)
{
	Asking		asking[UJOBS_MAX_CLAIMS];
	int			n = 0;

	if (pg_atomic_read_u32(&area->claims.taken) == 0)
		return 0;
	for (int i = 0; i < UJOBS_MAX_CLAIMS; i++)
	{
		uint64		number;

		if (area->claims.claim[i].state != UJOBS_CLAIM_ASKED)
			continue;			/* a stale look costs one round: its session wakes the dispatcher */
		if (ujobs_claim_asks(area, i, &number) && number < first_unread)
			asking[n++] = (Asking) {i, number};
	}
	qsort(asking, n, sizeof(Asking), by_number);
	for (int i = 0; i < n; i++)
		places[i] = asking[i].place;
	return n;
}

bool
ujobs_outside_read(int place, UjobsClaim *copy)
{
	return ujobs_claim_read(area, place, copy) && copy->state == UJOBS_CLAIM_ASKED;
}

UjobsGrant
ujobs_outside_grant(int place, int number, const UjobsTicket *ticket, UjobsTenantQueue *tq,
					UjobsHeapItem item)
{
	Entry	   *e = enter(item.id, place, n_known[place] + number, item);

	Assert(number < UJOBS_CLAIM_GRANTS);
	count(e, ticket, tq);
	e->rated = (ticket->flags & UJOBS_TICKET_RATED) != 0;
	return (UjobsGrant) {item.id, item.woken, UJOBS_FATE_OPEN};
}

void
ujobs_outside_answer(int place, const UjobsGrant *grants, int n, bool found, UjobsReturns *returns)
{
	if (ujobs_claim_answer(area, place, grants, n, found))
	{
		n_known[place] += n;
		return;
	}
	for (int i = 0; i < n; i++)
		put_back(find(grants[i].id), 0, returns);
}
