/*
 * executor.c: steps 4 to 8 of the walk: fetch, call, settle, reset.
 *
 * An executor is a session of the owner role and nothing more.  Its slot in
 * shared memory is the lease of the job it runs; the claim writes nothing,
 * so giving a job back is doing nothing.  One attempt of an atomic job (or
 * of a batch of them) is one transaction, what fails is recorded in a second.
 */
#include "postgres.h"

#include <signal.h>

#include "access/xact.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "core/compat.h"
#include "core/engine.h"
#include "core/error.h"
#include "core/guc.h"
#include "run/current.h"
#include "core/session_stats.h"
#include "core/slot.h"
#include "core/wakeup.h"
#include "run/attempt.h"
#include "run/execution_plan.h"
#include "run/interrupt.h"
#include "run/session.h"
#include "run/settle.h"
#include "run/step.h"
#include "store/definition_store.h"
#include "worker/admitted.h"
#include "worker/executor.h"
#include "worker/batch_pace.h"
#include "worker/worker.h"

/* The process's state: one executor per process. */
typedef struct Executor
{
	int			slot;
	uint32		generation;
	Oid			role;
	UjobsArea  *area;
	MemoryContext run;			/* reset before each batch */
	MemoryContext job_memory;	/* reset before each handler */
	const UjobsJob *job;		/* running now, in `run` */
	TimestampTz started_at;
	bool		may_commit;		/* its handler may have ended transactions */
	char		synchronous_commit[32];
	char		inherited_commit[32];	/* what ujobs.synchronous_commit = '' means */
} Executor;

/*
 * The dispatcher gives work only to those it has seen: who leaves earlier was
 * started for nothing.
 */
#define LINGER_US INT64CONST(200000)
#define LINGER_FIRST_US INT64CONST(2000000) /* before its first job: it was started for one */

static Executor executor;
static volatile sig_atomic_t cancellable = false;	/* user code may be running */
static volatile sig_atomic_t got_terminate = false;

/* Recording an outcome and tidying up are not to be cancelled. */
static void
on_cancel(SIGNAL_ARGS)
{
	if (!cancellable)
		return;
	if (!ujobs_worker_is_own_cancel())
		ujobs_interrupt_note_cancel();
	StatementCancelHandler(postgres_signal_arg);
}

static void
on_terminate(SIGNAL_ARGS)
{
	got_terminate = true;
	die(postgres_signal_arg);
}

/* In a signal handler.  The dispatcher ends this process if the job goes on. */
static void
on_timeout(void)
{
	ujobs_slot_note_timeout(executor.slot);
	ujobs_wakeup_dispatcher();
}

/* ---- settling what failed ---- */

static void
settle_one(const UjobsJob *job, UjobsVerdict *verdict, const ErrorData *error)
{
	UjobsIdentity identity;
	TimestampTz now = GetCurrentTimestamp();

	verdict->started_at = executor.started_at;
	ujobs_worker_begin();
	ujobs_step_settle(job, error);
	ujobs_identity_enter(&identity);
	if (ujobs_job_settle(job, verdict, now))
		ujobs_settle_log(job, verdict);
	ujobs_identity_leave(&identity);
	ujobs_worker_commit();
}

static void
record_failure(const UjobsJob *job, const ErrorData *error)
{
	const UjobsDefinition *definition;
	UjobsVerdict verdict;

	if (ujobs_step_suspended(error, &verdict))
	{
		settle_one(job, &verdict, error);
		return;
	}
	StartTransactionCommand();
	definition = ujobs_definition_by_id(job->definition_id);
	MemoryContextSwitchTo(executor.run);
	ujobs_settle_failure(definition, job, error, GetCurrentTimestamp(), &verdict);
	CommitTransactionCommand();
	MemoryContextSwitchTo(executor.run);
	settle_one(job, &verdict, error);
}

/* Interrupted through no fault of its own: the row is as it was; offer it again. */
static void
give_back(const UjobsJob *job)
{
	ujobs_worker_begin();
	ujobs_job_offer(job, GetCurrentTimestamp());
	ujobs_worker_commit();
	MemoryContextSwitchTo(executor.run);
}

/* ---- one transaction ---- */

static void
follow_synchronous_commit(void)
{
	const char *wanted = ujobs_guc_synchronous_commit ? ujobs_guc_synchronous_commit : "";

	if (strcmp(wanted, executor.synchronous_commit) == 0)
		return;
	strlcpy(executor.synchronous_commit, wanted, sizeof(executor.synchronous_commit));
	SetConfigOption("synchronous_commit", wanted[0] != '\0' ? wanted : executor.inherited_commit,
					PGC_USERSET, PGC_S_OVERRIDE);
}

