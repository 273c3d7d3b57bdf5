/*
 * api_why.c: ujobs.why(id), the reason of a job's state as a sentence.
 *
 * Rows are asked first (paused, delayed, suspended), then the engine, then
 * the limits, because that is the order in which they hold a job back.  What
 * follows "waiting:" is the first thing that would have to change.
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "core/activity.h"
#include "core/clock.h"
#include "core/guc.h"
#include "core/hash.h"
#include "core/identity.h"
#include "core/json.h"
#include "core/slot.h"
#include "model/state.h"
#include "run/execution_plan.h"
#include "store/definition_store.h"
#include "store/history_store.h"
#include "store/store_identity.h"

PG_FUNCTION_INFO_V1(ujobs_sql_why);

typedef struct Explanation
{
	char	   *reason;
	const char *blocked_by;		/* NULL: nothing to do about it */
} Explanation;

static char *
instant(TimestampTz t)
{
	char	   *text;

	if (TIMESTAMP_NOT_FINITE(t))
		return "further notice";
	text = pstrdup(timestamptz_to_str(t));
	return text;
}

static Explanation
blocked(const char *by, char *reason)
{
	Explanation e = {reason, by};

	return e;
}

static Explanation
explain_ended(const UjobsJobFacts *f)
{
	const char *why = f->reason;

	if (why == NULL && f->entitled)
		why = f->error;
	switch (f->state)
	{
		case UJOBS_STATE_DONE:
			return blocked(NULL, psprintf("done: finished at %s in attempt %d", instant(f->at),
										  f->attempt));
		case UJOBS_STATE_DEAD:
			return blocked(NULL, psprintf("dead: gave up at %s after attempt %d of %d%s%s",
										  instant(f->at), f->attempt, f->max_attempts,
										  why ? ": " : "", why ? why : ""));
		default:
			return blocked(NULL, psprintf("cancelled at %s%s%s", instant(f->at), why ? ": " : "",
										  why ? why : ""));
	}
}

static Explanation
explain_running(const UjobsJobFacts *f, const UjobsSlot *slot)
{
	int			attempt = f->state == UJOBS_STATE_PENDING ? f->attempt + 1 : f->attempt;

	return blocked(NULL, psprintf("running: attempt %d of %d since %s in process %d", attempt,
								  f->max_attempts, instant(slot->job_started), (int) slot->pid));
}

static Explanation
explain_delayed(const UjobsJobFacts *f)
{
	if (f->attempt > 0 && f->error != NULL)
		return blocked(NULL, psprintf("delayed until %s: retry after attempt %d of %d failed%s%s",
									  instant(f->at), f->attempt, f->max_attempts,
									  f->entitled ? ": " : "", f->entitled ? f->error : ""));
	return blocked(NULL, psprintf("delayed until %s: its run_at is in the future", instant(f->at)));
}

/* What holds back all jobs of the database; reason NULL when nothing does. */
static Explanation
explain_engine(void)
{
	bool		no_worker;
	UjobsEngineState state = ujobs_activity_engine(&no_worker);

	if (!ujobs_guc_serves_this_database())
		return blocked(
			"ujobs.databases",
			psprintf(
				"waiting: the setting ujobs.databases does not name database \"%s\", so no engine runs in it",
				get_database_name(MyDatabaseId)));
	if (no_worker)
		return blocked("max_worker_processes",
					   "waiting: no background worker could be started because max_worker_processes is exhausted");
	switch (state)
	{
		case UJOBS_ENGINE_RUNNING:
			return blocked(NULL, NULL);
		case UJOBS_ENGINE_PAUSED:
			return blocked("engine",
						   "waiting: the engine is paused because this database was restored or copied from another database; call ujobs.start_workers() to accept it");
		case UJOBS_ENGINE_DRAINING:
		case UJOBS_ENGINE_STOPPED:
			return blocked(
				"engine",
				"waiting: the engine was stopped; call ujobs.start_workers() to start it");
		case UJOBS_ENGINE_NONE:
		case UJOBS_ENGINE_DOWN:
			break;
	}
	if (ujobs_store_identity_check() == UJOBS_STORE_STRANGE)
		return blocked("engine",
					   "waiting: this database was restored or copied from another database, and no engine runs in it; call ujobs.start_workers() to accept it");
	return blocked(
		"engine",
		"waiting: no engine runs in this database; call ujobs.start_workers() to start it");
}

