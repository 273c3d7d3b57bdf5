/*
 * api_control.c: cancel, retry, pause_queue, resume_queue and purge.
 *
 * The row changes in the caller's transaction and the engine follows at its
 * commit.  A job may move while a call waits for its row (it completes, or
 * another session cancels or retries it), so each call locates the job, tries,
 * and locates it again when it was not where it had been seen.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "api/api_inspect.h"
#include "api/argument.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/slot.h"
#include "core/wakeup.h"
#include "model/state.h"
#include "run/current.h"
#include "store/control_store.h"
#include "store/definition_store.h"
#include "store/history_store.h"
#include "store/job_store.h"
#include "store/lease_store.h"
#include "store/row.h"

#define MAX_REASON_BYTES 8192

PG_FUNCTION_INFO_V1(ujobs_sql_cancel);
PG_FUNCTION_INFO_V1(ujobs_sql_retry);
PG_FUNCTION_INFO_V1(ujobs_sql_pause_queue);
PG_FUNCTION_INFO_V1(ujobs_sql_resume_queue);
PG_FUNCTION_INFO_V1(ujobs_sql_purge);

static void
raise_not_there(int64 id)
{
	ereport(ERROR,
			(ujobs_errcode(JOB_NOT_FOUND),
			 errmsg("job " INT64_FORMAT " does not exist", id),
			 errdetail("It never existed, or its history is past its retention."),
			 errhint("Check the id; finished jobs are kept as long as their retention says.")));
}

/*
 * The job, or UJ018, also for one that the caller may not see; and its
 * definition, whose owner the caller must be.
 */
static const UjobsDefinition *
locate_for(int64 id, const UjobsIdentity *identity, UjobsWhere *where)
{
	const UjobsDefinition *definition;

	if (!ujobs_control_locate(id, where))
		raise_not_there(id);
	definition = ujobs_definition_by_id(where->definition_id);
	if (definition == NULL)
		ereport(ERROR,
				(ujobs_errcode(CORRUPT_STATE),
				 errmsg("job " INT64_FORMAT " has no definition", id),
				 errdetail("Definition %d does not exist.", where->definition_id),
				 errhint("Run SELECT * FROM ujobs.check() and report what it shows.")));
	if (ujobs_inspect_access(identity->user, definition->owner, definition->owner_name,
							 where->enqueued_role) == UJOBS_ACCESS_NONE)
		raise_not_there(id);
	if (!ujobs_definition_may_control(definition, identity->user))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for job " INT64_FORMAT, id),
				 errdetail("Role \"%s\" is not a member of \"%s\", the owner of job definition \"%s\".",
						   GetUserNameFromId(identity->user, true), definition->owner_name,
						   definition->name),
				 errhint("Have the owner of the definition, or a superuser, do it.")));
	return definition;
}

/* By this session's own handler: in an executor, or in a drain, which has no slot. */
static bool
is_own_job(int64 id)
{
	const UjobsJob *job = ujobs_current_job();

	return job != NULL && job->id == id;
}

static bool
is_running(int64 id, const UjobsWhere *where, UjobsSlot *slot)
{
	return where->state == UJOBS_STATE_LEASED || is_own_job(id) ||
		   ujobs_slot_find_running(id, slot) >= 0;
}

/* ---- cancel ---- */

/*
 * A handler that removes its own job's row would take its own completion
 * away, be rolled back for it, and so never be cancelled.
 */
static void
refuse_own_job(int64 id)
{
	if (is_own_job(id))
		ereport(ERROR,
				(ujobs_errcode(JOB_NOT_CANCELLABLE),
				 errmsg("job " INT64_FORMAT " cannot cancel itself", id),
				 errdetail("Its state is running, in this session."),
				 errhint("Call ujobs.fail to end the job at hand.")));
}

static UjobsCancellation
plan_cancellation(int64 id, const UjobsDefinition *definition, const char *reason)
{
	UjobsCancellation c = {.reason = reason};
	int64		retention = ujobs_job_retention(definition, UJOBS_OUTCOME_CANCELLED);
	UjobsSlot	slot;

	c.finished_at = ujobs_clock_now();
	c.keep = retention > 0;
	c.expires_at = ujobs_clock_add(c.finished_at, c.keep ? retention : UJOBS_WAITED_FOR_RETENTION);
	c.slot = ujobs_history_slot_for(c.finished_at, c.expires_at);
	refuse_own_job(id);
	if (ujobs_slot_find_running(id, &slot) >= 0)
	{
		c.attempt = slot.attempt;
		c.started_at = slot.job_started;
	}
	return c;
}

