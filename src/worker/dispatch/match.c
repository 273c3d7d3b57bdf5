/*
 * match.c: step 3 of the walk for a suspended job: its wait is over.
 *
 * No row is written: the job goes to its lane as one that may run now, and
 * finds by itself what it waited for.  Should this process end in between,
 * the next one looks at all waits.
 */
#include "postgres.h"

#include "access/transam.h"
#include "utils/memutils.h"

#include "store/match_store.h"
#include "worker/dispatch/grant.h"
#include "worker/dispatch/hand.h"
#include "worker/dispatch/lane.h"
#include "worker/dispatch/match.h"

typedef struct Ids
{
	int64	   *id;
	int			n;
	int			capacity;
} Ids;

static UjobsArea *area;
static Ids	events;
static Ids	waits;
static Ids	ended;

void
ujobs_match_init(UjobsArea *my_area)
{
	area = my_area;
}

/* ---- what is to be looked at ---- */

static void
push(Ids *ids, int64 id)
{
	if (ids->n == ids->capacity)
	{
		ids->capacity = Max(64, 2 * ids->capacity);
		if (ids->id == NULL)
			ids->id = MemoryContextAlloc(TopMemoryContext, ids->capacity * sizeof(int64));
		else
			ids->id = repalloc_huge(ids->id, ids->capacity * sizeof(int64));
	}
	ids->id[ids->n++] = id;
}

static void
forget_all(void)
{
	events.n = waits.n = ended.n = 0;
}

void
ujobs_match_note(const UjobsHint *hint)
{
	if (hint->kind == UJOBS_HINT_EVENT)
		push(&events, hint->id);
	else if (hint->kind == UJOBS_HINT_WAIT)
		push(&waits, hint->id);
	else if (hint->kind == UJOBS_HINT_ENDED)
		push(&ended, hint->id);
}

void
ujobs_match_again(int64 job_id)
{
	push(&waits, job_id);
}

bool
ujobs_match_is_pending(void)
{
	return events.n + waits.n + ended.n > 0;
}

/* ---- who is woken ---- */

static UjobsLane *
lane_of(const UjobsMatched *job, TimestampTz now)
{
	UjobsLaneKey key = {.definition_id = job->definition_id};
	UjobsLane  *lane;

	strlcpy(key.queue, job->queue, NAMEDATALEN);
	lane = ujobs_lane_find(&key);
	if (lane == NULL)
	{
		ujobs_lane_discover(now);
		lane = ujobs_lane_find(&key);
	}
	return lane;
}

static void
wake(const UjobsMatched *job, TimestampTz now)
{
	UjobsLane  *lane;
	UjobsParty *party;

	if (ujobs_hand_has(job->id))
	{
		ujobs_hand_match_again(job->id);
		return;
	}
	if (ujobs_grant_has(job->id))
	{
		ujobs_grant_match_again(job->id);
		return;
	}
	lane = lane_of(job, now);
	party = lane != NULL ? ujobs_lane_party(lane, job->tenant_hash) : NULL;
	if (party != NULL)
		ujobs_party_add(party, (UjobsHeapItem) {job->id, now, job->priority, true}, now);
}

static void
wake_all(UjobsMatches matches, TimestampTz now)
{
	for (int64 i = 0; i < matches.n; i++)
		wake(&matches.job[i], now);
	pfree(matches.job);
}

/* ---- looking ---- */

/* From here on the end of such a child is a hint; then look whether it ended before. */
static void
watch_children(const Ids *of)
{
	int			n;
	int64	   *children = ujobs_match_children(of->id, of->n, &n);

	ujobs_awaited_add(&area->awaited, children, n);
	pfree(children);
}

void
ujobs_match_round(TimestampTz now)
{
	if (waits.n > 0)
	{
		watch_children(&waits);
		wake_all(ujobs_match_waits(waits.id, waits.n, now), now);
	}
	if (events.n > 0)
		wake_all(ujobs_match_events(events.id, events.n, now), now);
	if (ended.n > 0)
		wake_all(ujobs_match_ended(ended.id, ended.n), now);
	forget_all();
}

void
ujobs_match_everything(TimestampTz now)
{
	int			n;
	int64	   *children = ujobs_match_children(NULL, 0, &n);

	ujobs_awaited_replace(&area->awaited, children, n);
	pfree(children);
	wake_all(ujobs_match_all(now, InvalidTransactionId), now);
	forget_all();
}