static Explanation
explain_tenant(const UjobsJobFacts *f)
{
	uint32		queue = ujobs_hash_queue(f->queue);
	uint64		tenant = ujobs_hash_tenant(f->tenant);
	TimestampTz until;

	if (tenant == 0)
		return blocked(NULL, NULL);
	if (f->per_tenant > 0 &&
		ujobs_activity_units(UJOBS_SHOWN_TENANT, queue, tenant) >= f->per_tenant)
		return blocked(f->queue,
					   psprintf("waiting: tenant \"%s\" is at its limit of %d in queue \"%s\"",
								f->tenant, f->per_tenant, f->queue));
	until = f->rate_per_tenant > 0 ? ujobs_activity_rate_until(queue, tenant) : 0;
	if (until > GetCurrentTimestamp())
		return blocked(
			f->queue,
			psprintf("waiting: tenant \"%s\" is at its rate of %d in %s in queue \"%s\" until %s",
					 f->tenant, f->rate_per_tenant, f->rate_window, f->queue, instant(until)));
	return blocked(NULL, NULL);
}

/* The limits that the dispatcher counts units of; reason NULL when none is reached. */
static Explanation
explain_limits(const UjobsJobFacts *f)
{
	if (f->concurrency > 0 &&
		ujobs_activity_units(UJOBS_SHOWN_DEFINITION, f->definition_id, 0) >= f->concurrency)
		return blocked(f->definition, psprintf("waiting: job \"%s\" is at its limit of %d running",
											   f->definition, f->concurrency));
	if (f->queue_concurrency > 0 &&
		ujobs_activity_units(UJOBS_SHOWN_QUEUE, ujobs_hash_queue(f->queue), 0) >=
			f->queue_concurrency)
		return blocked(f->queue, psprintf("waiting: queue \"%s\" is at its limit of %d running",
										  f->queue, f->queue_concurrency));
	return explain_tenant(f);
}

/* What is there for all; reason NULL when there is some. */
static Explanation
explain_workers(const UjobsJobFacts *f)
{
	const UjobsDefinition *definition = ujobs_definition_by_id(f->definition_id);
	int			idle;

	if (ujobs_guc_max_running_per_owner > 0 && !f->external && definition != NULL &&
		ujobs_activity_running_of_role(definition->owner) >= ujobs_guc_max_running_per_owner)
		return blocked(
			"ujobs.max_running_per_owner",
			psprintf("waiting: owner \"%s\" is at its limit of %d running jobs (ujobs.max_running_per_owner)",
					 definition->owner_name, ujobs_guc_max_running_per_owner));
	if (ujobs_guc_max_running > 0 && ujobs_activity_units_of_database() >= ujobs_guc_max_running)
		return blocked(
			"ujobs.max_running",
			psprintf("waiting: the database is at its limit of %d running jobs (ujobs.max_running)",
					 ujobs_guc_max_running));
	if (!f->external && ujobs_activity_executors(&idle) >= ujobs_guc_max_workers && idle == 0)
		return blocked("ujobs.max_workers",
					   psprintf("waiting: all %d workers (ujobs.max_workers) are busy",
								ujobs_guc_max_workers));
	return blocked(NULL, NULL);
}

/* Until an executor finds out and suspends the job; reason NULL when nothing is missing. */
static Explanation
explain_owner(const UjobsJobFacts *f)
{
	const UjobsDefinition *definition = f->external ? NULL :
													  ujobs_definition_by_id(f->definition_id);
	char	   *missing =
		definition == NULL ? NULL : ujobs_execution_plan_missing_owner(definition, true);

	if (missing == NULL)
		return blocked(NULL, NULL);
	return blocked(f->definition, psprintf("waiting: %s", missing));
}

