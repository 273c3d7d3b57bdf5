/*
 * grant.c: step 3 of the walk for programs outside: the book of grants and leases.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/guc.h"
#include "core/wakeup.h"
#include "store/definition_store.h"
#include "store/lease_store.h"
#include "worker/dispatch/admit.h"
#include "worker/dispatch/grant.h"
#include "worker/dispatch/hand.h"
#include "worker/dispatch/match.h"
#include "worker/worker.h"

#define LEASED (-1)				/* instead of a place */
#define LATER_US 200000
#define UNCERTAIN_US (INT64CONST(1) * USECS_PER_SEC)

/* A job in the book. */
typedef struct Entry
{
	int64		id;
	int			place;			/* of the claim whose transaction runs, or LEASED */
	int			number;			/* of the grant there */
	bool		counted;		/* units of limits are taken for it */
	bool		rated;			/* under its tenant's rate, and not yet begun */
	UjobsTicket ticket;			/* whose units: nothing else of it is used */
	UjobsParty *party;			/* NULL: taken over from a former dispatcher, not looked up yet */
	UjobsHeapItem item;
	bool		hinted;			/* look at its row */
	bool		match_again;
	bool		seen;			/* by the rescan at hand */
	UjobsHint	hint;
} Entry;

static UjobsArea *area;
static HTAB *book;
static int	hinted = 0;			/* entries that are leased and hinted, about */
static bool adopted = true;		/* there may be entries without a party */
static uint64 first_unheard;	/* claims from this turn on asked after the round's hints were taken */
static int	n_known[UJOBS_MAX_CLAIMS];	/* grants of each place that are in the book, or were */

void
ujobs_grant_init(UjobsArea *my_area)
{
	HASHCTL		ctl = {.keysize = sizeof(int64), .entrysize = sizeof(Entry)};

	area = my_area;
	book = hash_create("ujobs grants", 256, &ctl, HASH_ELEM | HASH_BLOBS);
}

/* ---- the book ---- */

static Entry *
find(int64 id)
{
	return hash_search(book, &id, HASH_FIND, NULL);
}

/* From now on it counts as running. */
static void
count(Entry *e, const UjobsTicket *ticket, UjobsParty *party)
{
	e->ticket = *ticket;
	e->counted = true;
	e->party = party;
	if (party != NULL)
		party->out++;
	ujobs_limit_take_outside(ticket);
}

static Entry *
enter(int64 id, int place, int number, UjobsHeapItem item)
{
	bool		found;
	Entry	   *e = hash_search(book, &id, HASH_ENTER, &found);

	if (found)
		return e;
	memset((char *) e + sizeof(int64), 0, sizeof(Entry) - sizeof(int64));
	e->place = place;
	e->number = number;
	e->item = item;
	return e;
}

/* It counts no more; hints that came meanwhile count now. */
static void
leave(Entry *e, TimestampTz now)
{
	Entry		left = *e;

	(void) hash_search(book, &e->id, HASH_REMOVE, NULL);
	if (left.counted)
		ujobs_limit_return_outside(&left.ticket);
	if (left.rated)
		ujobs_limit_rate_back(&left.ticket);
	if (left.party != NULL)
		left.party->out--;
	if (left.hinted && left.hint.kind == UJOBS_HINT_JOB && !ujobs_lane_hint(&left.hint, now))
		ujobs_wakeup_rescan_now();
	if (left.match_again)
		ujobs_match_again(left.id);
}

static void
put_back(Entry *e, TimestampTz not_before, TimestampTz now)
{
	UjobsParty *party = e->party;
	UjobsHeapItem item = e->item;

	leave(e, now);
	item.due_at = Max(item.due_at, not_before);
	if (party != NULL)
		ujobs_party_add(party, item, now);
	else
		ujobs_wakeup_rescan_now();	/* only the rows know its lane */
}

bool
ujobs_grant_has(int64 id)
{
	return find(id) != NULL;
}

int
ujobs_grant_total(void)
{
	return (int) hash_get_num_entries(book);
}

void
ujobs_grant_hint(const UjobsHint *hint)
{
	Entry	   *e = find(hint->id);

	if (e == NULL)
		return;
	e->hinted = true;
	e->hint = *hint;
	hinted++;
}

void
ujobs_grant_match_again(int64 id)
{
	Entry	   *e = find(id);

	if (e != NULL)
		e->match_again = true;
}

