/*
 * api_lease.c: ack, nack and heartbeat: a program tells how its job goes.
 *
 * Who shows the lease that holds the job may speak for it; with any other
 * nothing changes.  The row stays locked until the caller commits.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "api/api_lease.h"
#include "api/argument.h"
#include "core/clock.h"
#include "core/error.h"
#include "run/external.h"
#include "store/definition_store.h"

PG_FUNCTION_INFO_V1(ujobs_sql_ack);
PG_FUNCTION_INFO_V1(ujobs_sql_nack);
PG_FUNCTION_INFO_V1(ujobs_sql_heartbeat);

/* ---- arguments ---- */

static void
refuse_interval(const char *name, const char *detail)
{
	ereport(ERROR,
			(ujobs_errcode(INVALID_OPTION),
			 errmsg("option \"%s\" has an invalid value", name),
			 errdetail("%s", detail),
			 errhint("Give an interval such as '30 seconds'.")));
}

int64
ujobs_lease_interval(FunctionCallInfo fcinfo, int number, const char *name)
{
	int64		us;

	ujobs_argument_check_null(fcinfo, number, name);
	us = ujobs_clock_interval_us(PG_GETARG_INTERVAL_P(number));
	if (us < 0)
		refuse_interval(name, "It is negative.");
	if (us > UJOBS_MAX_INTERVAL_US)
		refuse_interval(name, "It is longer than 100 years.");
	return us;
}

int64
ujobs_lease_visibility(FunctionCallInfo fcinfo, int number)
{
	int64		us = ujobs_lease_interval(fcinfo, number, "visibility_timeout");

	if (us == 0)
		refuse_interval("visibility_timeout", "It is zero.");
	return us;
}

/* ---- the lease ---- */

static void
check_right(int64 id, int32 definition_id)
{
	const UjobsDefinition *definition = ujobs_definition_by_id(definition_id);

	if (definition == NULL || !ujobs_definition_may_work(definition, GetUserId()))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for job " INT64_FORMAT, id),
				 errdetail("Role \"%s\" may not work on it.", GetUserNameFromId(GetUserId(), true)),
				 errhint("Have the owner of its definition call ujobs.grant_work.")));
}

UjobsJob *
ujobs_lease_mine(FunctionCallInfo fcinfo, const char *function, UjobsLease *lease)
{
	UjobsJob   *job;
	int64		id;
	int32		definition_id;

	ujobs_argument_check_null(fcinfo, 0, "id");
	ujobs_argument_check_null(fcinfo, 1, "lease");
	PreventCommandIfReadOnly(function);
	id = PG_GETARG_INT64(0);
	lease->lease = PG_GETARG_INT64(1);
	/* Before the lock: no other session is to wait for one without the right. */
	definition_id = ujobs_lease_definition(id);
	if (definition_id == 0)
		return NULL;
	check_right(id, definition_id);
	job = ujobs_lease_hold(id, lease);
	return job;
}

UjobsJob *
ujobs_lease_require_mine(FunctionCallInfo fcinfo, const char *function, UjobsLease *lease)
{
	UjobsJob   *job = ujobs_lease_mine(fcinfo, function, lease);

	if (job == NULL)
		ereport(ERROR,
				(ujobs_errcode(JOB_LEASE_LOST),
				 errmsg("the lease does not hold job " INT64_FORMAT, PG_GETARG_INT64(0)),
				 errdetail("The job has ended, was given back or cancelled, or its lease ran out."),
				 errhint("Stop working on the job: another worker may have it.")));
	return job;
}

/* ---- ack ---- */

/* Did this lease finish the job?  Then an ack that got lost on its way is repeated. */
static bool
was_acked(int64 id, int64 lease)
{
	int32		definition_id = 0;
	int64		winner = ujobs_lease_of_done(id, &definition_id);

	if (winner == 0 || winner != lease)
		return false;
	check_right(id, definition_id);
	return true;
}

/* ack(id, lease, result) */
Datum
ujobs_sql_ack(PG_FUNCTION_ARGS)
{
	UjobsLease	lease;
	UjobsJob   *job = ujobs_lease_mine(fcinfo, "ujobs.ack()", &lease);

	if (job == NULL)
		PG_RETURN_BOOL(was_acked(PG_GETARG_INT64(0), PG_GETARG_INT64(1)));
	ujobs_external_done(job, PG_GETARG_INT64(1), PG_ARGISNULL(2) ? NULL : PG_GETARG_JSONB_P(2));
	PG_RETURN_BOOL(true);
}

/* ---- nack ---- */

static UjobsDeadLetter
dead_letter_argument(FunctionCallInfo fcinfo, int number)
{
	if (PG_ARGISNULL(number))
		return UJOBS_DEAD_LETTER_BY_POLICY;
	return PG_GETARG_BOOL(number) ? UJOBS_DEAD_LETTER_NOW : UJOBS_DEAD_LETTER_NEVER;
}

static void
refuse_contradiction(const UjobsNack *nack)
{
	if (nack->dead_letter == UJOBS_DEAD_LETTER_NOW && (nack->park || nack->delay >= 0))
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("option \"dead_letter\" has an invalid value"),
				 errdetail("A dead letter is neither parked nor delayed."),
				 errhint("Pass dead_letter alone, or park or delay without it.")));
}

/* nack(id, lease, error, delay, counts_as_attempt, park, dead_letter) */
Datum
ujobs_sql_nack(PG_FUNCTION_ARGS)
{
	UjobsLease	lease;
	UjobsNack	nack = {.delay = -1};

	if (!PG_ARGISNULL(2))
		nack.error = text_to_cstring(PG_GETARG_TEXT_PP(2));
	if (!PG_ARGISNULL(3))
		nack.delay = ujobs_lease_interval(fcinfo, 3, "delay");
	ujobs_argument_check_null(fcinfo, 4, "counts_as_attempt");
	ujobs_argument_check_null(fcinfo, 5, "park");
	nack.counts = PG_GETARG_BOOL(4);
	nack.park = PG_GETARG_BOOL(5);
	nack.dead_letter = dead_letter_argument(fcinfo, 6);
	refuse_contradiction(&nack);
	PG_RETURN_TEXT_P(cstring_to_text(
		ujobs_external_nack(ujobs_lease_require_mine(fcinfo, "ujobs.nack()", &lease), &nack)));
}

/* ---- heartbeat ---- */

/* heartbeat(id, lease, visibility_timeout) */
Datum
ujobs_sql_heartbeat(PG_FUNCTION_ARGS)
{
	int64		visibility = ujobs_lease_visibility(fcinfo, 2);
	UjobsLease	lease;
	UjobsJob   *job = ujobs_lease_mine(fcinfo, "ujobs.heartbeat()", &lease);

	if (job == NULL)
		PG_RETURN_BOOL(false);
	ujobs_lease_extend(job, ujobs_clock_add(GetCurrentTimestamp(), visibility));
	PG_RETURN_BOOL(true);
}
