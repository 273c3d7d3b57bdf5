/*
 * api_lease_step.c: step_get, step_put, step_suspend and step_await: what a
 * program outside remembers of its job.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "api/api_lease.h"
#include "api/argument.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/json.h"
#include "run/external_step.h"
#include "run/step.h"
#include "run/step_wait.h"

PG_FUNCTION_INFO_V1(ujobs_sql_step_get);
PG_FUNCTION_INFO_V1(ujobs_sql_step_put);
PG_FUNCTION_INFO_V1(ujobs_sql_step_suspend);
PG_FUNCTION_INFO_V1(ujobs_sql_step_await);

static char *
text_argument(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(n));
}

/* Now plus an interval, by the calendar of the session's time zone. */
static TimestampTz
instant_argument(FunctionCallInfo fcinfo, int n, const char *name)
{
	(void) ujobs_lease_interval(fcinfo, n, name);
	return DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
												   TimestampTzGetDatum(GetCurrentTimestamp()),
												   PG_GETARG_DATUM(n)));
}

/* step_get(id, lease, name) */
Datum
ujobs_sql_step_get(PG_FUNCTION_ARGS)
{
	UjobsLease	lease;
	UjobsJob   *job = ujobs_lease_require_mine(fcinfo, "ujobs.step_get()", &lease);
	Jsonb	   *output;

	(void) ujobs_external_step_get(job, text_argument(fcinfo, 2), &output);
	if (output == NULL)
		PG_RETURN_NULL();
	PG_RETURN_JSONB_P(output);
}

/*
 * step_put(id, lease, name, output): an output that is NULL is JSON null, or
 * step_get would not see the step.
 */
Datum
ujobs_sql_step_put(PG_FUNCTION_ARGS)
{
	UjobsLease	lease;
	UjobsJob   *job = ujobs_lease_require_mine(fcinfo, "ujobs.step_put()", &lease);
	Jsonb	   *output;

	if (PG_ARGISNULL(3))
		output = DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum("null")));
	else
		output = PG_GETARG_JSONB_P(3);
	ujobs_external_step_put(job, text_argument(fcinfo, 2), output);
	PG_RETURN_VOID();
}

/* step_suspend(id, lease, name, duration) */
Datum
ujobs_sql_step_suspend(PG_FUNCTION_ARGS)
{
	TimestampTz wake_at = instant_argument(fcinfo, 3, "duration");
	UjobsLease	lease;
	UjobsJob   *job = ujobs_lease_require_mine(fcinfo, "ujobs.step_suspend()", &lease);

	if (!ujobs_external_step_suspend(job, text_argument(fcinfo, 2), &wake_at))
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(wake_at);
}

static Jsonb *
answer(const char *state, Jsonb *payload)
{
	UjobsJson	json = {0};

	ujobs_json_begin_object(&json, NULL);
	ujobs_json_text(&json, "state", state);
	ujobs_json_jsonb(&json, "payload", payload);
	return ujobs_json_end(&json);
}

/* step_await(id, lease, name, event, match, timeout) */
Datum
ujobs_sql_step_await(PG_FUNCTION_ARGS)
{
	static const char *const state[] = {"suspended", "received", "timeout"};
	UjobsLease	lease;
	UjobsStep	wait = {0};
	UjobsJob   *job;
	UjobsExternalWait outcome;
	Jsonb	   *payload;

	ujobs_argument_check_null(fcinfo, 3, "event");
	wait.event = text_argument(fcinfo, 3);
	wait.match = text_argument(fcinfo, 4);
	wait.wake_at = PG_ARGISNULL(5) ? DT_NOEND : instant_argument(fcinfo, 5, "timeout");
	ujobs_step_wait_check_event(wait.event, wait.match);
	job = ujobs_lease_require_mine(fcinfo, "ujobs.step_await()", &lease);
	outcome = ujobs_external_step_await(job, text_argument(fcinfo, 2), &wait, &payload);
	PG_RETURN_JSONB_P(answer(state[outcome], payload));
}