/* What holds back a job that is due; reason NULL when nothing does. */
static Explanation
explain_due(const UjobsJobFacts *f)
{
	Explanation e;

	if (f->definition == NULL || f->dropped)
		return blocked(NULL, "waiting: its definition was dropped, so the engine will cancel it");
	if (f->queue_paused)
		return blocked(f->queue, psprintf("waiting: queue \"%s\" is paused", f->queue));
	e = explain_owner(f);
	if (e.reason == NULL)
		e = explain_engine();
	if (e.reason == NULL)
		e = explain_limits(f);
	if (e.reason == NULL)
		e = explain_workers(f);
	if (e.reason == NULL && f->external)
		return blocked(NULL, "waiting: for a program to claim it");
	return e;
}

static Explanation
explain_ready(const UjobsJobFacts *f)
{
	Explanation e = explain_due(f);

	if (e.reason == NULL)
		return blocked(NULL, "ready: it starts as soon as jobs ahead of it have started");
	return e;
}

/* " until T", or nothing for a wait without end. */
static char *
until(TimestampTz t)
{
	return TIMESTAMP_NOT_FINITE(t) ? "" : psprintf(" until %s", instant(t));
}

/* A match is payload, as a key is. */
static Explanation
explain_step(const UjobsJobFacts *f)
{
	bool		match = f->match != NULL && f->entitled;

	if (f->event != NULL)
		return blocked(f->event,
					   psprintf("suspended: waiting for event \"%s\"%s%s%s%s in step \"%s\"",
								f->event, match ? " (match \"" : "", match ? f->match : "",
								match ? "\")" : "", until(f->wake_at), f->step));
	if (f->child_id != 0)
		return blocked(psprintf("job " INT64_FORMAT, f->child_id),
					   psprintf("suspended: waiting for job " INT64_FORMAT "%s in step \"%s\"",
								f->child_id, until(f->wake_at), f->step));
	return blocked(NULL,
				   psprintf("suspended: sleeping%s in step \"%s\"", until(f->wake_at), f->step));
}

static Explanation
explain_suspended(const UjobsJobFacts *f, TimestampTz now)
{
	Explanation e;

	if (f->reason != NULL)
		return blocked(f->definition, psprintf("suspended: %s", f->reason));
	if (f->at > now && f->step != NULL)
		return explain_step(f);
	if (f->at > now)
		return blocked(NULL, psprintf("suspended until %s", instant(f->at)));
	e = explain_due(f);
	if (e.reason == NULL)
		return blocked(
			NULL,
			"suspended: its wait is over, and it goes on as soon as jobs ahead of it have started");
	return e;
}

static Explanation
explain(const UjobsJobFacts *f, int64 id, const char **shown)
{
	TimestampTz now = ujobs_clock_now();
	UjobsSlot	slot;
	bool		running =
		!ujobs_state_is_terminal(f->state) && ujobs_slot_find_running(id, &slot) >= 0;

	*shown = ujobs_state_shown(f->state, f->at, now, running);
	if (ujobs_state_is_terminal(f->state))
		return explain_ended(f);
	if (running)
		return explain_running(f, &slot);
	if (f->state == UJOBS_STATE_LEASED)
		return blocked(NULL,
					   psprintf("running: claimed by a program outside until %s", instant(f->at)));
	if (f->state == UJOBS_STATE_SUSPENDED)
		return explain_suspended(f, now);
	if (f->at > now)
		return explain_delayed(f);
	return explain_ready(f);
}

/* ujobs.why(id bigint) */
Datum
ujobs_sql_why(PG_FUNCTION_ARGS)
{
	int64		id = PG_GETARG_INT64(0);
	UjobsIdentity identity;
	UjobsJobFacts facts;
	Explanation e;
	const char *state;
	bool		found;
	UjobsJson	json = {0};

	ujobs_identity_enter(&identity);
	found = ujobs_history_facts(&identity, id, &facts);
	ujobs_identity_leave(&identity);
	if (!found)
		PG_RETURN_NULL();
	e = explain(&facts, id, &state);
	ujobs_json_begin_object(&json, NULL);
	ujobs_json_text(&json, "state", state);
	ujobs_json_text(&json, "reason", e.reason);
	ujobs_json_text(&json, "blockedBy", e.blocked_by);
	PG_RETURN_JSONB_P(ujobs_json_end(&json));
}