static void
show_activity(const UjobsJob *job, const UjobsExecutionPlan *plan)
{
	char		text[NAMEDATALEN * 3];

	snprintf(text, sizeof(text), "ujobs: job " INT64_FORMAT " %s", job->id, plan->name);
	ujobs_session_stats_activity(text);
}

static void
log_if_slow(const UjobsJob *job, const UjobsExecutionPlan *plan)
{
	long		ms;

	if (ujobs_guc_log_min_duration < 0)
		return;
	ms = (long) ((GetCurrentTimestamp() - executor.started_at) / 1000);
	if (ms >= ujobs_guc_log_min_duration)
		ereport(LOG, (errmsg("job " INT64_FORMAT " \"%s\" attempt %d ran for %ld ms", job->id,
							 plan->name, job->attempt, ms)));
}

/* The handler returned: did it go on after something that should have ended it? */
static void
check_end(const UjobsExecutionPlan *plan)
{
	ujobs_interrupt_stop();
	if (plan->handler.kind == UJOBS_KIND_DURABLE)
		ujobs_step_check_end();
	else if (ujobs_interrupt_timed_out())
		ujobs_interrupt_check();
}

static Jsonb *
run_handler(UjobsJob *job, const UjobsTicket *ticket, UjobsExecutionPlan *plan)
{
	UjobsSession session;
	Jsonb	   *result;

	executor.job = job;
	executor.started_at = GetCurrentTimestamp();
	executor.may_commit = plan->handler.kind != UJOBS_KIND_ATOMIC;
	ujobs_interrupt_reset();
	ujobs_slot_begin_job(executor.slot, ticket, job->attempt, executor.started_at);
	show_activity(job, plan);
	ujobs_session_begin(&session, job, executor.may_commit);
	if (plan->handler.kind == UJOBS_KIND_DURABLE)
		ujobs_step_enter(job, &plan->handler, UJOBS_CALL_TOP, plan->step_timeout_ms);
	ujobs_interrupt_time_job(plan->timeout_ms);

	MemoryContextReset(executor.job_memory);
	MemoryContextSwitchTo(executor.job_memory);
	ujobs_current_enter();
	result = ujobs_attempt_call(&plan->handler, job->input, UJOBS_CALL_TOP, executor.run);
	ujobs_current_leave();
	MemoryContextSwitchTo(executor.run);

	check_end(plan);
	ujobs_session_end(&session);
	log_if_slow(job, plan);
	return result;
}

static void
finish_jobs(UjobsFinish *finish, int n)
{
	ujobs_slot_worked(executor.slot, finish[0].started_at);
	if (!ujobs_job_finish(finish, n, GetCurrentTimestamp()))
		ujobs_settle_not_ours();
}

/* Atomic: all handlers and the completion in the transaction that fetched them. */
static void
run_jobs(List *jobs, const UjobsTicket *tickets, UjobsExecutionPlan *plan)
{
	UjobsFinish *finish = palloc0(list_length(jobs) * sizeof(UjobsFinish));
	ListCell   *lc;
	int			n = 0;

	foreach(lc, jobs)
	{
		UjobsJob   *job = lfirst(lc);
		UjobsTicket ticket = tickets[0];

		ticket.id = job->id;
		finish[n].job = job;
		finish[n].result = run_handler(job, &ticket, plan);
		finish[n].started_at = executor.started_at;
		finish[n].retention = plan->retention;
		n++;
	}
	finish_jobs(finish, n);
}

/* Procedure or command: no snapshot of ours may be active while it commits. */
static void
run_committing(UjobsJob *job, const UjobsTicket *ticket, UjobsExecutionPlan *plan)
{
	UjobsFinish finish = {.job = job, .retention = plan->retention, .refetch = true};

	PopActiveSnapshot();
	finish.result = run_handler(job, ticket, plan);
	finish.started_at = executor.started_at;
	XactReadOnly = false;		/* the handler may have asked for it; the completion is ours */
	PushActiveSnapshot(GetTransactionSnapshot());
	if (plan->handler.kind == UJOBS_KIND_DURABLE)
		finish.steps = ujobs_step_finish(job, plan->retention > 0);
	finish_jobs(&finish, 1);
}

