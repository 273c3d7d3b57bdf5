/*
 * step.c: the run of a durable handler, and its commands.
 *
 * Everything that was remembered is read once per attempt and kept by name.
 * At the top a step's effects, its row and the proof that the job is still
 * ours (its row, locked until the commit) are one commit, made before the
 * handler's next statement.  A failed step is recorded after the attempt was
 * aborted, with the failure of the job.
 *
 * A block that step_begin opened must reach step_end: a commit in between is
 * refused by the server's own pre-commit hook, a rollback is noticed by the
 * abort hook and raised at the next step.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "core/clock.h"
#include "core/error.h"
#include "core/wakeup.h"
#include "run/command.h"
#include "run/current.h"
#include "run/interrupt.h"
#include "run/settle.h"
#include "run/step.h"
#include "store/step_store.h"

static UjobsStepRun run;

/* ---- blocks ---- */

void
ujobs_step_refuse_open_block(void)
{
	ereport(ERROR,
			(ujobs_errcode(STEP_UNBALANCED),
			 errmsg("step \"%s\" was begun and not ended", run.active->step.name),
			 errdetail("Nothing can be committed, and no other step run, before its step_end."),
			 errhint("Write CALL ujobs.step_end() in every path that follows step_begin.")));
}

static void
at_xact_event(XactEvent event, void *arg)
{
	if (run.job == NULL || !run.block || run.committing || !ujobs_current_in_handler())
		return;
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE)
		ujobs_step_refuse_open_block();
	if (event == XACT_EVENT_ABORT)
		run.unbalanced = true;
}

/* ---- where a step may be called ---- */

static void
check_went_on(void)
{
	if (run.suspended != NULL || run.request.entry != NULL)
		ereport(ERROR,
				(ujobs_errcode(SUSPENSION_SWALLOWED),
				 errmsg("the handler went on after it was suspended in step \"%s\"",
						run.suspended != NULL ? run.suspended->name : run.request.entry->step.name),
				 errdetail("A suspension unwinds the handler as query_canceled (57014), which was caught."),
				 errhint("Do not catch query_canceled around a step, or raise it again.")));
	if (run.first_error != NULL)
		ReThrowError(run.first_error);
	if (run.unbalanced)
		ereport(ERROR,
				(ujobs_errcode(STEP_UNBALANCED),
				 errmsg("a ROLLBACK ended the block of step \"%s\"", run.active->step.name),
				 errdetail("What the block did is undone, and the step was not remembered."),
				 errhint("Do not end the transaction between step_begin and step_end.")));
	ujobs_interrupt_check();
}

UjobsStepRun *
ujobs_step_here(const UjobsStepCall *call, const char *name)
{
	const UjobsJob *job = ujobs_current_job();

	if (job == NULL)
		ujobs_step_place_refuse_outside(call->function);
	if (run.job != job)
		ujobs_step_place_refuse(UJOBS_PLACE_ATOMIC_JOB, name);
	check_went_on();
	if (run.busy || run.committing)
		ujobs_step_place_refuse(UJOBS_PLACE_STEP, name);
	if (GetCurrentTransactionNestLevel() != run.nest_level)
		ujobs_step_place_refuse(UJOBS_PLACE_EXCEPTION, name);
	if (call->procedure && run.level == UJOBS_CALL_NESTED)
		ujobs_step_place_check(name, &run.origin);
	else if (call->procedure && call->atomic)
		ujobs_step_place_refuse_atomic(name, &run.origin);
	return &run;
}

static void
check_no_block(void)
{
	if (run.block)
		ujobs_step_refuse_open_block();
}

/* ---- writing ---- */

void
ujobs_step_activate(UjobsStepRun *r, UjobsStepEntry *entry)
{
	r->active = entry;
	if (entry->step.status != UJOBS_STEP_SLEEPING && entry->step.status != UJOBS_STEP_WAITING)
		entry->step.started_at = ujobs_clock_now();
}

static void
deactivate(void)
{
	run.active = NULL;
	run.block = false;
}

static void
write_row(const UjobsStep *step)
{
	if (step->seq <= run.last_seq && ujobs_step_update(run.job->id, step))
		return;
	ujobs_step_insert(run.job->id, step);
}

/*
 * The first step of a woken job makes its row due, so that a crash does not
 * put it to sleep again.
 */
static bool
hold(UjobsStepRun *r)
{
	return r->due ? ujobs_job_hold(r->job) : ujobs_job_hold_due(r->job, ujobs_clock_now());
}

void
ujobs_step_record(UjobsStepRun *r, UjobsStepEntry *entry, const UjobsStep *step)
{
	UjobsStep	next = *step;

	ujobs_interrupt_check();
	if (next.seq == 0)
		next.seq = ujobs_step_memory_next_seq(r);
	ujobs_step_memory_push_snapshot();
	if (!hold(r))
		ujobs_settle_not_ours();
	write_row(&next);
	PopActiveSnapshot();
	r->due = true;
	if (r->level == UJOBS_CALL_TOP)
	{
		r->committing = true;
		ujobs_command_commit();
		r->committing = false;
	}
	ujobs_step_memory_keep(r, entry, &next);
}