static void
raise_ended(int64 id, UjobsState state)
{
	const char *shown = ujobs_state_shown(state, 0, 0, false);

	ereport(ERROR,
			(ujobs_errcode(JOB_NOT_CANCELLABLE),
			 errmsg("job " INT64_FORMAT " is already %s", id, shown),
			 errdetail("Its state is %s.", shown),
			 errhint("Only a live job can be cancelled; look at it with ujobs.inspect_job.")));
}

static void
announce_gone(int64 id, int32 definition_id)
{
	UjobsHint	hint = {.id = id, .definition_id = definition_id, .kind = UJOBS_HINT_GONE};

	ujobs_wakeup_note(&hint);
	ujobs_wakeup_note_finished(id);
}

/* Returns the partition of a history row that must not outlive the call, or -1. */
static int
cancel(int64 id, const char *reason, const UjobsIdentity *identity)
{
	for (;;)
	{
		UjobsWhere	where;
		const UjobsDefinition *definition = locate_for(id, identity, &where);
		UjobsCancellation c;
		bool		waited_for;

		if (!where.live)
			raise_ended(id, where.state);
		c = plan_cancellation(id, definition, reason);
		if (!ujobs_control_cancel(id, &c))
			continue;			/* it ended while we waited for its row */
		announce_gone(id, where.definition_id);
		if (where.state == UJOBS_STATE_LEASED)
			ujobs_lease_forget(id);
		return c.keep || ujobs_job_waited_for(&id, 1, &waited_for) > 0 ? -1 : c.slot;
	}
}

static const char *
reason_argument(FunctionCallInfo fcinfo)
{
	char	   *reason = PG_ARGISNULL(1) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(1));

	if (reason != NULL && strlen(reason) > MAX_REASON_BYTES)
		ujobs_argument_refuse("reason", psprintf("It has %zu bytes of %d.", strlen(reason), MAX_REASON_BYTES),
							  "Give a sentence.");
	return reason;
}

Datum
ujobs_sql_cancel(PG_FUNCTION_ARGS)
{
	UjobsIdentity identity;
	const char *reason = reason_argument(fcinfo);
	int64		id;
	int			unkept;
	Jsonb	   *trace;

	ujobs_argument_check_null(fcinfo, 0, "id");
	PreventCommandIfReadOnly("ujobs.cancel()");
	id = PG_GETARG_INT64(0);
	ujobs_identity_enter(&identity);
	unkept = cancel(id, reason, &identity);
	trace = ujobs_history_trace(&identity, id);
	if (unkept >= 0)
		ujobs_control_forget(id, (int16) unkept);	/* retention 0: it stood there for the trace alone */
	ujobs_identity_leave(&identity);
	if (trace == NULL)
		PG_RETURN_NULL();
	PG_RETURN_JSONB_P(trace);
}

/* ---- retry ---- */

static void
refuse_running(int64 id, const UjobsWhere *where)
{
	UjobsSlot	slot;

	/* One that was cancelled starts again when the attempt that goes on has ended. */
	if (where->state == UJOBS_STATE_CANCELLED && !is_own_job(id))
		return;
	if (is_running(id, where, &slot))
		ereport(ERROR,
				(ujobs_errcode(JOB_NOT_CANCELLABLE),
				 errmsg("job " INT64_FORMAT " is running", id),
				 errdetail("Its state is running."),
				 errhint("Wait until the attempt ends, or cancel the job first.")));
}

static void
refuse_dropped(int64 id, const UjobsDefinition *definition)
{
	if (definition->dropped)
		ereport(ERROR,
				(ujobs_errcode(JOB_UNKNOWN),
				 errmsg("job definition \"%s\" of job " INT64_FORMAT " has been dropped",
						definition->name, id),
				 errdetail("A job runs under the definition it was enqueued for, never under a later one of the same name."),
				 errhint("Define it again and enqueue a new job.")));
}

static void
raise_key_held(int64 id, const UjobsDefinition *definition, const UjobsRestarted *wanted)
{
	ereport(ERROR,
			(ujobs_errcode(JOB_DUPLICATE),
			 errmsg("key \"%s\" of job " INT64_FORMAT " is held by another live job", wanted->key, id),
			 wanted->holder != 0 ?
			 errdetail("Job " INT64_FORMAT " of definition \"%s\" holds it.", wanted->holder,
					   definition->name) :
			 errdetail("A job of definition \"%s\" held it and has just ended.", definition->name),
			 errhint("Retry the job when the other one has ended.")));
}

static UjobsRestart
restart(int64 id, const UjobsWhere *where, TimestampTz now, UjobsIdentity *identity,
		UjobsRestarted *restarted)
{
	if (where->live)
		return ujobs_control_restart(id, now, identity, restarted);
	return ujobs_control_revive(id, where, now, identity, restarted);
}

