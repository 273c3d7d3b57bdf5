/*
 * api_step.c: the step procedures and functions, as SQL calls them.
 *
 * A procedure learns from its call context whether it could commit.  Whatever
 * one of them raises is remembered by the run before it goes on.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "api/argument.h"
#include "core/clock.h"
#include "core/error.h"
#include "run/step.h"
#include "run/step_wait.h"

PG_FUNCTION_INFO_V1(ujobs_sql_step_run);
PG_FUNCTION_INFO_V1(ujobs_sql_step_begin);
PG_FUNCTION_INFO_V1(ujobs_sql_step_end);
PG_FUNCTION_INFO_V1(ujobs_sql_step_result);
PG_FUNCTION_INFO_V1(ujobs_sql_step_sleep);
PG_FUNCTION_INFO_V1(ujobs_sql_step_sleep_until);
PG_FUNCTION_INFO_V1(ujobs_sql_step_wait_for_event);
PG_FUNCTION_INFO_V1(ujobs_sql_step_wait_for_job);

typedef Datum (*StepFunction) (FunctionCallInfo fcinfo, const UjobsStepCall *call);

static bool
is_procedure(FunctionCallInfo fcinfo)
{
	return fcinfo->context != NULL && IsA(fcinfo->context, CallContext);
}

static Datum
call_step(FunctionCallInfo fcinfo, const char *function, StepFunction step)
{
	UjobsStepCall call = {
		.procedure = is_procedure(fcinfo),
		.function = function
	};
	Datum		result = (Datum) 0;

	if (call.procedure)
		call.atomic = ((CallContext *) fcinfo->context)->atomic;
	PG_TRY();
	{
		result = step(fcinfo, &call);
	}
	PG_CATCH();
	{
		ujobs_step_note_error();
		PG_RE_THROW();
	}
	PG_END_TRY();
	return result;
}

/* ---- arguments and results ---- */

static char *
text_argument(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(n));
}

static Jsonb *
jsonb_argument(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : PG_GETARG_JSONB_P(n);
}

static void
refuse_interval(const char *option, const char *detail)
{
	ujobs_argument_refuse(option, detail, "Give a time to wait, such as '3 days'.");
}

/*
 * Now plus the interval, by the calendar of the session's time zone; *fault:
 * what is wrong with it, or NULL.  A replay does not ask: at - clock_timestamp()
 * is negative when it is over.
 */
static TimestampTz
instant_after(const Interval *interval, const char **fault)
{
	TimestampTz now = ujobs_clock_now();
	int64		us = ujobs_clock_interval_us(interval);

	*fault = NULL;
	if (us < 0)
		*fault = "It is negative.";
	if (us > UJOBS_MAX_INTERVAL_US)
		*fault = "It is longer than 100 years.";
	if (*fault != NULL)
		return now;
	return DatumGetTimestampTz(DirectFunctionCall2(
		timestamptz_pl_interval, TimestampTzGetDatum(now), PointerGetDatum(interval)));
}

/* The same under every setting of the session: it becomes part of a name. */
static char *
interval_words(const Interval *interval)
{
	struct pg_itm itm;
	char	   *words = palloc(MAXDATELEN + 1);

	interval2itm(*interval, &itm);
	EncodeInterval(&itm, INTSTYLE_POSTGRES, words);
	return words;
}

/* A wait may have no end. */
static TimestampTz
deadline_argument(FunctionCallInfo fcinfo, int n, const char **fault)
{
	if (PG_ARGISNULL(n))
		return DT_NOEND;
	return instant_after(PG_GETARG_INTERVAL_P(n), fault);
}

/* The row of one INOUT argument, where the function has one. */
static Datum
inout(FunctionCallInfo fcinfo, Jsonb *value)
{
	TupleDesc	desc;
	Datum		datum = PointerGetDatum(value);
	bool		isnull = value == NULL;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		PG_RETURN_VOID();
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), &datum, &isnull));
}

/* ---- commands and blocks ---- */

static Datum
step_run(FunctionCallInfo fcinfo, const UjobsStepCall *call)
{
	bool		has_args = PG_NARGS() > 2;
	Jsonb	   *output;

	/* With three arguments a forgotten one looks like the others. */
	if (PG_NARGS() == 3 && PG_ARGISNULL(2))
		ujobs_argument_refuse_null(
			"args", "To take the result, write CALL ujobs.step_run(name, command, NULL, result).");
	output = ujobs_step_run(call, text_argument(fcinfo, 0), text_argument(fcinfo, 1),
							has_args ? jsonb_argument(fcinfo, 2) : NULL);
	return inout(fcinfo, output);
}

Datum
ujobs_sql_step_run(PG_FUNCTION_ARGS)
{
	return call_step(fcinfo, "step_run", step_run);
}

