/*
 * api_drain.c: trying jobs without workers.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "core/error.h"
#include "run/current.h"
#include "run/drain.h"

PG_FUNCTION_INFO_V1(ujobs_sql_drain);

static int
max_argument(FunctionCallInfo fcinfo, int number)
{
	int			max;

	if (PG_ARGISNULL(number))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be NULL", "max_jobs"),
				 errhint("Leave it out to run up to 1000 jobs.")));
	max = PG_GETARG_INT32(number);
	if (max < 1)
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("option \"%s\" has an invalid value", "max_jobs"),
				 errdetail("It is %d; the least is 1.", max),
				 errhint("Leave it out to run up to 1000 jobs.")));
	return max;
}

static void
refuse_nested(void)
{
	if (ujobs_current_in_handler())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("ujobs.drain() cannot run inside a job"),
				 errhint("What a handler enqueues is run by the process that runs the handler.")));
}

static const char *
outcome_name(UjobsOutcomeKind outcome)
{
	switch (outcome)
	{
		case UJOBS_OUTCOME_DONE:
			return "done";
		case UJOBS_OUTCOME_RETRY:
			return "retry";
		case UJOBS_OUTCOME_SUSPENDED:
			return "suspended";
		case UJOBS_OUTCOME_DEAD:
			return "dead";
		case UJOBS_OUTCOME_CANCELLED:
			return "cancelled";
		default:
			elog(ERROR, "unexpected outcome %d", (int) outcome);
	}
	return NULL;
}

static void
put_row(const UjobsDrained *drained, void *arg)
{
	ReturnSetInfo *rsinfo = arg;
	bool		nulls[] = {false, drained->name == NULL, false, drained->error == NULL};
	Datum		values[] = {
		Int64GetDatum(drained->id),
		nulls[1] ? (Datum) 0 : CStringGetTextDatum(drained->name),
		CStringGetTextDatum(outcome_name(drained->outcome)),
		nulls[3] ? (Datum) 0 : CStringGetTextDatum(drained->error)
	};

	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

Datum
ujobs_sql_drain(PG_FUNCTION_ARGS)
{
	const char *queue = PG_ARGISNULL(0) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(0));
	int			max_jobs = max_argument(fcinfo, 1);

	refuse_nested();
	PreventCommandIfReadOnly("ujobs.drain()");
	InitMaterializedSRF(fcinfo, 0);
	ujobs_drain(queue, max_jobs, put_row, fcinfo->resultinfo);
	return (Datum) 0;
}
