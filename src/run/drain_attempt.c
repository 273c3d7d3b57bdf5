/*
 * drain_attempt.c: steps 4 to 8 of the walk inside a client's transaction.
 *
 * A subtransaction takes the place of the executor's transaction: the handler's
 * effects and the completion are one, or an error undoes both and the verdict
 * is written around them.  What is called, decided and written is the same
 * code that executors use.
 *
 * A step's command cannot be committed here, and an attempt that suspends or
 * fails is undone.  So a durable handler that reaches a new command is unwound,
 * the command runs in a subtransaction of its own, which is kept whatever
 * becomes of the attempt, and the handler starts again.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

#include "core/clock.h"
#include "run/attempt.h"
#include "run/current.h"
#include "run/execution_plan.h"
#include "run/interrupt.h"
#include "run/leftovers.h"
#include "run/session.h"
#include "run/settle.h"
#include "run/step.h"
#include "run/drain_attempt.h"
#include "store/definition_store.h"

/* One run, as the subtransaction leaves it. */
typedef struct Run
{
	const UjobsJob *job;
	MemoryContext memory;
	List	   *before;			/* what the session held */
	TimestampTz started_at;
	UjobsExecutionPlan plan;
	UjobsExecutionVerdict decision;
	UjobsVerdict verdict;
	ErrorData  *error;			/* NULL: it returned */
} Run;

/*
 * A session that took on its role with SET ROLE or SET SESSION AUTHORIZATION
 * could be brought back to a stronger one by the handler.
 */
static int
guarded(int security_context)
{
	if (GetUserId() == GetSessionUserId() && GetSessionUserId() == GetAuthenticatedUserId())
		return security_context;
	return security_context | SECURITY_LOCAL_USERID_CHANGE;
}

/* User code, as the job's run finds its session. */
static Jsonb *
call_in_session(Run *run, Jsonb *(*call) (Run *run))
{
	UjobsSession session;
	Oid			user;
	int			security_context;
	Jsonb	   *result;

	GetUserIdAndSecContext(&user, &security_context);
	SetUserIdAndSecContext(user, guarded(security_context));
	ujobs_session_begin(&session, run->job, false);
	ujobs_current_enter();
	result = call(run);
	ujobs_current_leave();
	ujobs_session_end_settings(&session);
	SetUserIdAndSecContext(user, security_context);
	ujobs_leftovers_remove(run->before);
	return result;
}

static Jsonb *
call_handler(Run *run)
{
	Jsonb	   *result;

	if (run->plan.handler.kind == UJOBS_KIND_DURABLE)
		ujobs_step_enter(run->job, &run->plan.handler, UJOBS_CALL_NESTED,
						 run->plan.step_timeout_ms);
	result = ujobs_attempt_call(&run->plan.handler, run->job->input, UJOBS_CALL_NESTED,
								run->memory);
	if (run->plan.handler.kind == UJOBS_KIND_DURABLE)
		ujobs_step_check_end();
	return result;
}

static Jsonb *
call_command(Run *run)
{
	ujobs_step_run_request();
	return NULL;
}

static void
finish(Run *run, Jsonb *result)
{
	UjobsFinish finish = {
		.job = run->job,
		.result = result,
		.started_at = run->started_at,
		.retention = run->plan.retention,
		.refetch = true			/* the handler may have cancelled its own job */
	};

	if (run->plan.handler.kind == UJOBS_KIND_DURABLE)
		finish.steps = ujobs_step_finish(run->job, run->plan.retention > 0);
	if (!ujobs_job_finish(&finish, 1, ujobs_clock_now()))
		ujobs_settle_not_ours();
}

/* Sees what this transaction has done so far. */
static void
push_snapshot(void)
{
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
}