static Datum
step_begin(FunctionCallInfo fcinfo, const UjobsStepCall *call)
{
	PG_RETURN_BOOL(ujobs_step_begin(call, text_argument(fcinfo, 0)));
}

Datum
ujobs_sql_step_begin(PG_FUNCTION_ARGS)
{
	return call_step(fcinfo, "step_begin", step_begin);
}

static Datum
step_end(FunctionCallInfo fcinfo, const UjobsStepCall *call)
{
	ujobs_step_end(call, jsonb_argument(fcinfo, 0));
	PG_RETURN_VOID();
}

Datum
ujobs_sql_step_end(PG_FUNCTION_ARGS)
{
	return call_step(fcinfo, "step_end", step_end);
}

Datum
ujobs_sql_step_result(PG_FUNCTION_ARGS)
{
	Jsonb	   *output = ujobs_step_result(text_argument(fcinfo, 0));

	if (output == NULL)
		PG_RETURN_NULL();
	PG_RETURN_JSONB_P(output);
}

/* ---- sleeps ---- */

static Datum
step_sleep(FunctionCallInfo fcinfo, const UjobsStepCall *call)
{
	UjobsStepSleep sleep = {0};
	int			n = PG_NARGS() - 1;
	Interval   *duration;

	if (PG_ARGISNULL(n))
		ujobs_argument_refuse_null("duration", "Give the time to sleep, such as '3 days'.");
	duration = PG_GETARG_INTERVAL_P(n);
	if (n == 1 && PG_ARGISNULL(0))
		ujobs_argument_refuse_null("a step's name", "Give each step of a job a name of its own.");
	sleep.name = n == 1 ? text_argument(fcinfo, 0) : NULL;
	sleep.what = interval_words(duration);
	sleep.wake_at = instant_after(duration, &sleep.fault);
	ujobs_step_wait_sleep(call, &sleep);
	PG_RETURN_VOID();
}

Datum
ujobs_sql_step_sleep(PG_FUNCTION_ARGS)
{
	return call_step(fcinfo, "step_sleep", step_sleep);
}

static Datum
step_sleep_until(FunctionCallInfo fcinfo, const UjobsStepCall *call)
{
	UjobsStepSleep sleep = {0};

	if (PG_ARGISNULL(0))
		ujobs_argument_refuse_null("a step's name", "Give each step of a job a name of its own.");
	if (PG_ARGISNULL(1))
		ujobs_argument_refuse_null("wake_at", "Give the instant at which the job goes on.");
	if (TIMESTAMP_NOT_FINITE(PG_GETARG_TIMESTAMPTZ(1)))
		refuse_interval("wake_at", "It never comes, or is infinitely long ago.");
	sleep.name = text_argument(fcinfo, 0);
	sleep.wake_at = PG_GETARG_TIMESTAMPTZ(1);
	ujobs_step_wait_sleep(call, &sleep);
	PG_RETURN_VOID();
}

Datum
ujobs_sql_step_sleep_until(PG_FUNCTION_ARGS)
{
	return call_step(fcinfo, "step_sleep_until", step_sleep_until);
}

/* ---- waits ---- */

static Datum
step_wait_for_event(FunctionCallInfo fcinfo, const UjobsStepCall *call)
{
	char	   *event = text_argument(fcinfo, 1);
	char	   *match = text_argument(fcinfo, 2);
	UjobsStepWait wait = {
		.event = event,
		.match = match,
		.required = !PG_ARGISNULL(4) && PG_GETARG_BOOL(4)
	};

	if (event == NULL)
		ujobs_argument_refuse_null("event", "Name the event to wait for.");
	ujobs_step_wait_check_event(event, match);
	wait.deadline = deadline_argument(fcinfo, 3, &wait.fault);
	return inout(fcinfo, ujobs_step_wait(call, text_argument(fcinfo, 0), &wait));
}

Datum
ujobs_sql_step_wait_for_event(PG_FUNCTION_ARGS)
{
	return call_step(fcinfo, "step_wait_for_event", step_wait_for_event);
}

static Datum
step_wait_for_job(FunctionCallInfo fcinfo, const UjobsStepCall *call)
{
	UjobsStepWait wait = {.deadline = DT_NOEND};

	if (PG_NARGS() > 2)
		wait.deadline = deadline_argument(fcinfo, 2, &wait.fault);

	if (PG_ARGISNULL(1))
		ujobs_argument_refuse_null("job_id", "Give the id that ujobs.enqueue returned.");
	wait.child_id = PG_GETARG_INT64(1);
	return inout(fcinfo, ujobs_step_wait(call, text_argument(fcinfo, 0), &wait));
}

Datum
ujobs_sql_step_wait_for_job(PG_FUNCTION_ARGS)
{
	return call_step(fcinfo, "step_wait_for_job", step_wait_for_job);
}