/* ---- what sessions tell ---- */

static void
follow_grant(int place, int number, const UjobsGrant *grant, TimestampTz now)
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
			put_back(e, 0, now);
			break;
		case UJOBS_FATE_LATER:
			put_back(e, now + LATER_US, now);
			break;
		case UJOBS_FATE_GONE:
			leave(e, now);
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
follow(int place, const UjobsClaim *claim, TimestampTz now)
{
	for (int i = n_known[place]; i < claim->n_grants; i++)
		adopt(place, i, &claim->grant[i]);
	n_known[place] = claim->n_grants;
	for (int i = 0; i < claim->n_grants; i++)
		follow_grant(place, i, &claim->grant[i], now);
	if (claim->state != UJOBS_CLAIM_ENDED)
		return;
	n_known[place] = 0;
	ujobs_claim_release(area, place);
}

void
ujobs_grant_sync(TimestampTz now)
{
	UjobsClaim	claim;

	if (pg_atomic_read_u32(&area->claims.taken) == 0)
		return;
	for (int i = 0; i < UJOBS_MAX_CLAIMS; i++)
	{
		if (ujobs_claim_read(area, i, &claim))
			follow(i, &claim, now);
	}
}

/* ---- looking at rows ---- */

bool
ujobs_grant_is_pending(void)
{
	return hinted > 0;
}

static UjobsLane *
lane_of(const UjobsLeased *leased, TimestampTz now)
{
	UjobsLaneKey key = {.definition_id = leased->definition_id};
	UjobsLane  *lane;

	strlcpy(key.queue, leased->queue, NAMEDATALEN);
	lane = ujobs_lane_find(&key);
	if (lane != NULL)
		return lane;
	ujobs_lane_discover(now);
	return ujobs_lane_find(&key);
}

/* It stands in the book by its row. */
static void
count_leased(Entry *e, const UjobsLeased *leased, TimestampTz now)
{
	UjobsLane  *lane = lane_of(leased, now);
	UjobsTicket ticket = {
		.id = leased->id,
		.definition_id = leased->definition_id,
		.queue_hash = ujobs_queue_hash(leased->queue),
		.tenant_hash = ujobs_tenant_hash(leased->tenant)
	};

	count(e, &ticket, lane == NULL ? NULL : ujobs_lane_party(lane, ticket.tenant_hash));
}

/* Fills *ids with the leased entries that somebody hinted at. */
static int
collect_hinted(int64 **ids)
{
	HASH_SEQ_STATUS status;
	Entry	   *e;
	int			n = 0;

	*ids = palloc(hash_get_num_entries(book) * sizeof(int64));
	hash_seq_init(&status, book);
	while ((e = hash_seq_search(&status)) != NULL)
	{
		if (e->hinted && e->place == LEASED)
			(*ids)[n++] = e->id;
	}
	return n;
}

/* Those that are leased stay; of the others the hint counts. */
void
ujobs_grant_look(TimestampTz now)
{
	int64	   *ids;
	int			n = collect_hinted(&ids);
	ListCell   *lc;

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
			leave(e, now);
	}
}

static void
see(const UjobsLeased *leased, TimestampTz now)
{
	Entry	   *e = enter(leased->id, LEASED, 0,
						  (UjobsHeapItem) {leased->id, leased->due_at, leased->priority});

	e->seen = true;
	if (!e->counted)
		count_leased(e, leased, now);
}

/* Their lanes, as of before their claims. */
static void
place_adopted(TimestampTz now)
{
	HASH_SEQ_STATUS status;
	Entry	   *e;
	int64	   *ids = palloc((hash_get_num_entries(book) + 1) * sizeof(int64));
	int			n = 0;
	ListCell   *lc;

	hash_seq_init(&status, book);
	while ((e = hash_seq_search(&status)) != NULL)
	{
		if (!e->counted)
			ids[n++] = e->id;
	}
	adopted = false;
	if (n == 0)
		return;
	foreach(lc, ujobs_lease_of(ids, n))
	{
		UjobsLeased *job = lfirst(lc);

		e = find(job->id);
		e->item.due_at = job->due_at;
		e->item.priority = job->priority;
		count_leased(e, job, now);
	}
}

