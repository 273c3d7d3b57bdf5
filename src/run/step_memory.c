/*
 * step_memory.c: what a run remembers: its entries by name.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/xact.h"
#include "common/hashfn.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "core/error.h"
#include "run/step_memory.h"
#include "store/step_store.h"

#define NEAR_BYTES 8192			/* a larger output is read from its row when it is asked for */

typedef struct Bucket
{
	uint64		hash;
	UjobsStepEntry *first;		/* of those whose names have it */
} Bucket;

static UjobsStepEntry *
entry_add(UjobsStepRun *run, const UjobsStep *step)
{
	MemoryContext old = MemoryContextSwitchTo(run->memory);
	UjobsStepEntry *entry = palloc0(sizeof(UjobsStepEntry));
	uint64		hash =
		hash_bytes_extended((const unsigned char *) step->name, strlen(step->name), 0);
	Bucket	   *bucket;
	bool		found;

	entry->step = *step;
	bucket = hash_search(run->by_name, &hash, HASH_ENTER, &found);
	entry->next = found ? bucket->first : NULL;
	bucket->first = entry;
	run->entries = lappend(run->entries, entry);
	run->last_seq = Max(run->last_seq, step->seq);
	MemoryContextSwitchTo(old);
	return entry;
}

static UjobsStepEntry *
entry_find(UjobsStepRun *run, const char *name)
{
	uint64		hash = hash_bytes_extended((const unsigned char *) name, strlen(name), 0);
	Bucket	   *bucket = hash_search(run->by_name, &hash, HASH_FIND, NULL);
	UjobsStepEntry *entry = bucket != NULL ? bucket->first : NULL;

	while (entry != NULL && strcmp(entry->step.name, name) != 0)
		entry = entry->next;
	return entry;
}

static void
load(UjobsStepRun *run)
{
	HASHCTL		ctl = {.keysize = sizeof(uint64), .entrysize = sizeof(Bucket), .hcxt = run->memory};
	MemoryContext old = MemoryContextSwitchTo(run->memory);
	List	   *steps;
	ListCell   *lc;

	run->by_name = hash_create("ujobs steps", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	ujobs_step_memory_push_snapshot();
	steps = ujobs_step_load(run->job->id);
	PopActiveSnapshot();
	foreach(lc, steps)
		(void) entry_add(run, lfirst(lc));
	list_free_deep(steps);
	run->loaded = true;
	MemoryContextSwitchTo(old);
}

bool
ujobs_step_memory_is_used(UjobsStepRun *run, const char *name)
{
	UjobsStepEntry *entry;

	if (!run->loaded)
		load(run);
	entry = entry_find(run, name);
	return entry != NULL && entry->used;
}

void
ujobs_step_memory_check_name(const char *name)
{
	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("a step's name must not be null"),
				 errhint("Give each step of a job a name of its own.")));
	if (name[0] == '\0' || strlen(name) > UJOBS_MAX_STEP_BYTES)
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("invalid name of a step"),
				 errdetail("It has %zu bytes.", strlen(name)),
				 errhint("Use a name of 1 to %d bytes.", UJOBS_MAX_STEP_BYTES)));
}

/* ---- is it the same step? ---- */

static const char *
words_of(const UjobsStep *step)
{
	switch (ujobs_step_kind(step))
	{
		case UJOBS_STEP_KIND_COMMAND:
			return "a command or a block";
		case UJOBS_STEP_KIND_SLEEP:
			return "a sleep";
		case UJOBS_STEP_KIND_CHILD:
			return "a wait for a job";
		case UJOBS_STEP_KIND_EVENT:
			break;
	}
	return step->match == NULL ?
		psprintf("a wait for event \"%s\"", step->event) :
		psprintf("a wait for event \"%s\" with match \"%s\"", step->event, step->match);
}

