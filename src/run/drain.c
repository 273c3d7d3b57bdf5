/*
 * drain.c: which jobs, and in which order: step 3 of the walk for a client.
 *
 * Windows of due rows are merged in a heap as the dispatcher does.  They are
 * read again when a handler changed rows (it noted hints), when they are used
 * up, and when an engine came or went, because that decides whose jobs may be
 * run.  A scan after which nothing could be run is the end.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "core/clock.h"
#include "core/engine.h"
#include "core/slot.h"
#include "core/wakeup.h"
#include "run/drain.h"
#include "run/drain_attempt.h"
#include "store/definition_store.h"
#include "store/dispatch_store.h"
#include "store/drain_store.h"
#include "store/job_store.h"
#include "store/match_store.h"

#define FIRST_WINDOW 128		/* rows of a lane read at once */

typedef struct Drain
{
	const char *queue;			/* NULL = all */
	bool		own_only;		/* an engine serves: others' jobs are its */
	UjobsHeap	heap;
	int			window;
	bool		more;			/* the window of some lane was too small */
	int			left;			/* to take before the order must be read again */
	int			ran;			/* since the last scan */
	MemoryContext memory;		/* reset before each scan and job */
} Drain;

/* ---- what is due ---- */

static bool
is_wanted(const Drain *drain, const UjobsLaneKey *key, const List *queues)
{
	const UjobsDefinition *definition;

	if (drain->queue != NULL && strcmp(drain->queue, key->queue) != 0)
		return false;
	if (ujobs_dispatch_is_paused(queues, key->queue))
		return false;
	definition = ujobs_definition_by_id(key->definition_id);
	return definition != NULL && definition->owner == GetUserId() &&
		definition->kind != UJOBS_KIND_EXTERNAL;
}

static void
scan_lane(Drain *drain, const UjobsLaneKey *key)
{
	UjobsIdentity identity;
	UjobsDrainLane lane = {
		.definition_id = key->definition_id,
		.queue = key->queue,
		.now = ujobs_clock_now(),
		.own_only = drain->own_only,
		.max = drain->window
	};

	ujobs_identity_enter(&identity);
	if (ujobs_drain_due(&lane, &drain->heap))
		drain->more = true;
	ujobs_identity_leave(&identity);
}

/* Suspended jobs whose wait is over before its deadline. */
static void
scan_waits(Drain *drain, const List *queues)
{
	TimestampTz now = ujobs_clock_now();
	TransactionId mine = GetTopTransactionIdIfAny();
	UjobsMatches matches;

	if (drain->own_only && !TransactionIdIsValid(mine))
		return;
	matches = ujobs_match_all(now, drain->own_only ? mine : InvalidTransactionId);
	for (int64 i = 0; i < matches.n; i++)
	{
		const UjobsMatched *job = &matches.job[i];
		UjobsLaneKey key = {.definition_id = job->definition_id};

		strlcpy(key.queue, job->queue, NAMEDATALEN);
		if (is_wanted(drain, &key, queues) &&
			(!drain->own_only || TransactionIdIsCurrentTransactionId(job->writer)))
			ujobs_heap_push(&drain->heap, (UjobsHeapItem) {job->id, now, job->priority, true});
	}
	pfree(matches.job);
}

static void
scan(Drain *drain)
{
	UjobsLaneKey key = {PG_INT32_MIN, ""};
	List	   *queues;

	drain->own_only = ujobs_engine_serves();
	drain->more = false;
	drain->ran = 0;
	ujobs_heap_clear(&drain->heap);
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	queues = ujobs_dispatch_queues();
	while (ujobs_dispatch_next_lane(&key))
	{
		if (is_wanted(drain, &key, queues))
			scan_lane(drain, &key);
	}
	scan_waits(drain, queues);
	PopActiveSnapshot();
	drain->left = drain->more ? drain->window : INT_MAX;
}

/* All that was seen is in others' hands: look further.  Or nothing is due. */
static bool
look_again(Drain *drain)
{
	if (drain->ran > 0)
		drain->window = FIRST_WINDOW;
	else if (drain->more && drain->window < INT_MAX / 2)
		drain->window *= 2;
	else
		return false;
	return true;
}

/* The next job in order, or false when nothing is due. */
static bool
next_due(Drain *drain, UjobsHeapItem *item)
{
	while (drain->left == 0 || ujobs_heap_top(&drain->heap) == NULL)
	{
		if (!look_again(drain))
			return false;
		scan(drain);
	}
	drain->left--;
	*item = ujobs_heap_pop(&drain->heap);
	return true;
}

/* ---- one job ---- */

/* Locked and read, or NULL when it is not for us. */
static UjobsJob *
claim(const UjobsHeapItem *item)
{
	int64		id = item->id;
	UjobsIdentity identity;
	UjobsSlot	slot;
	List	   *jobs = NIL;
	UjobsJob   *job;
	bool		locked;

	if (ujobs_slot_find_running(id, &slot) >= 0)
		return NULL;			/* by an engine that is about to stop */
	ujobs_identity_enter(&identity);
	locked = ujobs_drain_lock(id);
	ujobs_identity_leave(&identity);
	if (!locked)
		return NULL;

	/* As of now: who held the lock before may have changed it. */
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	jobs = ujobs_job_fetch(&id, 1, ujobs_clock_now());
	PopActiveSnapshot();
	job = jobs == NIL ? NULL : linitial(jobs);
	return job != NULL && job->due_at > ujobs_clock_now() && !item->woken ? NULL : job;
}

static bool
run_one(Drain *drain, const UjobsHeapItem *item, UjobsDrained *drained)
{
	UjobsJob   *job = claim(item);
	const UjobsDefinition *definition;
	UjobsDrainAttempt	attempt;
	uint64		noted;

	if (job == NULL)
		return false;
	if (!job->resumed)
		job->attempt++;
	definition = ujobs_definition_by_id(job->definition_id);
	drained->id = job->id;
	drained->name = definition ? pstrdup(definition->name) : NULL;
	noted = ujobs_wakeup_noted();
	ujobs_drain_attempt_run(job, &attempt);
	drained->outcome = attempt.outcome;
	drained->error = attempt.error;
	if (attempt.outcome == UJOBS_OUTCOME_NOT_OURS)
		return false;
	if (attempt.outcome == UJOBS_OUTCOME_DONE ? noted != ujobs_wakeup_noted() :
		attempt.outcome == UJOBS_OUTCOME_RETRY && attempt.due_at <= ujobs_clock_now())
		drain->left = 0;
	drain->ran++;
	return true;
}

void
ujobs_drain(const char *queue, int max_jobs, UjobsDrainReceiver receive, void *arg)
{
	Drain		drain = {.queue = queue, .window = FIRST_WINDOW};
	MemoryContext old = CurrentMemoryContext;
	UjobsHeapItem item;
	UjobsDrained drained;

	ujobs_heap_init(&drain.heap, UJOBS_HEAP_BY_URGENCY, CurrentMemoryContext);
	drain.memory = AllocSetContextCreate(CurrentMemoryContext, "ujobs drain",
										 ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(drain.memory);
	scan(&drain);
	for (int n = 0; n < max_jobs && next_due(&drain, &item);)
	{
		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(drain.memory);
		if (drain.own_only != ujobs_engine_serves())
			scan(&drain);
		else if (run_one(&drain, &item, &drained))
		{
			receive(&drained, arg);
			n++;
		}
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(drain.memory);
}
