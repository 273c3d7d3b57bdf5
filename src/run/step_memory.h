/*
 * step_memory.h: the running durable job's memory of its steps.
 *
 * Private to step.c (the run and its commands), step_memory.c (the entries) and
 * step_wait.c (sleeps and waits).
 */
#ifndef UJOBS_RUN_STEP_MEMORY_H
#define UJOBS_RUN_STEP_MEMORY_H

#include "utils/hsearch.h"

#include "model/step.h"
#include "run/attempt.h"
#include "run/step_place.h"

typedef struct UjobsStepEntry
{
	UjobsStep	step;			/* as its row is; seq 0: it has none */
	bool		used;			/* in this attempt */
	bool		far;			/* the output is in the row alone */
	struct UjobsStepEntry *next;	/* of the same hash */
} UjobsStepEntry;

/* Nested: what the handler was unwound for. */
typedef struct UjobsStepRequest
{
	UjobsStepEntry *entry;		/* NULL: nothing */
	char	   *command;
	Jsonb	   *args;
} UjobsStepRequest;

typedef struct UjobsStepRun
{
	const UjobsJob *job;		/* NULL: no run */
	UjobsCallLevel level;
	int			nest_level;		/* of transactions, where a step may be called */
	UjobsStepOrigin origin;		/* of the handler's call */
	int64		timeout_ms;		/* of one step */
	MemoryContext memory;		/* reset when a run is entered */
	bool		loaded;
	HTAB	   *by_name;
	List	   *entries;		/* in the order of their first use or record */
	int32		last_seq;
	int32		reached;		/* seq of the step that was used last */
	UjobsStepEntry *active;		/* being run, or the open block */
	bool		block;			/* active was opened by step_begin */
	bool		busy;			/* a step's command runs */
	bool		committing;		/* a step's own commit */
	bool		due;			/* its row is, or has been made so */
	bool		unbalanced;		/* a ROLLBACK ended an open block */
	UjobsStep  *suspended;			/* the attempt suspends in this step */
	UjobsStepRequest request;
	ErrorData  *first_error;
} UjobsStepRun;

/* The entry of that name, or NULL; reads the job's steps once. */
extern UjobsStepEntry *ujobs_step_memory_find(UjobsStepRun *run, const char *name);

/*
 * The place of a step that is recorded for the first time: right behind the
 * one that was used before it, where that is free (drain runs a block again
 * after steps that follow it), else at the end.
 */
extern int32 ujobs_step_memory_next_seq(const UjobsStepRun *run);

/* The row of the entry's step is like this from now on. */
extern void ujobs_step_memory_keep(UjobsStepRun *run, UjobsStepEntry *entry, const UjobsStep *step);

/* 22004 when it is NULL, UJ003 when no step can have it. */
extern void ujobs_step_memory_check_name(const char *name);

/*
 * The steps of a job that ends: their rows go, or stay when they are too large
 * for history; kept: has it one?
 */
extern Jsonb *ujobs_step_memory_archive_list(int64 job_id, const List *steps, bool kept);

/* The same of the steps of this run; see ujobs_step_finish. */
extern Jsonb *ujobs_step_memory_archive(UjobsStepRun *run, const UjobsJob *job, bool kept);

/* Sees what this transaction did. */
extern void ujobs_step_memory_push_snapshot(void);

/*
 * The entry of that name, used from now on in this attempt.  UJ012 when it was
 * before; UJ029 when what is remembered is not what is asked for: NULL: a
 * command, else the kind of `asked`, and for an event its name and match.
 */
extern UjobsStepEntry *ujobs_step_memory_take(UjobsStepRun *run, const char *name,
											  const UjobsStep *asked);

/* Raises UJ029 when the remembered step is not what is asked for. */
extern void ujobs_step_memory_check_same(const UjobsStep *remembered, const UjobsStep *asked);

/* The first sleep without a name of its own that this attempt has not come to, or NULL. */
extern const char *ujobs_step_memory_next_sleep(UjobsStepRun *run);

/* Was the name used in this attempt? */
extern bool ujobs_step_memory_is_used(UjobsStepRun *run, const char *name);

/* A completed step's, in the current context; NULL when it had none. */
extern Jsonb *ujobs_step_memory_output(UjobsStepRun *run, UjobsStepEntry *entry);

#endif							/* UJOBS_RUN_STEP_MEMORY_H */
