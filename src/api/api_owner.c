/*
 * api_owner.c: dropping definitions, their owner and their grants.
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
#include "core/clock.h"
#include "core/compat.h"
#include "core/error.h"
#include "store/definition_store.h"
#include "store/job_store.h"

PG_FUNCTION_INFO_V1(ujobs_sql_drop_job);
PG_FUNCTION_INFO_V1(ujobs_sql_set_job_owner);
PG_FUNCTION_INFO_V1(ujobs_sql_grant_enqueue);
PG_FUNCTION_INFO_V1(ujobs_sql_revoke_enqueue);
PG_FUNCTION_INFO_V1(ujobs_sql_grant_work);
PG_FUNCTION_INFO_V1(ujobs_sql_revoke_work);

void
ujobs_define_refuse_unknown(const char *name)
{
	ereport(ERROR,
			(errcode(UJOBS_ERRCODE(JOB_UNKNOWN)),
			 errmsg("job \"%s\" is not defined", name),
			 errdetail("No job definition of this database has that name."),
			 errhint("Define it with ujobs.define_job, or correct the name.")));
}

void
ujobs_define_refuse_owner(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("must be owner of job \"%s\"", name),
			 errhint("Ask its owner, or a role that is a member of it, to do this.")));
}

const UjobsDefinition *
ujobs_define_find(const char *name)
{
	const UjobsDefinition *d = ujobs_definition_by_name(name);

	if (d == NULL)
		ujobs_define_refuse_unknown(name);
	return d;
}

/* The definition, for its owner alone. */
static const UjobsDefinition *
own_definition(const char *name)
{
	const UjobsDefinition *d = ujobs_define_find(name);

	if (!ujobs_definition_may_control(d, GetUserId()))
		ujobs_define_refuse_owner(name);
	return d;
}

/*
 * Its row, locked; returns the id.  Asked again, because it may have changed
 * hands, or be another of that name, since the cache was read.
 */
static int32
lock_own(UjobsIdentity *identity, const char *name)
{
	UjobsDraft	stored;

	if (!ujobs_define_lock(identity, name, &stored))
		ujobs_define_refuse_unknown(name);
	if (!has_privs_of_role(identity->user, ujobs_definition_role(stored.owner, stored.owner_name)))
		ujobs_define_refuse_owner(name);
	return stored.id;
}

/* ---- drop_job ---- */

static void
refuse_in_use(const char *name, int64 live)
{
	ereport(ERROR,
			(errcode(UJOBS_ERRCODE(JOB_IN_USE)),
			 errmsg("job \"%s\" still has live jobs", name),
			 errdetail_plural(INT64_FORMAT " job is ready, delayed, running or suspended.",
							  INT64_FORMAT " jobs are ready, delayed, running or suspended.",
							  (unsigned long) live, live),
			 errhint("Wait for them, or pass force => true to cancel them.")));
}

static UjobsCancelAll
cancel_all_of(const char *name, int32 id, int64 retention)
{
	UjobsCancelAll cancel = {0};

	cancel.definition_id = id;
	cancel.reason = psprintf("definition \"%s\" was dropped", name);
	cancel.now = ujobs_clock_now();
	cancel.keep = retention > 0;
	cancel.expires_at = ujobs_clock_add(cancel.now, cancel.keep ? retention : UJOBS_WAITED_FOR_RETENTION);
	cancel.slot = ujobs_history_slot_for(cancel.now, cancel.expires_at);
	return cancel;
}

static void
drop(const char *name, int64 retention, bool force)
{
	UjobsIdentity identity;
	int32		id;
	int64		live;

	ujobs_identity_enter(&identity);
	id = lock_own(&identity, name);
	live = ujobs_define_count_live(id);
	if (live > 0 && !force)
		refuse_in_use(name, live);
	if (live > 0)
	{
		UjobsCancelAll cancel = cancel_all_of(name, id, retention);

		ujobs_define_cancel_all(&identity, &cancel);
	}
	ujobs_define_drop(id, ujobs_clock_now());
	ujobs_identity_leave(&identity);
	ujobs_definition_invalidate();
}

Datum
ujobs_sql_drop_job(PG_FUNCTION_ARGS)
{
	char	   *name = ujobs_options_required(fcinfo, 0, "name");
	const UjobsDefinition *d = own_definition(name);
	bool		force = !PG_ARGISNULL(1) && PG_GETARG_BOOL(1);

	drop(name, ujobs_job_retention(d, UJOBS_OUTCOME_CANCELLED), force);
	PG_RETURN_VOID();
}

void
ujobs_define_drop_forced(const char *name)
{
	const UjobsDefinition *d = ujobs_definition_by_name(name);

	if (d != NULL)
		drop(name, ujobs_job_retention(d, UJOBS_OUTCOME_CANCELLED), true);
}

/* ---- set_job_owner ---- */

static char *
role_argument(FunctionCallInfo fcinfo)
{
	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"role\" must not be NULL"),
				 errhint("Give it a value.")));
	return pstrdup(NameStr(*PG_GETARG_NAME(1)));
}

Datum
ujobs_sql_set_job_owner(PG_FUNCTION_ARGS)
{
	char	   *name = ujobs_options_required(fcinfo, 0, "name");
	char	   *role_name = role_argument(fcinfo);
	const UjobsDefinition *d = own_definition(name);
	Oid			role = get_role_oid(role_name, false);
	int32		id;
	UjobsIdentity identity;

	if (!ujobs_compat_may_become(GetUserId(), role))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be member of role \"%s\" to make it the owner of a job", role_name),
				 errhint("Ask a superuser, or a role that is a member of both owners, to do this.")));
	ujobs_define_check_login(role, d->kind);
	ujobs_identity_enter(&identity);
	id = lock_own(&identity, name);
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
	char	   *name = ujobs_options_required(fcinfo, 0, "job");
	char	   *role_name = role_argument(fcinfo);
	UjobsIdentity identity;
	Oid			role;

	(void) own_definition(name);
	role = strcmp(role_name, "public") == 0 ? ACL_ID_PUBLIC : get_role_oid(role_name, false);
	ujobs_identity_enter(&identity);
	change(lock_own(&identity, name), privilege, role, role_name);
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
