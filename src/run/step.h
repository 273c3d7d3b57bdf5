/*
 * step.h: the remembered parts of the durable job that runs in this session.
 *
 * A run is entered before its handler is called and left after its outcome is
 * settled.  At the top (an executor) each step commits; nested (drain) it
 * cannot, so a new command unwinds the handler, is run around it, and the
 * handler starts again (run/drain_attempt.c).
 *
 * Whatever a step function raises is remembered: a handler that catches it
 * fails with it at its next step, or at its end.
 */
#ifndef UJOBS_RUN_STEP_H
#define UJOBS_RUN_STEP_H

#include "nodes/pg_list.h"
#include "utils/jsonb.h"

#include "core/noreturn.h"
#include "run/step_memory.h"
#include "store/job_store.h"

/* ---- around a handler ---- */

/* A durable handler is about to be called; timeout_ms: of one step, 0 = none. */
extern void ujobs_step_enter(const UjobsJob *job, const UjobsHandler *handler, UjobsCallLevel level,
							 int64 timeout_ms);

/*
 * It returned.  Raises what it should not have gone on after: an open block,
 * an error or a suspension it caught.
 */
extern void ujobs_step_check_end(void);

/* No handler runs any more in this session; what follows may still ask about the run. */
extern void ujobs_step_leave(void);

/*
 * The job is done: its steps as its history keeps them, their rows being
 * deleted (kept: is there a history at all?).  NULL: there are none, or they
 * are too large to be archived and stay as rows.  Needs an active snapshot.
 */
extern Jsonb *ujobs_step_finish(const UjobsJob *job, bool kept);

/* Did the attempt end by suspending?  Then this is the verdict. */
extern bool ujobs_step_suspended(const ErrorData *error, UjobsVerdict *verdict);

/*
 * In the transaction that settles an attempt, before the verdict is written:
 * records the sleep or wait, or the failure of the step that raised, unless
 * the job is no longer ours.  Needs an active snapshot and no identity section.
 */
extern void ujobs_step_settle(const UjobsJob *job, const ErrorData *error);

/*
 * Nested: the handler was unwound for a new command.  The next one runs it, in
 * a subtransaction of the caller.
 */
extern bool ujobs_step_wants_command(const ErrorData *error);
extern void ujobs_step_run_request(void);

/* ---- what a handler calls; each checks its place first ---- */

/* How the SQL function was called. */
typedef struct UjobsStepCall
{
	bool		procedure;
	bool		atomic;			/* of a procedure: it could not commit */
	const char *function;		/* for messages, without the schema */
} UjobsStepCall;

extern Jsonb *ujobs_step_run(const UjobsStepCall *call, const char *name, const char *command,
							 Jsonb *args);
extern bool ujobs_step_begin(const UjobsStepCall *call, const char *name);
extern void ujobs_step_end(const UjobsStepCall *call, Jsonb *result);
extern Jsonb *ujobs_step_result(const char *name);

/* Remembers what is being raised; to be called in a PG_CATCH. */
extern void ujobs_step_note_error(void);

/* ---- for step_wait.c ---- */

/* The run, once it is sure that a step may be called here. */
extern UjobsStepRun *ujobs_step_here(const UjobsStepCall *call, const char *name);

/* Raises UJ026: step_end is missing. */
extern void ujobs_step_refuse_open_block(void);

/* The entry is what runs now: an error is its failure. */
extern void ujobs_step_activate(UjobsStepRun *run, UjobsStepEntry *entry);

/*
 * Writes the step, guarded by the job's row, and at the top commits it with
 * everything since the last commit.  Needs an open command section.
 */
extern void ujobs_step_record(UjobsStepRun *run, UjobsStepEntry *entry, const UjobsStep *step);

/*
 * Writes the step in this transaction, for look-ups by its row; what is
 * committed or not is decided later.
 */
extern void ujobs_step_draft(UjobsStepRun *run, UjobsStepEntry *entry, const UjobsStep *step);

/* Unwinds the handler: the job goes on when the step is due. */
pg_noreturn extern void ujobs_step_suspend(UjobsStepRun *run, const UjobsStep *step);

#endif							/* UJOBS_RUN_STEP_H */