static void
run_transaction(const UjobsTicket *tickets, int n)
{
	UjobsExecutionPlan *plan = palloc0(sizeof(UjobsExecutionPlan));
	List	   *jobs;

	follow_synchronous_commit();
	ujobs_worker_begin();
	MemoryContextSwitchTo(executor.run);
	jobs = ujobs_admitted_fetch(tickets, n);
	if (jobs != NIL)
	{
		executor.job = linitial(jobs);
		if (tickets[0].flags & UJOBS_TICKET_GIVE_UP)
			ereport(ERROR,
					(errcode(ERRCODE_ADMIN_SHUTDOWN),
					 errmsg("the executor was terminated each time it ran this job")));
		if (!ujobs_admitted_plan(jobs, plan))
			;
		else if (plan->handler.kind == UJOBS_KIND_ATOMIC)
			run_jobs(jobs, tickets, plan);
		else
			run_committing(linitial(jobs), &tickets[0], plan);
	}
	ujobs_worker_commit();
	MemoryContextSwitchTo(executor.run);
}

/* ---- around a transaction ---- */

/* Tidies up between transactions; what a committing handler left needs one for that. */
static void
reset_session(void)
{
	if (executor.may_commit)
	{
		StartTransactionCommand();
		ujobs_session_reset_settings();
		CommitTransactionCommand();
	}
	ujobs_session_reset();
	executor.may_commit = false;
}

/* The extension went away under us: there is nothing left to record. */
static void
leave_if_extension_gone(void)
{
	if (!ujobs_worker_extension_is_here())
		proc_exit(0);
}

static void
after_error(ErrorData *error, int n)
{
	const UjobsJob *job = executor.job;
	bool		cancelled = ujobs_slot_end_job(executor.slot);

	executor.job = NULL;
	leave_if_extension_gone();
	MemoryContextSwitchTo(executor.run);
	if (job == NULL)
		ereport(FATAL,
				(errcode(error->sqlerrcode),
				 errmsg("executor could not start a job: %s", error->message)));
	if (n > 1 || cancelled)
		return;
	if (ujobs_interrupt_timed_out())
		error = ujobs_interrupt_timeout_error();
	else if (error->sqlerrcode == ERRCODE_QUERY_CANCELED && ujobs_interrupt_was_cancelled() &&
			 ujobs_batch_pace_forgive_cancel(job->id))
	{
		give_back(job);
		return;
	}
	record_failure(job, error);
}

/* True when the tickets are dealt with; false: a batch failed, run each alone. */
static bool
execute(const UjobsTicket *tickets, int n)
{
	ErrorData  *volatile error = NULL;

	MemoryContextReset(executor.run);
	executor.job = NULL;
	executor.started_at = 0;	/* what fails before its handler never started */
	ujobs_interrupt_reset();
	MemoryContextSwitchTo(executor.run);
	PG_TRY();
	{
		cancellable = true;
		run_transaction(tickets, n);
	}
	PG_CATCH();
	{
		cancellable = false;
		MemoryContextSwitchTo(executor.run);
		error = CopyErrorData();
		FlushErrorState();
		ujobs_current_leave();
		ujobs_worker_recover(executor.run);
	}
	PG_END_TRY();
	cancellable = false;
	QueryCancelPending = false;
	/* Before a failure is recorded: a procedure's SET outlives its abort. */
	reset_session();
	if (error != NULL)
		after_error(error, n);
	else
		(void) ujobs_slot_end_job(executor.slot);
	ujobs_step_leave();
	executor.job = NULL;
	return error == NULL || n == 1;
}

/* ---- batches ---- */

static void
done_with(int n)
{
	if (ujobs_slot_done(executor.slot, n, n))
		ujobs_wakeup_dispatcher();
}

static bool
run_next(void)
{
	UjobsTicket tickets[UJOBS_RING_SIZE];
	UjobsTicket next;
	int			n;
	bool		good;

	if (!ujobs_slot_peek(executor.area, executor.slot, &next))
		return false;
	n = ujobs_slot_take(executor.area, executor.slot, tickets,
						Min(ujobs_batch_pace_batch_size(&next), UJOBS_RING_SIZE));
	if (n == 0)
		return false;
	good = execute(tickets, n);
	if (n > 1)
		ujobs_batch_pace_batch_ended(&tickets[0], good, n);
	if (good)
	{
		done_with(n);
		return true;
	}
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		(void) execute(&tickets[i], 1);
		done_with(1);
	}
	return true;
}

/* ---- birth, loop, death ---- */