/* What the subtransaction does. */
static void
attempt(Run *run)
{
	Jsonb	   *result;

	push_snapshot();
	run->decision = ujobs_execution_plan_make(run->job, &run->plan, &run->verdict);
	if (run->decision == UJOBS_EXECUTION_RUN)
	{
		result = call_in_session(run, call_handler);
		MemoryContextSwitchTo(run->memory);
		PopActiveSnapshot();
		push_snapshot();
		finish(run, result);
	}
	PopActiveSnapshot();
}

/* What the subtransaction of a step's command does. */
static void
run_command(Run *run)
{
	push_snapshot();
	(void) call_in_session(run, call_command);
	MemoryContextSwitchTo(run->memory);
	PopActiveSnapshot();
}

static void
in_subtransaction(Run *run, void (*work) (Run *run))
{
	ResourceOwner owner = CurrentResourceOwner;
	bool		exits = ExitOnAnyError;

	ExitOnAnyError = false;		/* a failed job is a result, not the end of the session */
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(run->memory);
	PG_TRY();
	{
		work(run);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(run->memory);
		run->error = CopyErrorData();
		FlushErrorState();
		ujobs_current_leave();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	ExitOnAnyError = exits;
	MemoryContextSwitchTo(run->memory);
	CurrentResourceOwner = owner;
}

/* By the client or its statement_timeout; a handler and a suspension may raise the code, too. */
static bool
is_cancel(const ErrorData *error)
{
	UjobsVerdict suspended;

	return error->sqlerrcode == ERRCODE_QUERY_CANCELED && ujobs_interrupt_was_signalled() &&
		!ujobs_step_suspended(error, &suspended);
}

static void
settle(Run *run, UjobsDrainAttempt *result)
{
	UjobsVerdict *verdict = &run->verdict;
	TimestampTz now = ujobs_clock_now();
	UjobsIdentity identity;

	push_snapshot();
	if (run->error != NULL)
	{
		if (!ujobs_step_suspended(run->error, verdict))
			ujobs_settle_failure(ujobs_definition_by_id(run->job->definition_id), run->job,
								 run->error, now, verdict);
		verdict->started_at = run->started_at;
		ujobs_step_settle(run->job, run->error);
	}
	ujobs_identity_enter(&identity);
	if (ujobs_job_settle(run->job, verdict, now))
		result->outcome = verdict->outcome;
	ujobs_identity_leave(&identity);
	PopActiveSnapshot();
	result->due_at = verdict->due_at;
	result->error = run->error && result->outcome != UJOBS_OUTCOME_SUSPENDED ? run->error->message :
																			   verdict->reason;
}

static void
settle_or_raise(Run *run, UjobsDrainAttempt *result)
{
	if (run->error != NULL)
	{
		if (is_cancel(run->error))
			ReThrowError(run->error);
		ujobs_leftovers_remove(run->before);
	}
	else if (run->decision == UJOBS_EXECUTION_RUN)
	{
		result->outcome = UJOBS_OUTCOME_DONE;
		return;
	}
	else if (run->decision == UJOBS_EXECUTION_FOREIGN)
		return;
	settle(run, result);
}

void
ujobs_drain_attempt_run(const UjobsJob *job, UjobsDrainAttempt *result)
{
	Run		   *run = palloc0(sizeof(Run));

	result->outcome = UJOBS_OUTCOME_NOT_OURS;
	result->error = NULL;
	ujobs_step_leave();			/* a drain that was cancelled could not */
	ujobs_interrupt_watch();
	run->job = job;
	run->memory = CurrentMemoryContext;
	run->before = ujobs_leftovers_note();
	run->started_at = ujobs_clock_now();
	in_subtransaction(run, attempt);
	while (run->error != NULL && ujobs_step_wants_command(run->error))
	{
		run->error = NULL;
		in_subtransaction(run, run_command);
		if (run->error == NULL)
			in_subtransaction(run, attempt);
	}
	settle_or_raise(run, result);
	ujobs_interrupt_unwatch();
	ujobs_step_leave();
}