/* Raised when the job has been restarted already: the error undoes that. */
static void
drop_steps(int64 id, const char *step, TimestampTz now)
{
	if (step != NULL && !ujobs_control_drop_steps(id, step, now))
		ereport(ERROR,
				(ujobs_errcode(JOB_NOT_FOUND),
				 errmsg("job " INT64_FORMAT " has no step \"%s\"", id, step),
				 errdetail("No attempt of it completed or began a step of that name."),
				 errhint("Pass NULL to keep every step, or a name that ujobs.inspect_job shows.")));
}

static void
announce_restarted(int64 id, int32 definition_id, const UjobsRestarted *restarted, TimestampTz now)
{
	UjobsJob	job = {
		.id = id,
		.definition_id = definition_id,
		.queue = restarted->queue,
		.tenant = restarted->tenant,
		.priority = restarted->priority
	};

	ujobs_row_announce(&job, now);
}

static void
retry(int64 id, const char *step, UjobsIdentity *identity)
{
	TimestampTz now = ujobs_clock_now();
	UjobsWhere	where;
	UjobsRestarted restarted;
	const UjobsDefinition *definition;
	UjobsRestart outcome;

	do
	{
		definition = locate_for(id, identity, &where);
		refuse_running(id, &where);
		refuse_dropped(id, definition);
		outcome = restart(id, &where, now, identity, &restarted);
	} while (outcome == UJOBS_RESTART_MOVED);
	if (outcome == UJOBS_RESTART_KEY_HELD)
		raise_key_held(id, definition, &restarted);
	drop_steps(id, step, now);
	announce_restarted(id, where.definition_id, &restarted, now);
}

/* retry(id) and retry_from_step(id, step) */
Datum
ujobs_sql_retry(PG_FUNCTION_ARGS)
{
	UjobsIdentity identity;
	const char *step = NULL;
	int64		id;
	Jsonb	   *trace;

	ujobs_argument_check_null(fcinfo, 0, "id");
	PreventCommandIfReadOnly("ujobs.retry()");
	id = PG_GETARG_INT64(0);
	if (PG_NARGS() > 1 && !PG_ARGISNULL(1))
		step = text_to_cstring(PG_GETARG_TEXT_PP(1));
	ujobs_identity_enter(&identity);
	retry(id, step, &identity);
	trace = ujobs_history_trace(&identity, id);
	ujobs_identity_leave(&identity);
	if (trace == NULL)
		PG_RETURN_NULL();
	PG_RETURN_JSONB_P(trace);
}

/* ---- queues ---- */

static char *
queue_argument(FunctionCallInfo fcinfo, int number)
{
	char	   *queue = ujobs_argument_required(fcinfo, number, "queue");

	ujobs_argument_check_name("queue", queue);
	return queue;
}

static void
set_paused(const char *queue, bool paused)
{
	UjobsIdentity identity;

	PreventCommandIfReadOnly(paused ? "ujobs.pause_queue()" : "ujobs.resume_queue()");
	ujobs_identity_enter(&identity);
	if (ujobs_control_pause_queue(queue, paused))
		ujobs_definition_invalidate();
	ujobs_identity_leave(&identity);
}

Datum
ujobs_sql_pause_queue(PG_FUNCTION_ARGS)
{
	set_paused(queue_argument(fcinfo, 0), true);
	PG_RETURN_VOID();
}

Datum
ujobs_sql_resume_queue(PG_FUNCTION_ARGS)
{
	set_paused(queue_argument(fcinfo, 0), false);
	PG_RETURN_VOID();
}

/* ---- purge ---- */

static int64
age_argument(FunctionCallInfo fcinfo, int number)
{
	int64		us;

	ujobs_argument_check_null(fcinfo, number, "older_than");
	us = ujobs_clock_interval_us(PG_GETARG_INTERVAL_P(number));
	if (us < 0 || us > UJOBS_MAX_INTERVAL_US)
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("option \"older_than\" has an invalid value"),
				 errdetail("It takes an interval from 0 to 100 years."),
				 errhint("Pass interval '0' to remove all history.")));
	return us;
}

Datum
ujobs_sql_purge(PG_FUNCTION_ARGS)
{
	UjobsIdentity identity;
	int64		age = age_argument(fcinfo, 0);
	const char *queue = PG_ARGISNULL(1) ? NULL : queue_argument(fcinfo, 1);
	int64		removed;

	PreventCommandIfReadOnly("ujobs.purge()");

	/* The real clock, whatever ujobs.clock says: what is purged is gone. */
	ujobs_identity_enter(&identity);
	removed = ujobs_control_purge(ujobs_clock_add(GetCurrentTimestamp(), -age), queue);
	ujobs_identity_leave(&identity);
	PG_RETURN_INT64(removed);
}
