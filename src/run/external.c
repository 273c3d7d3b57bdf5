/*
 * external.c: steps 6 and 7 of the walk for a job that a program outside does.
 *
 * Whether and when a failed attempt is tried again is decided as for jobs
 * inside (settle.c); a program may ask for something else with its nack.
 * Leases use the real clock, whatever the session's is.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "core/clock.h"
#include "core/error.h"
#include "core/wakeup.h"
#include "model/retry.h"
#include "run/external.h"
#include "run/settle.h"
#include "run/step_memory.h"
#include "store/definition_store.h"
#include "store/step_store.h"

/* The row is locked, so only a snapshot older than the claim does not see it as it is. */
static void
refuse_old_snapshot(int64 id)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not serialize access to job " INT64_FORMAT, id),
			 errdetail("It was claimed after this transaction took its snapshot."),
			 errhint("Retry the transaction, or use isolation level read committed.")));
}

static void
announce_gone(const UjobsJob *job)
{
	UjobsHint	hint = {.id = job->id, .definition_id = job->definition_id, .kind = UJOBS_HINT_GONE};

	ujobs_wakeup_note(&hint);
}

static void
push_latest(void)
{
	CommandCounterIncrement();
	PushActiveSnapshot(GetLatestSnapshot());
}

/* ---- done ---- */

static Jsonb *
archive_steps(const UjobsJob *job, bool kept)
{
	Jsonb	   *archived;

	push_latest();
	archived = ujobs_step_memory_archive_list(job->id, ujobs_step_load(job->id), kept);
	PopActiveSnapshot();
	return archived;
}

void
ujobs_external_done(UjobsJob *job, int64 lease, Jsonb *result)
{
	const UjobsDefinition *definition = ujobs_definition_by_id(job->definition_id);
	UjobsFinish finish = {
		.job = job,
		.result = result,
		.started_at = job->started_at,
		.retention = ujobs_job_retention(definition, UJOBS_OUTCOME_DONE),
		.lease = lease
	};

	finish.steps = archive_steps(job, finish.retention > 0);
	push_latest();
	if (!ujobs_job_finish(&finish, 1, GetCurrentTimestamp()))
		elog(ERROR, "job " INT64_FORMAT " changed while its row was locked", job->id);
	PopActiveSnapshot();
	ujobs_lease_remove(job);
	announce_gone(job);
}

/* ---- failed ---- */

static const char *
settle(UjobsJob *job, UjobsVerdict *verdict, TimestampTz now)
{
	UjobsIdentity identity;

	verdict->started_at = job->started_at;
	ujobs_identity_enter(&identity);
	if (!ujobs_job_settle(job, verdict, now))
		refuse_old_snapshot(job->id);
	ujobs_identity_leave(&identity);
	ujobs_settle_log(job, verdict);
	ujobs_lease_remove(job);
	if (verdict->outcome == UJOBS_OUTCOME_DEAD || verdict->outcome == UJOBS_OUTCOME_CANCELLED)
		announce_gone(job);
	if (verdict->outcome == UJOBS_OUTCOME_DEAD)
		return "dead";
	if (verdict->outcome == UJOBS_OUTCOME_CANCELLED)
		return "cancelled";
	return verdict->due_at <= now ? "ready" : "delayed";
}

/* An exception of a program has no SQLSTATE; this class is for those. */
static ErrorData *
error_of(const UjobsNack *nack)
{
	return ujobs_settle_make_error(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION,
								   nack->error != NULL ? nack->error :
														 "the worker gave up the attempt");
}

static const char *
park(UjobsJob *job, const UjobsNack *nack, TimestampTz now)
{
	UjobsSuspension suspension = {
		.due_at = nack->delay < 0 ? DT_NOEND : ujobs_clock_add(now, nack->delay),
		.give_back = true,
		.reason = "parked by its worker",
		.error = nack->error != NULL ? ujobs_settle_error(error_of(nack)) : NULL
	};

	if (nack->delay < 0)
		suspension.reason = "parked by its worker until it is retried";
	ujobs_lease_suspend(job, &suspension);
	return "suspended";
}

/* The attempt was none. */
static void
give_back(const UjobsDefinition *definition, const UjobsJob *job, TimestampTz now,
		  UjobsVerdict *verdict)
{
	verdict->outcome = UJOBS_OUTCOME_RETRY;
	verdict->attempt = Max(job->attempt - 1, 0);
	verdict->due_at = definition == NULL ? now :
		ujobs_clock_add(now, ujobs_retry_delay(&definition->retry, Max(job->attempt, 1)));
}

static void
dead_letter(const UjobsDefinition *definition, UjobsVerdict *verdict)
{
	verdict->outcome = UJOBS_OUTCOME_DEAD;
	verdict->retention = ujobs_job_retention(definition, UJOBS_OUTCOME_DEAD);
	verdict->reason = NULL;
}

static void
drop(const UjobsDefinition *definition, UjobsVerdict *verdict)
{
	verdict->outcome = UJOBS_OUTCOME_CANCELLED;
	verdict->retention = ujobs_job_retention(definition, UJOBS_OUTCOME_CANCELLED);
	verdict->reason = "dropped";
}

const char *
ujobs_external_nack(UjobsJob *job, const UjobsNack *nack)
{
	TimestampTz now = GetCurrentTimestamp();
	const UjobsDefinition *definition = ujobs_definition_by_id(job->definition_id);
	ErrorData  *error = error_of(nack);
	UjobsVerdict verdict;

	if (nack->park)
		return park(job, nack, now);
	ujobs_settle_failure(definition, job, error, now, &verdict);
	if (definition == NULL || definition->dropped)
		return settle(job, &verdict, now);
	if (nack->dead_letter == UJOBS_DEAD_LETTER_NOW)
	{
		dead_letter(definition, &verdict);
		verdict.error = ujobs_settle_error(error);
	}
	else if (!nack->counts)
	{
		give_back(definition, job, now, &verdict);
		verdict.error = ujobs_settle_error(error);
	}
	else if (nack->dead_letter == UJOBS_DEAD_LETTER_NEVER && verdict.outcome == UJOBS_OUTCOME_DEAD)
		drop(definition, &verdict);
	if (nack->delay >= 0)
		verdict.due_at = ujobs_clock_add(now, nack->delay);
	return settle(job, &verdict, now);
}

void
ujobs_external_expire(UjobsJob *job, const UjobsLease *lease)
{
	TimestampTz now = GetCurrentTimestamp();
	ErrorData *error = ujobs_settle_make_error(UJOBS_ERRCODE(JOB_LEASE_LOST),
											   psprintf("the lease of worker \"%s\" ran out",
														lease->worker));
	UjobsVerdict verdict;

	error->detail = psprintf("It ended at %s, without ack, nack or heartbeat.",
							 timestamptz_to_str(lease->visible_at));
	error->hint =
		"Claim with a longer visibility_timeout, or call ujobs.heartbeat while the job is worked on.";
	ujobs_settle_failure(ujobs_definition_by_id(job->definition_id), job, error, now, &verdict);
	(void) settle(job, &verdict, now);
}
