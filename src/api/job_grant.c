/*
 * job_grant.c: who may call publish and publish_event.
 *
 * All roles must be able to call them from inside a job, and outside only whom
 * an administrator lets.  The server knows no such rule: who lacks EXECUTE
 * never comes here.  So PUBLIC keeps EXECUTE, and the function reads its own
 * grants without PUBLIC's (docs/decisions/005).
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

#include "api/job_grant.h"
#include "run/current.h"

static bool
acl_grants(Acl *acl, Oid role)
{
	AclItem    *item = ACL_DAT(acl);

	for (int i = 0; i < ACL_NUM(acl); i++)
	{
		if (item[i].ai_grantee != ACL_ID_PUBLIC &&
			(ACLITEM_GET_PRIVS(item[i]) & ACL_EXECUTE) != 0 &&
			has_privs_of_role(role, item[i].ai_grantee))
			return true;
	}
	return false;
}

/* Owner and superusers, or a grant of EXECUTE to a role. */
static bool
is_granted(Oid function, Oid role)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		granted;
	bool		isnull;
	Datum		acl;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	granted = has_privs_of_role(role, ((Form_pg_proc) GETSTRUCT(tuple))->proowner);
	acl = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proacl, &isnull);
	if (!granted && !isnull)
		granted = acl_grants(DatumGetAclP(acl), role);
	ReleaseSysCache(tuple);
	return granted;
}

void
ujobs_job_grant_required(FunctionCallInfo fcinfo, const char *function)
{
	if (ujobs_current_in_handler() || is_granted(fcinfo->flinfo->fn_oid, GetUserId()))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for function %s", function),
			 errdetail("Outside a running job, role \"%s\" needs a grant of its own or of a role that it is a member of.",
					   GetUserNameFromId(GetUserId(), false)),
			 errhint("Have an administrator GRANT EXECUTE ON FUNCTION ujobs.%s to the role.", function)));
}