void
ujobs_step_draft(UjobsStepRun *r, UjobsStepEntry *entry, const UjobsStep *step)
{
	UjobsStep	next = *step;

	if (next.seq == 0)
		next.seq = ujobs_step_memory_next_seq(r);
	ujobs_step_memory_push_snapshot();
	write_row(&next);
	PopActiveSnapshot();
	ujobs_step_memory_keep(r, entry, &next);
}

static void
complete(UjobsStepEntry *entry, Jsonb *output)
{
	UjobsStep	step = entry->step;

	step.status = UJOBS_STEP_COMPLETED;
	step.attempts++;
	step.completed_at = ujobs_clock_now();
	step.output = (struct varlena *) output;
	step.error = NULL;
	ujobs_step_record(&run, entry, &step);
	deactivate();
}

/* ---- commands ---- */

static Jsonb *
run_and_record(UjobsStepEntry *entry, const char *command, Jsonb *args)
{
	MemoryContext caller = CurrentMemoryContext;
	Jsonb	   *output;

	ujobs_step_activate(&run, entry);
	ujobs_command_open(run.level == UJOBS_CALL_TOP);
	run.busy = true;
	ujobs_interrupt_time_step(run.timeout_ms);
	output = ujobs_command_run(command, args, caller);
	ujobs_interrupt_stop_step();
	run.busy = false;
	complete(entry, output);
	ujobs_command_close();
	MemoryContextSwitchTo(caller);
	return output;
}

static void
want(UjobsStepEntry *entry, const char *command, Jsonb *args)
{
	MemoryContext old = MemoryContextSwitchTo(run.memory);

	run.request.entry = entry;
	run.request.command = pstrdup(command);
	run.request.args = args != NULL ? DatumGetJsonbPCopy(JsonbPGetDatum(args)) : NULL;
	MemoryContextSwitchTo(old);
	ExitOnAnyError = false;		/* a handler may have set exit_on_error: this is no failure */
	ereport(ERROR,
			(errcode(ERRCODE_QUERY_CANCELED),
			 errmsg("unwinding the handler to run step \"%s\"", entry->step.name)));
}

Jsonb *
ujobs_step_run(const UjobsStepCall *call, const char *name, const char *command, Jsonb *args)
{
	UjobsStepEntry *entry;

	(void) ujobs_step_here(call, name);
	check_no_block();
	if (command == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the command of step \"%s\" must not be null", name != NULL ? name : ""),
				 errhint("Give one SQL statement.")));
	entry = ujobs_step_memory_take(&run, name, NULL);
	if (entry->step.status == UJOBS_STEP_COMPLETED)
		return ujobs_step_memory_output(&run, entry);
	if (run.level == UJOBS_CALL_NESTED)
		want(entry, command, args);
	return run_and_record(entry, command, args);
}

bool
ujobs_step_begin(const UjobsStepCall *call, const char *name)
{
	UjobsStepEntry *entry;

	(void) ujobs_step_here(call, name);
	check_no_block();
	entry = ujobs_step_memory_take(&run, name, NULL);
	if (entry->step.status == UJOBS_STEP_COMPLETED)
		return false;
	ujobs_step_activate(&run, entry);
	run.block = true;
	ujobs_interrupt_time_step(run.timeout_ms);
	return true;
}

void
ujobs_step_end(const UjobsStepCall *call, Jsonb *result)
{
	(void) ujobs_step_here(call, run.active != NULL ? run.active->step.name : "");
	if (!run.block)
		ereport(ERROR,
				(ujobs_errcode(STEP_UNBALANCED),
				 errmsg("step_end without a step that was begun"),
				 errdetail("step_begin was not called, or it returned false because its step is completed."),
				 errhint("Write IF ujobs.step_begin('name') THEN ... CALL ujobs.step_end(); END IF;")));
	ujobs_interrupt_stop_step();
	ujobs_command_open(run.level == UJOBS_CALL_TOP);
	complete(run.active, result);
	ujobs_command_close();
}

Jsonb *
ujobs_step_result(const char *name)
{
	const UjobsJob *job = ujobs_current_job();
	UjobsStepEntry *entry;

	if (job == NULL)
		ujobs_step_place_refuse_outside("step_result");
	if (run.job != job || name == NULL)
		return NULL;
	entry = ujobs_step_memory_find(&run, name);
	if (entry == NULL || entry->step.status != UJOBS_STEP_COMPLETED)
		return NULL;
	return ujobs_step_memory_output(&run, entry);
}

/* ---- around a handler ---- */

