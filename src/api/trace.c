/*
 * trace.c: one description of a job, made in one place, by inspect_job.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/value.h"
#include "parser/parse_func.h"
#include "utils/snapmgr.h"

#include "api/trace.h"

static Oid
inspect_job_oid(void)
{
	Oid			argtypes[] = {INT8OID};

	return LookupFuncName(list_make2(makeString("ujobs"), makeString("inspect_job")),
						  lengthof(argtypes), argtypes, false);
}

Datum
ujobs_trace_return(FunctionCallInfo fcinfo, int64 id)
{
	LOCAL_FCINFO(call, 1);
	FmgrInfo	flinfo;
	Datum		trace;

	fmgr_info(inspect_job_oid(), &flinfo);
	InitFunctionCallInfoData(*call, &flinfo, 1, InvalidOid, NULL, NULL);
	call->args[0].value = Int64GetDatum(id);
	call->args[0].isnull = false;

	/* It may be STABLE, which uses the active snapshot as it is. */
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	trace = FunctionCallInvoke(call);
	PopActiveSnapshot();
	fcinfo->isnull = call->isnull;
	return trace;
}
