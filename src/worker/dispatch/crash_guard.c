/*
 * crash_guard.c: step 3 of the walk, after a crash of the server.
 *
 * A job may run for hours, so it has the engine for itself only for
 * UJOBS_PROBATION_US and is trusted then; if it crashes the server later with
 * others beside it, again and again, that counts too.  The next attempt of a
 * job that was found to be the cause is a probation run again.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/hash.h"
#include "core/identity.h"
#include "run/settle.h"
#include "store/definition_store.h"
#include "store/job_store.h"
#include "worker/dispatch/crash_guard.h"
#include "worker/worker.h"

typedef struct Waiting
{
	UjobsTicket ticket;
	TimestampTz due_at;
} Waiting;

static List *waiting = NIL;
static bool active = false;

/* ---- at the start ---- */

/*
 * Counts the attempt, with synchronous commit, or the next crash would lose
 * it.  False: it was the last one.
 */
static bool
count_attempt(UjobsJob *job)
{
	const UjobsDefinition *definition = ujobs_definition_by_id(job->definition_id);
	UjobsIdentity identity;
	UjobsVerdict verdict;
	ErrorData  *error = ujobs_settle_make_error(ERRCODE_CRASH_SHUTDOWN,
												"the server crashed while this job ran");

	Assert(IsTransactionState());
	if (!job->resumed)
		job->attempt++;
	ujobs_settle_failure(definition, job, error, GetCurrentTimestamp(), &verdict);
	(void) set_config_option("synchronous_commit", "on", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_LOCAL, true, 0, false);
	ujobs_identity_enter(&identity);
	(void) ujobs_job_settle(job, &verdict, GetCurrentTimestamp());
	ujobs_identity_leave(&identity);
	job->due_at = verdict.due_at;
	return verdict.outcome == UJOBS_OUTCOME_RETRY;
}

static void
add_job(const UjobsJob *job)
{
	UjobsTicket ticket = {
		.id = job->id,
		.definition_id = job->definition_id,
		.queue_hash = ujobs_hash_queue(job->queue),
		.tenant_hash = ujobs_hash_tenant(job->tenant)
	};

	ujobs_crash_guard_add(&ticket, job->due_at);
}

static UjobsJob *
fetch(int64 id)
{
	List	   *jobs = ujobs_job_fetch(&id, 1, GetCurrentTimestamp());
	UjobsJob   *job = jobs == NIL ? NULL : linitial(jobs);

	if (job != NULL && job->state == UJOBS_STATE_SUSPENDED)
		job->due_at = Min(job->due_at, GetCurrentTimestamp());	/* its wait was over before its deadline */
	return job;
}

void
ujobs_crash_guard_examine(const UjobsCrashedJob *crashed, bool running)
{
	bool		is_cause = crashed->alone || crashed->crashes > (crashed->was_trusted ? 2 : 1);
	UjobsJob   *job;
	bool		again;

	if (crashed->trusted || running)
	{
		ujobs_crash_guard_adopt();
		return;					/* it was not this one, or its probation began before this process did */
	}
	ujobs_worker_begin();
	job = fetch(crashed->job_id);
	again = job != NULL && (!is_cause || count_attempt(job));
	if (again)
		add_job(job);
	ujobs_worker_commit();
	if (!again)
		ujobs_crashmark_clear(MyDatabaseId, crashed->job_id);
	else if (is_cause)
		ujobs_crashmark_keep(MyDatabaseId, crashed->job_id);
	if (job != NULL && is_cause)
		ereport(LOG, (errmsg("job " INT64_FORMAT " was running when the server crashed: its attempt counts",
							 crashed->job_id)));
}

/* ---- those that wait ---- */

void
ujobs_crash_guard_adopt(void)
{
	active = true;
}

bool
ujobs_crash_guard_is_active(void)
{
	return active;
}

void
ujobs_crash_guard_add(const UjobsTicket *of, TimestampTz due_at)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	Waiting    *w = palloc0(sizeof(Waiting));

	w->ticket = *of;
	w->ticket.begun = 0;
	w->ticket.flags = UJOBS_TICKET_PROBATION | UJOBS_TICKET_WOKEN;	/* it ran, so it may run */
	w->ticket.batch = 1;
	w->due_at = due_at;
	waiting = lappend(waiting, w);
	active = true;
	MemoryContextSwitchTo(old);
}

static Waiting *
find(int64 id)
{
	ListCell   *lc;

	foreach(lc, waiting)
	{
		Waiting    *w = lfirst(lc);

		if (w->ticket.id == id)
			return w;
	}
	return NULL;
}

bool
ujobs_crash_guard_has(int64 id)
{
	return find(id) != NULL;
}

UjobsTicket *
ujobs_crash_guard_due(int n, TimestampTz now)
{
	ListCell   *lc;

	foreach(lc, waiting)
	{
		Waiting    *w = lfirst(lc);

		if (w->due_at <= now && n-- == 0)
			return &w->ticket;
	}
	return NULL;
}

static void
remove_waiting(int64 id)
{
	Waiting    *w = find(id);

	Assert(w != NULL);
	waiting = list_delete_ptr(waiting, w);
	pfree(w);
}

void
ujobs_crash_guard_begin(int64 id)
{
	ujobs_crashmark_try(MyDatabaseId, id);
	remove_waiting(id);
}

void
ujobs_crash_guard_forget(int64 id)
{
	ujobs_crashmark_clear(MyDatabaseId, id);
	remove_waiting(id);
}

void
ujobs_crash_guard_trust(int64 id)
{
	ujobs_crashmark_trust(MyDatabaseId, id);
}

void
ujobs_crash_guard_end(int64 id)
{
	if (active)
		ujobs_crashmark_clear(MyDatabaseId, id);
}

TimestampTz
ujobs_crash_guard_next(TimestampTz now)
{
	TimestampTz next = DT_NOEND;
	ListCell   *lc;

	foreach(lc, waiting)
	{
		const Waiting *w = lfirst(lc);

		if (w->due_at > now)
			next = Min(next, w->due_at);
	}
	return next;
}