void
ujobs_step_enter(const UjobsJob *job, const UjobsHandler *handler, UjobsCallLevel level,
				 int64 timeout_ms)
{
	static bool registered = false;
	MemoryContext memory = run.memory;

	if (!registered)
		RegisterXactCallback(at_xact_event, NULL);
	registered = true;
	if (memory == NULL)
		memory = AllocSetContextCreate(TopMemoryContext, "ujobs steps", ALLOCSET_DEFAULT_SIZES);
	MemoryContextReset(memory);
	memset(&run, 0, sizeof(run));
	run.memory = memory;
	run.job = job;
	run.level = level;
	run.due = level != UJOBS_CALL_TOP || job->due_at <= ujobs_clock_now();
	run.timeout_ms = timeout_ms;
	run.nest_level = GetCurrentTransactionNestLevel();
	ujobs_step_place_note(&run.origin, handler->plpgsql, level == UJOBS_CALL_NESTED);
}

void
ujobs_step_leave(void)
{
	run.job = NULL;
}

void
ujobs_step_check_end(void)
{
	check_went_on();
	check_no_block();
}

Jsonb *
ujobs_step_finish(const UjobsJob *job, bool kept)
{
	Assert(ActiveSnapshotSet());
	return ujobs_step_memory_archive(&run, job, kept);
}

void
ujobs_step_note_error(void)
{
	MemoryContext old;

	run.busy = run.committing = false;
	ujobs_interrupt_stop_step();
	if (run.job == NULL || run.first_error != NULL || run.suspended != NULL ||
		run.request.entry != NULL)
		return;
	old = MemoryContextSwitchTo(run.memory);
	run.first_error = CopyErrorData();
	MemoryContextSwitchTo(old);
}

/* ---- the end of an attempt ---- */

void
ujobs_step_suspend(UjobsStepRun *r, const UjobsStep *step)
{
	MemoryContext old = MemoryContextSwitchTo(r->memory);

	r->suspended = palloc(sizeof(UjobsStep));
	*r->suspended = *step;
	r->suspended->event = step->event != NULL ? pstrdup(step->event) : NULL;
	r->suspended->match = step->match != NULL ? pstrdup(step->match) : NULL;
	MemoryContextSwitchTo(old);
	ExitOnAnyError = false;		/* as above */
	ereport(ERROR,
			(errcode(ERRCODE_QUERY_CANCELED),
			 errmsg("job is suspended in step \"%s\"", step->name)));
}

bool
ujobs_step_suspended(const ErrorData *error, UjobsVerdict *verdict)
{
	if (run.job == NULL || run.suspended == NULL || error->sqlerrcode != ERRCODE_QUERY_CANCELED)
		return false;
	memset(verdict, 0, sizeof(*verdict));
	verdict->outcome = UJOBS_OUTCOME_SUSPENDED;
	verdict->attempt = run.job->attempt;
	verdict->due_at = run.suspended->wake_at;
	return true;
}

/* A job waits in one place: others were left behind by a handler that was replaced. */
static void
drop_other_waits(int64 job_id, const char *suspended)
{
	ListCell   *lc;

	foreach(lc, run.entries)
	{
		UjobsStepEntry *entry = lfirst(lc);

		if (entry->step.status == UJOBS_STEP_WAITING && !entry->used &&
			strcmp(entry->step.name, suspended) != 0)
			ujobs_step_delete(job_id, entry->step.seq);
	}
}

static void
settle_suspended(int64 job_id)
{
	UjobsStep	step = *run.suspended;

	if (step.seq == 0)
		step.seq = ujobs_step_memory_next_seq(&run);
	drop_other_waits(job_id, step.name);
	write_row(&step);
	if (step.status == UJOBS_STEP_WAITING)
	{
		UjobsHint	hint = {.id = job_id, .kind = UJOBS_HINT_WAIT};

		ujobs_wakeup_note(&hint);
	}
}

static void
settle_failed(int64 job_id, const ErrorData *error)
{
	UjobsStep	step = run.active->step;

	if (step.seq == 0)
		step.seq = ujobs_step_memory_next_seq(&run);
	step.status = UJOBS_STEP_FAILED;
	step.attempts++;
	step.error = (struct varlena *) ujobs_settle_error(error);
	write_row(&step);
}

void
ujobs_step_settle(const UjobsJob *job, const ErrorData *error)
{
	Assert(ActiveSnapshotSet());
	if (run.job == NULL || run.job->id != job->id || !ujobs_job_hold(job))
		return;
	if (run.suspended != NULL && error->sqlerrcode == ERRCODE_QUERY_CANCELED)
		settle_suspended(job->id);
	else if (run.active != NULL)
		settle_failed(job->id, error);
}

bool
ujobs_step_wants_command(const ErrorData *error)
{
	return run.job != NULL && run.request.entry != NULL &&
		   error->sqlerrcode == ERRCODE_QUERY_CANCELED;
}

void
ujobs_step_run_request(void)
{
	UjobsStepRequest request = run.request;

	run.request.entry = NULL;
	(void) run_and_record(request.entry, request.command, request.args);
}