void
ujobs_grant_rescan(TimestampTz now)
{
	HASH_SEQ_STATUS status;
	Entry	   *e;
	ListCell   *lc;

	if (adopted)
		place_adopted(now);
	hash_seq_init(&status, book);
	while ((e = hash_seq_search(&status)) != NULL)
		e->seen = false;
	foreach(lc, ujobs_lease_all())
		see(lfirst(lc), now);
	hash_seq_init(&status, book);
	while ((e = hash_seq_search(&status)) != NULL)
	{
		if (e->place == LEASED && !e->seen)
			leave(e, now);		/* the one at hand may be removed during a scan */
	}
}

/* ---- answering ---- */

void
ujobs_grant_begin_round(void)
{
	first_unheard = pg_atomic_read_u64(&area->claims.next_turn);
	pg_memory_barrier();
}

static bool
asks_for(const UjobsClaimAsk *ask, const UjobsLane *lane)
{
	uint64		hash = ujobs_claim_hash(lane->key.queue);

	for (int i = 0; i < ask->n_queues; i++)
	{
		if (ask->queue[i] == hash)
			return true;
	}
	return false;
}

/* An UjobsLaneFilter: queues that the claim names, and definitions that its role may work. */
static bool
may_give(const UjobsLane *lane, void *arg)
{
	const UjobsClaimAsk *ask = arg;
	const UjobsDefinition *definition;

	if (!asks_for(ask, lane))
		return false;
	definition = ujobs_definition_by_id(lane->key.definition_id);
	return definition != NULL && ujobs_definition_may_work(definition, ask->role);
}

static int
gather(int place, UjobsClaimAsk *ask, UjobsGrant *out, TimestampTz now)
{
	int			n = 0;

	while (n < ask->max)
	{
		UjobsParty *party = ujobs_admit_best_outside(may_give, ask, now);
		UjobsTicket ticket;
		UjobsHeapItem item;
		Entry	   *e;

		if (party == NULL)
			break;
		item = ujobs_admit_pop_outside(party, &ticket);
		e = enter(item.id, place, n_known[place] + n, item);
		count(e, &ticket, party);
		e->rated = (ticket.flags & UJOBS_TICKET_RATED) != 0;
		out[n++] = (UjobsGrant) {item.id, item.woken, UJOBS_FATE_OPEN};
	}
	return n;
}

static void
answer(int place, UjobsClaim *claim, bool uncertain, TimestampTz now)
{
	UjobsGrant	grants[UJOBS_CLAIM_GRANTS];
	int			n = gather(place, &claim->ask, grants, now);
	bool		found = claim->ask.max == 0 && ujobs_admit_best_outside(may_give, &claim->ask, now) != NULL;

	if (n == 0 && !found && (claim->ask.wait || (uncertain && now - claim->asked_at < UNCERTAIN_US)))
		return;
	if (ujobs_claim_answer(area, place, grants, n, found))
	{
		n_known[place] += n;
		return;
	}
	for (int i = 0; i < n; i++)
		put_back(find(grants[i].id), 0, now);
}

typedef struct Turn
{
	int			place;
	uint64		turn;
} Turn;

static int
by_turn(const void *a, const void *b)
{
	const Turn *first = a;
	const Turn *second = b;

	return (first->turn > second->turn) - (first->turn < second->turn);
}

static int
who_asks(Turn *turns)
{
	int			n = 0;

	for (int i = 0; i < UJOBS_MAX_CLAIMS; i++)
	{
		const UjobsClaim *claim = &area->claims.claim[i];

		if (claim->state == UJOBS_CLAIM_ASKED && claim->turn < first_unheard)
			turns[n++] = (Turn) {i, claim->turn};
	}
	qsort(turns, n, sizeof(Turn), by_turn);
	return n;
}

void
ujobs_grant_serve(bool uncertain)
{
	Turn		turns[UJOBS_MAX_CLAIMS];
	UjobsClaim	claim;
	TimestampTz now;
	int			n;

	if (pg_atomic_read_u32(&area->claims.taken) == 0 || (n = who_asks(turns)) == 0)
		return;
	now = GetCurrentTimestamp();	/* what was due when they asked, is due */
	ujobs_party_fire_all(now);
	ujobs_party_unblock(now);
	ujobs_worker_begin();		/* who is a member of what stands in the catalogs */
	for (int i = 0; i < n; i++)
	{
		if (ujobs_claim_read(area, turns[i].place, &claim) && claim.state == UJOBS_CLAIM_ASKED)
			answer(turns[i].place, &claim, uncertain, now);
	}
	ujobs_worker_commit();
}
