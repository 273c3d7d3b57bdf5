/*
 * execution_plan.c: between the row and the handler.  Step 4 of the walk.
 *
 * A job whose definition was dropped, or whose handler or owner is missing,
 * does not begin an attempt; one whose owner changed since it was admitted is
 * run by another executor.
 */
#include "postgres.h"

#include "utils/snapmgr.h"
#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "core/clock.h"
#include "core/compat.h"
#include "core/guc.h"
#include "run/execution_plan.h"
#include "run/settle.h"
#include "store/definition_store.h"

static void
chart(const UjobsDefinition *definition, UjobsExecutionPlan *plan)
{
	plan->retention = ujobs_job_retention(definition, UJOBS_OUTCOME_DONE);
	plan->timeout_ms = definition->timeout > 0 ? (definition->timeout + 999) / 1000 :
		ujobs_guc_default_timeout;
	if (ujobs_guc_max_timeout > 0 &&
		(plan->timeout_ms == 0 || plan->timeout_ms > ujobs_guc_max_timeout))
		plan->timeout_ms = ujobs_guc_max_timeout;
	plan->step_timeout_ms = (definition->step_timeout + 999) / 1000;
	strlcpy(plan->name, definition->name, sizeof(plan->name));
}

char *
ujobs_execution_plan_missing_owner(const UjobsDefinition *definition, bool needs_session)
{
	HeapTuple	tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(definition->owner));
	bool		may_login;

	if (!HeapTupleIsValid(tuple))
		return psprintf("owner \"%s\" of job \"%s\" does not exist", definition->owner_name,
						definition->name);
	may_login = ((Form_pg_authid) GETSTRUCT(tuple))->rolcanlogin;
	ReleaseSysCache(tuple);
	if (needs_session && UJOBS_COMPAT_OWNER_NEEDS_LOGIN && !may_login)
		return psprintf("owner \"%s\" of job \"%s\" may not log in", definition->owner_name,
						definition->name);
	if (needs_session && object_aclcheck(DatabaseRelationId, MyDatabaseId, definition->owner,
										 ACL_CONNECT) != ACLCHECK_OK)
		return psprintf("owner \"%s\" of job \"%s\" may not connect to the database",
						definition->owner_name, definition->name);
	return NULL;
}

UjobsExecutionVerdict
ujobs_execution_plan_make(const UjobsJob *job, UjobsExecutionPlan *plan, UjobsVerdict *verdict)
{
	const UjobsDefinition *definition = ujobs_definition_by_id(job->definition_id);
	char	   *missing;
	bool		foreign;

	Assert(ActiveSnapshotSet());
	if (definition == NULL || definition->dropped)
	{
		ujobs_settle_dropped(job, verdict);
		return UJOBS_EXECUTION_SETTLE;
	}
	chart(definition, plan);
	foreign = definition->owner != GetUserId();
	missing = ujobs_execution_plan_missing_owner(definition, foreign);
	if (missing == NULL && foreign)
		return UJOBS_EXECUTION_FOREIGN;
	if (missing == NULL && ujobs_handler_find(definition, &plan->handler, &missing))
		return UJOBS_EXECUTION_RUN;
	ujobs_settle_missing(job, missing, ujobs_clock_now(), verdict);
	return UJOBS_EXECUTION_SETTLE;
}
