/*
 * api_wait.c: wait_for_job.
 *
 * Each look takes a fresh snapshot, so it sees the end of a job that began
 * after the call.  That needs READ COMMITTED, and a job that the caller's own
 * transaction has not written: no process could end that one before the commit.
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "api/api_inspect.h"
#include "core/await.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/slot.h"
#include "core/guc.h"
#include "model/state.h"
#include "store/control_store.h"
#include "store/definition_store.h"
#include "store/history_store.h"

PG_FUNCTION_INFO_V1(ujobs_sql_wait_for_job);

typedef struct Wait
{
	int64		id;
	bool		seen;			/* it was there at an earlier look */
	UjobsWhere	where;
} Wait;

static void
refuse_isolation(void)
{
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("wait_for_job needs isolation level read committed"),
				 errdetail("This transaction's snapshot would never show the end of the job."),
				 errhint("Call it in a transaction of its own.")));
}

/* A job that may not be seen is as one that is not there. */
static bool
may_see(const UjobsWhere *where, Oid role)
{
	const UjobsDefinition *definition = ujobs_definition_by_id(where->definition_id);

	return ujobs_inspect_access(role, definition != NULL ? definition->owner : InvalidOid,
								definition != NULL ? definition->owner_name : NULL,
								where->enqueued_role) != UJOBS_ACCESS_NONE;
}

static void
raise_not_there(const Wait *wait)
{
	ereport(ERROR,
			(ujobs_errcode(JOB_NOT_FOUND),
			 errmsg("job " INT64_FORMAT " does not exist", wait->id),
			 wait->seen ?
			 errdetail("It ended while it was waited for, and its history is not kept.") :
			 errdetail("It never existed, or its history is past its retention."),
			 errhint("Check the id; finished jobs are kept as long as their retention says.")));
}

/* At the first look, which is before any waiting. */
static void
check_first(const Wait *wait, Oid role)
{
	if (!may_see(&wait->where, role))
		raise_not_there(wait);
	if (wait->where.own)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("job " INT64_FORMAT " was written by this transaction", wait->id),
				 errdetail("It cannot run before the transaction commits."),
				 errhint("Commit first, then wait for the job.")));
	if (wait->where.live && !ujobs_await_engine())
		ereport(ERROR,
				(ujobs_errcode(ENGINE_NOT_RUNNING),
				 errmsg("no engine serves this database"),
				 errdetail("Job " INT64_FORMAT " would not run while it is waited for.", wait->id),
				 ujobs_guc_serves_this_database() ?
				 errhint("Call ujobs.start_workers(), or add ujobs to shared_preload_libraries; with too few max_worker_processes it cannot start.") :
				 errhint("Add the database to the setting ujobs.databases and reload.")));
}

static bool
look(void *arg)
{
	Wait	   *wait = arg;
	UjobsIdentity identity;

	ujobs_identity_enter(&identity);
	if (!ujobs_control_locate(wait->id, &wait->where))
		raise_not_there(wait);
	if (!wait->seen)
		check_first(wait, identity.user);
	wait->seen = true;
	ujobs_identity_leave(&identity);
	return !wait->where.live;
}

static void
raise_timeout(const Wait *wait)
{
	bool		running = wait->where.state == UJOBS_STATE_LEASED ||
		ujobs_slot_find_running(wait->id, NULL) >= 0;

	ereport(ERROR,
			(ujobs_errcode(JOB_TIMEOUT),
			 errmsg("job " INT64_FORMAT " has not ended within the timeout", wait->id),
			 errdetail("Its state is %s.",
					   ujobs_state_shown(wait->where.state, wait->where.due_at,
										 ujobs_clock_now(), running)),
			 errhint("Wait longer, or ask ujobs.why what holds the job up.")));
}

Datum
ujobs_sql_wait_for_job(PG_FUNCTION_ARGS)
{
	Wait		wait = {0};
	TimestampTz deadline;
	UjobsIdentity identity;
	Jsonb	   *trace;

	for (int i = 0; i < 2; i++)
	{
		if (PG_ARGISNULL(i))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("argument \"%s\" must not be NULL", i == 0 ? "id" : "timeout"),
					 errhint("Give it a value.")));
	}
	wait.id = PG_GETARG_INT64(0);
	deadline = ujobs_clock_add(GetCurrentTimestamp(),
							   ujobs_clock_interval_us(PG_GETARG_INTERVAL_P(1)));
	refuse_isolation();
	if (!ujobs_await_job(wait.id, deadline, look, &wait))
		raise_timeout(&wait);
	ujobs_identity_enter(&identity);
	trace = ujobs_history_trace(&identity, wait.id);
	ujobs_identity_leave(&identity);
	if (trace == NULL)
		raise_not_there(&wait);	/* it was purged since the last look */
	PG_RETURN_JSONB_P(trace);
}
