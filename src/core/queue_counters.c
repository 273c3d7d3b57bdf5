/*
 * queue_counters.c: steps 6 and 7 of the walk, as numbers.
 *
 * Notes wait in a stack of this backend, each with the subtransaction that
 * made it.  Subtransactions get growing numbers and end inside out, so a
 * rollback to a savepoint takes off exactly the notes on top whose number is
 * not below its own.  At commit each note is a handful of atomic additions:
 * no lock, nothing that could raise.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"

#include "core/engine.h"
#include "core/hash.h"
#include "core/queue_counters.h"

#define MIN_NOTES 64

typedef struct Note
{
	SubTransactionId subid;
	uint16		entry;
	uint8		outcome;		/* UjobsQueueCounterOutcome */
	bool		timed;
	int64		wait;			/* us */
	int64		run;
} Note;

/* From a wake-up at once to a backlog of half an hour. */
static const int64 bounds[UJOBS_COUNTER_BUCKETS - 1] = {
	500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000,
	2500000, 5000000, 10000000, 60000000, 300000000, 1800000000
};

static Note *notes = NULL;
static uint64 n_notes = 0;
static uint64 max_notes = 0;
static int	last_entry = UJOBS_COUNTER_QUEUES;	/* most jobs are of the queue of the one before */

/* ---- the table ---- */

static bool
is_entry_of(const UjobsQueueCounterTable *t, int i, uint32 hash, const char *queue)
{
	return t->hash[i] == hash && strcmp(t->entry[i].queue, queue) == 0;
}

/* Looks at the entries from..n-1; the last entry of all when it is not there. */
static int
entry_find(UjobsQueueCounterTable *t, uint32 hash, const char *queue)
{
	int			n = pg_atomic_read_u32(&t->n);

	pg_read_barrier();			/* names below n are complete */
	for (int i = 0; i < n; i++)
	{
		if (is_entry_of(t, i, hash, queue))
			return i;
	}
	return UJOBS_COUNTER_QUEUES;
}

/* Another session may have been faster, or the table is full. */
static int
entry_make(UjobsQueueCounterTable *t, uint32 hash, const char *queue)
{
	int			i;

	LWLockAcquire(&t->lock, LW_EXCLUSIVE);
	i = entry_find(t, hash, queue);
	if (i == UJOBS_COUNTER_QUEUES && pg_atomic_read_u32(&t->n) < UJOBS_COUNTER_QUEUES)
	{
		i = pg_atomic_read_u32(&t->n);
		t->hash[i] = hash;
		strlcpy(t->entry[i].queue, queue, UJOBS_COUNTER_NAME);
		pg_write_barrier();
		pg_atomic_write_u32(&t->n, i + 1);
	}
	LWLockRelease(&t->lock);
	return i;
}

/* A queue that has the name of the others' entry would make one sample appear twice. */
static bool
has_own_entry(const char *queue)
{
	return strlen(queue) < UJOBS_COUNTER_NAME && strcmp(queue, UJOBS_COUNTER_OTHERS) != 0;
}

static int
entry_of(UjobsQueueCounterTable *t, const char *queue)
{
	uint32		hash;
	int			i;

	if (strcmp(t->entry[last_entry].queue, queue) == 0)
		return last_entry;
	hash = ujobs_hash_queue(queue);
	i = entry_find(t, hash, queue);
	if (i == UJOBS_COUNTER_QUEUES && has_own_entry(queue) &&
		pg_atomic_read_u32(&t->n) < UJOBS_COUNTER_QUEUES)
		i = entry_make(t, hash, queue);
	last_entry = i;
	return i;
}

/* ---- at commit ---- */

static void
histogram_add(UjobsQueueCounterHistogram *h, int64 us)
{
	int			i = 0;

	while (i < UJOBS_COUNTER_BUCKETS - 1 && us > bounds[i])
		i++;
	pg_atomic_fetch_add_u64(&h->bucket[i], 1);
	pg_atomic_fetch_add_u64(&h->sum, us);
}

static void
count_notes(UjobsQueueCounterTable *t)
{
	for (uint64 i = 0; i < n_notes; i++)
	{
		const Note *note = &notes[i];
		UjobsQueueCounter *entry = &t->entry[note->entry];

		pg_atomic_fetch_add_u64(&entry->outcome[note->outcome], 1);
		if (!note->timed)
			continue;
		histogram_add(&entry->wait, note->wait);
		histogram_add(&entry->run, note->run);
	}
}

static void
at_xact_event(XactEvent event, void *arg)
{
	if (n_notes == 0)
		return;
	switch (event)
	{
		case XACT_EVENT_COMMIT:
			if (ujobs_engine_area_attached() != NULL)
				count_notes(&ujobs_engine_area_attached()->counters);
			n_notes = 0;
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			n_notes = 0;
			break;
		default:
			break;
	}
}

static void
at_subxact_event(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	if (event != SUBXACT_EVENT_ABORT_SUB)
		return;
	while (n_notes > 0 && notes[n_notes - 1].subid >= mine)
		n_notes--;
}

/* ---- during the transaction ---- */

/* Room for one more; what a huge transaction needed is given back by the next one. */
static void
make_space(void)
{
	if (notes == NULL)
	{
		notes = MemoryContextAlloc(TopMemoryContext, MIN_NOTES * sizeof(Note));
		max_notes = MIN_NOTES;
		RegisterXactCallback(at_xact_event, NULL);
		RegisterSubXactCallback(at_subxact_event, NULL);
	}
	else if (n_notes == max_notes)
	{
		notes = repalloc_huge(notes, 2 * max_notes * sizeof(Note));
		max_notes *= 2;
	}
	else if (n_notes == 0 && max_notes > 16 * MIN_NOTES)
	{
		notes = repalloc(notes, MIN_NOTES * sizeof(Note));
		max_notes = MIN_NOTES;
	}
}

/* Clocks step back, and a session's may be virtual: no duration is below 0. */
static int64
duration(TimestampTz from, TimestampTz to)
{
	if (TIMESTAMP_NOT_FINITE(from))
		return 0;				/* it was due always */
	return to > from ? to - from : 0;
}

void
ujobs_queue_counter_note(const char *queue, UjobsQueueCounterOutcome outcome,
						 const UjobsQueueCounterTimes *times)
{
	UjobsArea  *area = ujobs_engine_area();
	Note	   *note;

	Assert(IsTransactionState());
	if (area == NULL)
		return;
	make_space();
	note = &notes[n_notes];
	note->subid = GetCurrentSubTransactionId();
	note->entry = entry_of(&area->counters, queue);
	note->outcome = outcome;
	note->timed = times != NULL && times->started_at != 0;
	if (note->timed)
	{
		note->wait = duration(times->due_at, times->started_at);
		note->run = duration(times->started_at, times->ended_at);
	}
	n_notes++;
}

/* ---- for those who look in ---- */

const int64 *
ujobs_queue_counter_bounds(void)
{
	return bounds;
}

int
ujobs_queue_counter_entries(UjobsQueueCounter **out)
{
	UjobsArea  *area = ujobs_engine_area();
	int			n;

	if (area == NULL)
		return 0;
	n = pg_atomic_read_u32(&area->counters.n);
	pg_read_barrier();
	for (int i = 0; i < n; i++)
		out[i] = &area->counters.entry[i];
	out[n] = &area->counters.entry[UJOBS_COUNTER_QUEUES];
	return n + 1;
}
