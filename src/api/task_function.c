/*
 * task_function.c: the function that says what a task enqueues.
 *
 * function(timestamptz) returns jsonb, found by name each time, as handlers
 * are.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "api/define_handler.h"
#include "api/task_function.h"
#include "core/compat.h"
#include "core/error.h"

static Oid
find(const char *name)
{
	FuncCandidateList candidate = FuncnameGetCandidates(ujobs_compat_name_list(name), 1, NIL,
														false, false, false, true);

	for (; candidate != NULL; candidate = candidate->next)
	{
		if (candidate->nargs == 1 && candidate->args[0] == TIMESTAMPTZOID)
			return candidate->oid;
	}
	ereport(ERROR,
			(ujobs_errcode(HANDLER_MISSING),
			 errmsg("enqueue_fn \"%s\" does not exist", name),
			 errdetail("There is no function %s(timestamptz) in this database, or not in the search_path.", name),
			 errhint("Create it first, as a function of the occurrence that returns jsonb, and write its schema too.")));
	return InvalidOid;			/* not reached */
}

static void
refuse(const char *name, const char *reason)
{
	ereport(ERROR,
			(ujobs_errcode(INVALID_OPTION),
			 errmsg("\"%s\" cannot be the enqueue_fn of a task", name),
			 errdetail("%s.", reason),
			 errhint("Make it a function (timestamptz) that returns one jsonb, such as [[\"send_digest\", {}]].")));
}

static Oid
find_checked(const char *name, char **qualified)
{
	Oid			found = find(name);
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(found));
	Form_pg_proc proc;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", found);
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	if (proc->prokind != PROKIND_FUNCTION)
		refuse(name, "It is not a plain function");
	if (proc->proretset || proc->prorettype != JSONBOID)
		refuse(name, "It does not return one jsonb");
	if (isAnyTempNamespace(proc->pronamespace))
		refuse(name, "It is temporary, so no other session could call it");
	if (object_aclcheck(ProcedureRelationId, found, GetUserId(), ACL_EXECUTE) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, name);
	*qualified = ujobs_define_handler_quote(proc->pronamespace, NameStr(proc->proname));
	ReleaseSysCache(tuple);
	return found;
}

char *
ujobs_task_function_resolve(const char *name)
{
	char	   *qualified;

	(void) find_checked(name, &qualified);
	return qualified;
}

Jsonb *
ujobs_task_function_call(const char *name, TimestampTz occurrence)
{
	LOCAL_FCINFO(fcinfo, 1);
	char	   *qualified;
	FmgrInfo	function;
	Datum		result;

	fmgr_info(find_checked(name, &qualified), &function);
	InitFunctionCallInfoData(*fcinfo, &function, 1, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = TimestampTzGetDatum(occurrence);
	fcinfo->args[0].isnull = false;
	result = FunctionCallInvoke(fcinfo);
	return fcinfo->isnull ? NULL : DatumGetJsonbPCopy(result);
}
