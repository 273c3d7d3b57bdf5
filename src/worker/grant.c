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
#include "worker/admit.h"
#include "worker/grant.h"
#include "worker/hand.h"
#include "worker/match.h"
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
	int32		definition_id;
	UjobsLane  *lane;			/* NULL: taken over from a former dispatcher, not looked up yet */
	UjobsHeapItem item;
	bool		hinted;			/* look at its row */
	bool		match_again;
	bool		seen;			/* by the rescan at hand */
	UjobsHint	hint;
} Entry;

typedef struct Count
{
	int32		definition_id;
	int			n;
} Count;

static UjobsArea *area;
static HTAB *book;
static HTAB *counts;
static int	hinted = 0;			/* entries that are leased and hinted, about */
static bool adopted = true;		/* there may be entries without a lane */
static uint64 first_unheard;	/* claims from this turn on asked after the round's hints were taken */
static int	n_known[UJOBS_MAX_CLAIMS];	/* grants of each place that are in the book, or were */

void
ujobs_grant_init(UjobsArea *my_area)
{
	HASHCTL		ctl = {.keysize = sizeof(int64), .entrysize = sizeof(Entry)};

	area = my_area;
	book = hash_create("ujobs grants", 256, &ctl, HASH_ELEM | HASH_BLOBS);
	ctl.keysize = sizeof(int32);
	ctl.entrysize = sizeof(Count);
	counts = hash_create("ujobs grants by definition", 64, &ctl, HASH_ELEM | HASH_BLOBS);
}

/* ---- the book ---- */

static Entry *
find(int64 id)
{
	return hash_search(book, &id, HASH_FIND, NULL);
}

static void
count(int32 definition_id, int n)
{
	bool		found;
	Count	   *c = hash_search(counts, &definition_id, HASH_ENTER, &found);

	c->n = found ? c->n + n : n;
	if (c->n == 0)
		(void) hash_search(counts, &definition_id, HASH_REMOVE, NULL);
}

static Entry *
enter(int64 id, int place, int number, UjobsLane *lane, UjobsHeapItem item)
{
	bool		found;
	Entry	   *e = hash_search(book, &id, HASH_ENTER, &found);

	if (found)
		return e;
	memset((char *) e + sizeof(int64), 0, sizeof(Entry) - sizeof(int64));
	e->place = place;
	e->number = number;
	e->lane = lane;
	e->item = item;
	if (lane != NULL)
	{
		e->definition_id = lane->key.definition_id;
		count(e->definition_id, 1);
	}
	return e;
}

/* It counts no more; hints that came meanwhile count now. */
static void
leave(Entry *e, TimestampTz now)
{
	Entry		left = *e;

	(void) hash_search(book, &e->id, HASH_REMOVE, NULL);
	if (left.definition_id != 0)
		count(left.definition_id, -1);
	if (left.hinted && left.hint.kind == UJOBS_HINT_JOB && !ujobs_lane_hint(&left.hint, now))
		ujobs_wakeup_rescan_now();
	if (left.match_again)
		ujobs_match_again(left.id);
}

static void
put_back(Entry *e, TimestampTz not_before, TimestampTz now)
{
	UjobsLane  *lane = e->lane;
	UjobsHeapItem item = e->item;

	leave(e, now);
	item.due_at = Max(item.due_at, not_before);
	if (lane != NULL)
		ujobs_lane_add(lane, item, now);
	else
		ujobs_wakeup_rescan_now();	/* only the rows know its lane */
}

bool
ujobs_grant_has(int64 id)
{
	return find(id) != NULL;
}

int
ujobs_grant_count(int32 definition_id)
{
	Count	   *c = hash_search(counts, &definition_id, HASH_FIND, NULL);

	return c != NULL ? c->n : 0;
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
			break;
	}
}

