/*
 * api_in_job.c: what a handler may ask and say about its own job.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "core/clock.h"
#include "core/error.h"
#include "core/json.h"
#include "run/current.h"
#include "store/definition_store.h"

PG_FUNCTION_INFO_V1(ujobs_sql_current_job);
PG_FUNCTION_INFO_V1(ujobs_sql_fail);
PG_FUNCTION_INFO_V1(ujobs_sql_retry_after);

static Jsonb *
describe_job(const UjobsJob *job)
{
	const UjobsDefinition *definition = ujobs_definition_by_id(job->definition_id);
	UjobsJson	json = {0};

	ujobs_json_begin_object(&json, NULL);
	ujobs_json_number(&json, "id", job->id);
	ujobs_json_text(&json, "runId",
					DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(&job->run_id))));
	ujobs_json_text(&json, "name", definition != NULL ? definition->name : NULL);
	ujobs_json_text(&json, "queue", job->queue);
	ujobs_json_number(&json, "attempt", job->attempt);
	ujobs_json_number(&json, "maxAttempts", job->max_attempts);
	ujobs_json_text(&json, "tenantId", job->tenant[0] != '\0' ? job->tenant : NULL);
	ujobs_json_text(&json, "enqueuedBy", job->enqueued_by);
	ujobs_json_text(&json, "traceparent", job->traceparent);
	return ujobs_json_end(&json);
}

Datum
ujobs_sql_current_job(PG_FUNCTION_ARGS)
{
	const UjobsJob *job = ujobs_current_job();

	if (job == NULL)
		PG_RETURN_NULL();
	PG_RETURN_JSONB_P(describe_job(job));
}

static void
check_inside(const char *function)
{
	if (ujobs_current_job() == NULL)
		ereport(ERROR,
				(ujobs_errcode(STEP_OUTSIDE_JOB),
				 errmsg("ujobs.%s was called outside a running job", function),
				 errdetail("This session runs no job's handler."),
				 errhint("Call it from a job's handler.")));
}

static char *
text_argument(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(n));
}

Datum
ujobs_sql_fail(PG_FUNCTION_ARGS)
{
	char	   *message = text_argument(fcinfo, 0);
	char	   *detail = text_argument(fcinfo, 1);

	check_inside("fail");
	ereport(ERROR,
			(ujobs_errcode(JOB_FAILED),
			 errmsg("%s", message != NULL ? message : "the job failed"),
			 detail != NULL ? errdetail("%s", detail) : 0,
			 errhint("Mend the cause, then call ujobs.retry with the job's id.")));
	PG_RETURN_VOID();
}

static int64
delay_argument(FunctionCallInfo fcinfo)
{
	int64		delay;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("delay must not be null"),
				 errhint("Give the time to wait, such as '5 minutes'.")));
	delay = ujobs_clock_interval_us(PG_GETARG_INTERVAL_P(0));
	if (delay < 0 || delay > UJOBS_MAX_INTERVAL_US)
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("option \"delay\" has an invalid value"),
				 errdetail("It takes an interval from 0 to 100 years."),
				 errhint("Give the time to wait, such as '5 minutes'.")));
	return delay;
}

Datum
ujobs_sql_retry_after(PG_FUNCTION_ARGS)
{
	int64		delay;
	char	   *message = text_argument(fcinfo, 1);

	check_inside("retry_after");
	delay = delay_argument(fcinfo);
	ujobs_current_ask_delay(delay);
	ereport(ERROR,
			(ujobs_errcode(RETRY_AFTER),
			 errmsg("%s", message != NULL ? message : "the job asks to be tried again later"),
			 errdetail("The delay asked for is %lld ms.", (long long) (delay / 1000)),
			 errhint("The job runs again by itself while it has attempts left.")));
	PG_RETURN_VOID();
}
