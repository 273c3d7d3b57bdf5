/*
 * waits.c: step 3 of the walk for a suspended job: its wait is over.
 *
 * No row is written: the job goes to its queue as one that may run now, and
 * finds by itself what it waited for.  Should this process end in between,
 * the next one looks at all waits.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "utils/memutils.h"

#include "core/waited_for.h"
#include "worker/dispatch/waits.h"

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
ujobs_wait_init(UjobsArea *my_area)
{
	area = my_area;
}

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

void
ujobs_wait_hint(const UjobsHint *hint)
{
	if (hint->kind == UJOBS_HINT_EVENT)
		push(&events, hint->id);
	else if (hint->kind == UJOBS_HINT_WAIT)
		push(&waits, hint->id);
	else if (hint->kind == UJOBS_HINT_ENDED)
		push(&ended, hint->id);
}

void
ujobs_wait_again(int64 job_id)
{
	push(&waits, job_id);
}

bool
ujobs_wait_is_pending(void)
{
	return events.n + waits.n + ended.n > 0;
}

/* From here on the end of such a child is a hint; then look whether it ended before. */
static void
watch_children(const Ids *of)
{
	int			n;
	int64	   *children = ujobs_match_children(of->id, of->n, &n);

	ujobs_waited_for_add(&area->waited_for, children, n);
	pfree(children);
}

bool
ujobs_wait_look(TimestampTz now, UjobsMatches *found)
{
	Ids		   *looked_at = waits.n > 0 ? &waits : events.n > 0 ? &events : &ended;

	Assert(IsTransactionState());
	if (looked_at->n == 0)
		return false;
	if (looked_at == &waits)
	{
		watch_children(&waits);
		*found = ujobs_match_waits(waits.id, waits.n, now);
	}
	else if (looked_at == &events)
		*found = ujobs_match_events(events.id, events.n, now);
	else
		*found = ujobs_match_ended(ended.id, ended.n);
	looked_at->n = 0;
	return true;
}

UjobsMatches
ujobs_wait_look_at_all(TimestampTz now)
{
	int			n;
	int64	   *children = ujobs_match_children(NULL, 0, &n);

	ujobs_waited_for_replace(&area->waited_for, children, n);
	pfree(children);
	events.n = waits.n = ended.n = 0;
	return ujobs_match_all(now, InvalidTransactionId);
}