/*
 * A job that ended the process by a fatal error of its own failed, and so did
 * one that went on after its timeout; what cancelled a job has written its row.
 * One that was interrupted by SIGTERM is given back, which is doing nothing.
 */
static void
at_exit_record(int code, Datum arg)
{
	const UjobsJob *job = executor.job;
	bool		evicted = job != NULL && ujobs_slot_evicted_job(executor.slot) == job->id;
	ErrorData  *error;

	executor.job = NULL;
	if (job == NULL || code == 0 || (got_terminate && !evicted) ||
		ujobs_slot_end_job(executor.slot))
		return;
	AbortOutOfAnyTransaction();
	MemoryContextSwitchTo(executor.run);
	if (ujobs_interrupt_timed_out())
		error = ujobs_interrupt_timeout_error();
	else
		error =
			ujobs_settle_make_error(ERRCODE_ADMIN_SHUTDOWN,
									"the executor ended with a fatal error while it ran this job");
	if (evicted)
		error->detail = psprintf("%s It went on after it was interrupted, so its process was ended.",
								 error->detail != NULL ? error->detail : "");
	record_failure(job, error);
}

/* Registered first, so it runs last, and whatever the other one does. */
static void
at_exit_free(int code, Datum arg)
{
	ujobs_slot_free(executor.slot, executor.generation,
					code != 0 && ujobs_slot_evicted_job(executor.slot) == 0);
	ujobs_wakeup_dispatcher();
}

static bool
told_to_leave(void)
{
	UjobsSlot	slot;

	/* Another segment: the extension was dropped and made again, the ring here is not in use. */
	if (ujobs_engine_area() != executor.area)
		return true;
	ujobs_slot_copy(executor.slot, &slot);
	return slot.leave || slot.generation != executor.generation;
}

static void
loop(void)
{
	TimestampTz idle_since = GetCurrentTimestamp();
	int64		linger = LINGER_FIRST_US;

	for (;;)
	{
		TimestampTz leave_at;

		CHECK_FOR_INTERRUPTS();
		if (told_to_leave())
			return;
		if (run_next())
		{
			ujobs_session_stats_report(false);
			idle_since = GetCurrentTimestamp();
			ujobs_session_stats_memory(idle_since, ujobs_slot_memory(executor.slot));
			linger = LINGER_US;
			continue;
		}
		(void) ujobs_slot_take(executor.area, executor.slot, NULL, 0);	/* says idle */
		ujobs_session_stats_activity(NULL);
		ujobs_session_stats_report(true);
		leave_at = idle_since + Max((int64) ujobs_guc_worker_idle_timeout * 1000, linger);
		if (GetCurrentTimestamp() >= leave_at)
			return;
		ujobs_worker_wait(ujobs_worker_ms_until(leave_at));
		ujobs_session_follow_defaults(executor.role);
	}
}

static void
start_process(int slot, const UjobsExecutorSpec *spec)
{
	memset(&executor, 0, sizeof(executor));
	executor.slot = slot;
	executor.generation = spec->generation;
	if (!ujobs_slot_attach(slot, spec->generation))
		proc_exit(0);
	before_shmem_exit(at_exit_free, (Datum) 0);
	BackgroundWorkerInitializeConnectionByOid(spec->database, spec->role,
											  UJOBS_COMPAT_CONNECT_FLAGS);
	ujobs_worker_settle_session("ujobs executor");
	ujobs_session_become(spec->role);
	executor.role = spec->role;
	strlcpy(executor.inherited_commit, GetConfigOption("synchronous_commit", false, false),
			sizeof(executor.inherited_commit));
	executor.area = ujobs_engine_area();
	if (executor.area == NULL)
		proc_exit(0);
	executor.run = AllocSetContextCreate(TopMemoryContext, "ujobs run", ALLOCSET_DEFAULT_SIZES);
	executor.job_memory = AllocSetContextCreate(TopMemoryContext, "ujobs handler",
												ALLOCSET_DEFAULT_SIZES);
	ujobs_interrupt_init(on_timeout);
	before_shmem_exit(at_exit_record, (Datum) 0);
	ujobs_wakeup_dispatcher();
}

void
ujobs_executor_main(Datum arg)
{
	UjobsExecutorSpec spec;

	memcpy(&spec, MyBgworkerEntry->bgw_extra, sizeof(spec));
	ujobs_worker_signals(on_terminate, on_cancel);
	start_process(DatumGetInt32(arg), &spec);
	loop();
	proc_exit(0);
}