/* Granted by a former dispatcher. */
static void
adopt(int place, int number, const UjobsGrant *grant)
{
	if (grant->fate != UJOBS_FATE_OPEN)
		return;					/* the rows say it, or will */
	(void) enter(grant->id, place, number, NULL, (UjobsHeapItem) {grant->id, 0, 0, grant->woken});
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
	UjobsLane  *lane = lane_of(leased, now);
	Entry	   *e;

	if (lane == NULL)
		return;
	e = enter(leased->id, LEASED, 0, lane,
			  (UjobsHeapItem) {leased->id, leased->due_at, leased->priority});
	e->seen = true;
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
		if (e->lane == NULL)
			ids[n++] = e->id;
	}
	adopted = false;
	if (n == 0)
		return;
	foreach(lc, ujobs_lease_of(ids, n))
	{
		UjobsLeased *job = lfirst(lc);

		e = find(job->id);
		e->lane = lane_of(job, now);
		if (e->lane == NULL)
			continue;
		e->item.due_at = job->due_at;
		e->item.priority = job->priority;
		e->definition_id = job->definition_id;
		count(e->definition_id, 1);
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

static bool
has_room(const UjobsLane *lane)
{
	return lane->concurrency == 0 ||
		ujobs_grant_count(lane->key.definition_id) + ujobs_hand_holders(lane->key.definition_id) < lane->concurrency;
}

static bool
may_give(const UjobsLane *lane, const UjobsClaimAsk *ask)
{
	const UjobsDefinition *definition;

	if (!lane->outside || !lane->loaded || lane->paused || ujobs_lane_waiting(lane) == 0 || !asks_for(ask, lane) ||
		!has_room(lane))
		return false;
	definition = ujobs_definition_by_id(lane->key.definition_id);
	return definition != NULL && ujobs_definition_may_work(definition, ask->role);
}

/* What is at the top and cannot be given, because somebody has it, goes. */
static void
drop_taken(UjobsLane *lane)
{
	while (ujobs_lane_waiting(lane) > 0)
	{
		UjobsHeapItem item = *ujobs_lane_top(lane);

		if (ujobs_grant_has(item.id))
		{
			if (item.woken)
				ujobs_grant_match_again(item.id);
		}
		else if (ujobs_hand_has(item.id))
		{
			if (item.woken)
				ujobs_hand_match_again(item.id);
		}
		else
			return;
		(void) ujobs_lane_pop(lane);
	}
}

/* The lane with the most urgent job for this claim, or NULL. */
static UjobsLane *
best_lane(const UjobsClaimAsk *ask)
{
	UjobsLane  *best = NULL;

	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		UjobsLane  *lane = ujobs_lane_at(i);

		if (lane->outside)
			drop_taken(lane);
		if (may_give(lane, ask) &&
			(best == NULL || ujobs_heap_compare(UJOBS_HEAP_BY_URGENCY, ujobs_lane_top(lane), ujobs_lane_top(best)) < 0))
			best = lane;
	}
	return best;
}

static bool
database_has_room(void)
{
	return ujobs_guc_max_running == 0 || ujobs_admit_busy() + ujobs_grant_total() < ujobs_guc_max_running;
}

static int
gather(int place, const UjobsClaimAsk *ask, UjobsGrant *out)
{
	int			n = 0;

	while (n < ask->max && database_has_room())
	{
		UjobsLane  *lane = best_lane(ask);
		UjobsHeapItem item;

		if (lane == NULL)
			break;
		item = ujobs_lane_pop(lane);
		(void) enter(item.id, place, n_known[place] + n, lane, item);
		out[n++] = (UjobsGrant) {item.id, item.woken, UJOBS_FATE_OPEN};
	}
	return n;
}

static void
answer(int place, const UjobsClaim *claim, bool uncertain, TimestampTz now)
{
	UjobsGrant	grants[UJOBS_CLAIM_GRANTS];
	int			n = gather(place, &claim->ask, grants);
	bool		found = claim->ask.max == 0 && database_has_room() && best_lane(&claim->ask) != NULL;

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
	for (int i = 0; i < ujobs_lane_count(); i++)
		ujobs_lane_fire(ujobs_lane_at(i), now);
	ujobs_worker_begin();		/* who is a member of what stands in the catalogs */
	for (int i = 0; i < n; i++)
	{
		if (ujobs_claim_read(area, turns[i].place, &claim) && claim.state == UJOBS_CLAIM_ASKED)
			answer(turns[i].place, &claim, uncertain, now);
	}
	ujobs_worker_commit();
}