static bool
is_same_text(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* A command that failed is remembered as an error alone. */
void
ujobs_step_memory_check_same(const UjobsStep *remembered, const UjobsStep *asked)
{
	static const UjobsStep command = {0};

	if (asked == NULL)
		asked = &command;
	if (remembered->status == UJOBS_STEP_FAILED ||
		(ujobs_step_kind(remembered) == ujobs_step_kind(asked) &&
		 is_same_text(remembered->event, asked->event) &&
		 is_same_text(remembered->match, asked->match)))
		return;
	ereport(ERROR,
			(ujobs_errcode(STEP_CHANGED),
			 errmsg("step \"%s\" is remembered as another step", remembered->name),
			 errdetail("The job remembers %s; now it is %s.", words_of(remembered), words_of(asked)),
			 errhint("Give what is new a name of its own, or let the jobs that remember the old step end first.")));
}

/* Named after its duration when it was met first: the words may be others now. */
const char *
ujobs_step_memory_next_sleep(UjobsStepRun *run)
{
	const UjobsStepEntry *first = NULL;
	ListCell   *cell;

	if (!run->loaded)
		load(run);
	foreach(cell, run->entries)
	{
		const UjobsStepEntry *entry = lfirst(cell);

		if (!entry->used && entry->step.seq > 0 &&
			strncmp(entry->step.name, "sleep:", 6) == 0 &&
			ujobs_step_kind(&entry->step) == UJOBS_STEP_KIND_SLEEP &&
			(first == NULL || entry->step.seq < first->step.seq))
			first = entry;
	}
	return first != NULL ? first->step.name : NULL;
}

UjobsStepEntry *
ujobs_step_memory_take(UjobsStepRun *run, const char *name, const UjobsStep *asked)
{
	UjobsStepEntry *entry;

	ujobs_step_memory_check_name(name);
	if (!run->loaded)
		load(run);
	entry = entry_find(run, name);
	if (entry == NULL)
	{
		UjobsStep	step = {.name = MemoryContextStrdup(run->memory, name)};

		entry = entry_add(run, &step);
	}
	else if (entry->used)
		ereport(ERROR,
				(ujobs_errcode(STEP_DUPLICATE),
				 errmsg("step \"%s\" was used twice in one attempt", name),
				 errdetail("A step is remembered by its name."),
				 errhint("Give each step a name of its own; in a loop, put the iteration into it.")));
	if (entry->step.seq > 0)
		ujobs_step_memory_check_same(&entry->step, asked);
	entry->used = true;
	if (entry->step.seq > 0)
		run->reached = entry->step.seq;
	return entry;
}

int32
ujobs_step_memory_next_seq(const UjobsStepRun *run)
{
	ListCell   *lc;

	if (run->reached == run->last_seq)
		return run->last_seq + 1;
	foreach(lc, run->entries)
	{
		if (((const UjobsStepEntry *) lfirst(lc))->step.seq == run->reached + 1)
			return run->last_seq + 1;
	}
	return run->reached + 1;
}

/* In memory for as long as the run; a large output stays in its row. */
void
ujobs_step_memory_keep(UjobsStepRun *run, UjobsStepEntry *entry, const UjobsStep *step)
{
	MemoryContext old = MemoryContextSwitchTo(run->memory);
	char	   *name = entry->step.name;

	entry->step = *step;
	entry->step.name = name;
	entry->step.event = step->event != NULL ? pstrdup(step->event) : NULL;
	entry->step.match = step->match != NULL ? pstrdup(step->match) : NULL;
	entry->far = step->output != NULL && VARSIZE_ANY(step->output) > NEAR_BYTES;
	if (step->output != NULL && !entry->far)
	{
		entry->step.output = palloc(VARSIZE_ANY(step->output));
		memcpy(entry->step.output, step->output, VARSIZE_ANY(step->output));
	}
	run->last_seq = Max(run->last_seq, step->seq);
	run->reached = step->seq;
	MemoryContextSwitchTo(old);
}

/* A toast pointer is as good as the output. */
static void
bring_near(UjobsStepRun *run, UjobsStepEntry *entry)
{
	MemoryContext old = MemoryContextSwitchTo(run->memory);

	ujobs_step_memory_push_snapshot();
	entry->step.output = ujobs_step_load_output(run->job->id, entry->step.seq);
	PopActiveSnapshot();
	entry->far = false;
	MemoryContextSwitchTo(old);
}

Jsonb *
ujobs_step_memory_output(UjobsStepRun *run, UjobsStepEntry *entry)
{
	if (entry->far)
		bring_near(run, entry);
	return entry->step.output != NULL ? DatumGetJsonbPCopy(PointerGetDatum(entry->step.output)) :
										NULL;
}

static int
by_seq(const ListCell *a, const ListCell *b)
{
	int32		first = ((const UjobsStep *) lfirst(a))->seq;
	int32		second = ((const UjobsStep *) lfirst(b))->seq;

	return (first > second) - (first < second);
}

/* In the order of seq, as rows have them. */
static List *
all_steps(UjobsStepRun *run, const UjobsJob *job)
{
	List	   *steps = NIL;
	ListCell   *lc;

	if (!run->loaded)
		return ujobs_step_load(job->id);
	foreach(lc, run->entries)
	{
		UjobsStepEntry *entry = lfirst(lc);

		if (entry->far)
			bring_near(run, entry);
		if (entry->step.seq > 0)
			steps = lappend(steps, &entry->step);
	}
	list_sort(steps, by_seq);
	return steps;
}

static int64
total_size(const List *steps)
{
	int64		bytes = (int64) list_length(steps) * UJOBS_ARCHIVE_STEP;
	ListCell   *lc;

	foreach(lc, steps)
	{
		const UjobsStep *step = lfirst(lc);

		if (step->output != NULL)
			bytes += toast_raw_datum_size(PointerGetDatum(step->output));
	}
	return bytes;
}

Jsonb *
ujobs_step_memory_archive_list(int64 job_id, const List *steps, bool kept)
{
	Jsonb	   *archived = NULL;

	if (steps == NIL || (kept && total_size(steps) > UJOBS_ARCHIVE_MAX))
		return NULL;
	if (kept)
		archived = ujobs_step_archive(steps);
	ujobs_step_forget(job_id);
	return archived;
}

Jsonb *
ujobs_step_memory_archive(UjobsStepRun *run, const UjobsJob *job, bool kept)
{
	return ujobs_step_memory_archive_list(job->id, all_steps(run, job), kept);
}

/* Sees what this transaction did. */
void
ujobs_step_memory_push_snapshot(void)
{
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
}

UjobsStepEntry *
ujobs_step_memory_find(UjobsStepRun *run, const char *name)
{
	if (!run->loaded)
		load(run);
	return entry_find(run, name);
}
