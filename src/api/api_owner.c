/*
 * api_owner.c: the owner of a definition, and its grants.
 *
 * All of these belong to the definition's owner: members of the owning role
 * and superusers.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"

#include "api/api_define.h"
#include "api/api_owner.h"
#include "api/argument.h"
#include "api/define_handler.h"
#include "core/clock.h"
#include "core/compat.h"
#include "store/definition_store.h"

PG_FUNCTION_INFO_V1(ujobs_sql_set_job_owner);
PG_FUNCTION_INFO_V1(ujobs_sql_grant_enqueue);
PG_FUNCTION_INFO_V1(ujobs_sql_revoke_enqueue);
PG_FUNCTION_INFO_V1(ujobs_sql_grant_work);
PG_FUNCTION_INFO_V1(ujobs_sql_revoke_work);

/* ---- set_job_owner ---- */

static char *
role_argument(FunctionCallInfo fcinfo)
{
	ujobs_argument_check_null(fcinfo, 1, "role");
	return pstrdup(NameStr(*PG_GETARG_NAME(1)));
}

Oid
ujobs_owner_new(Oid user, const char *role_name, const char *what)
{
	Oid			role = get_role_oid(role_name, false);

	if (!ujobs_compat_may_become(user, role))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be member of role \"%s\" to make it the owner of a %s", role_name, what),
				 errhint("Ask a superuser, or a role that is a member of both owners, to do this.")));
	return role;
}

Datum
ujobs_sql_set_job_owner(PG_FUNCTION_ARGS)
{
	char	   *name = ujobs_argument_required(fcinfo, 0, "name");
	char	   *role_name = role_argument(fcinfo);
	const UjobsDefinition *d = ujobs_define_find_own(name);
	Oid			role = ujobs_owner_new(GetUserId(), role_name, "job");
	int32		id;
	UjobsIdentity identity;

	ujobs_define_handler_check_login(role, d->kind);
	ujobs_identity_enter(&identity);
	id = ujobs_define_lock_own(&identity, name);
	ujobs_define_set_owner(id, role, role_name);
	ujobs_define_awaken(id, ujobs_clock_now());
	ujobs_identity_leave(&identity);
	ujobs_definition_invalidate();
	PG_RETURN_VOID();
}

/* ---- grants ---- */

typedef void (*GrantChange) (int32 id, char privilege, Oid role, const char *role_name);

static void
change_grant(FunctionCallInfo fcinfo, char privilege, GrantChange change)
{
	char	   *name = ujobs_argument_required(fcinfo, 0, "job");
	char	   *role_name = role_argument(fcinfo);
	UjobsIdentity identity;
	Oid			role;

	(void) ujobs_define_find_own(name);
	role = strcmp(role_name, "public") == 0 ? ACL_ID_PUBLIC : get_role_oid(role_name, false);
	ujobs_identity_enter(&identity);
	change(ujobs_define_lock_own(&identity, name), privilege, role, role_name);
	ujobs_identity_leave(&identity);
	ujobs_definition_invalidate();
}

Datum
ujobs_sql_grant_enqueue(PG_FUNCTION_ARGS)
{
	change_grant(fcinfo, 'e', ujobs_define_grant);
	PG_RETURN_VOID();
}

Datum
ujobs_sql_revoke_enqueue(PG_FUNCTION_ARGS)
{
	change_grant(fcinfo, 'e', ujobs_define_revoke);
	PG_RETURN_VOID();
}

Datum
ujobs_sql_grant_work(PG_FUNCTION_ARGS)
{
	change_grant(fcinfo, 'w', ujobs_define_grant);
	PG_RETURN_VOID();
}

Datum
ujobs_sql_revoke_work(PG_FUNCTION_ARGS)
{
	change_grant(fcinfo, 'w', ujobs_define_revoke);
	PG_RETURN_VOID();
}
