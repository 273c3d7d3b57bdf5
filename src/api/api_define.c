/*
 * api_define.c: define_job, define_external_job, define_command, drop_job.
 *
 * Everything is checked as the caller, with the caller's search_path, before
 * the identity section opens; inside it there is only the decision between
 * new, same, replaced and refused.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/jsonb.h"

#include "api/api_define.h"
#include "api/api_inspect.h"
#include "api/argument.h"
#include "api/define_handler.h"
#include "api/define_options.h"
#include "core/clock.h"
#include "core/error.h"
#include "model/schema_check.h"
#include "model/retry.h"
#include "run/current.h"
#include "store/definition_store.h"
#include "store/job_store.h"
#include "store/store_identity.h"
#include "store/task_store.h"

PG_FUNCTION_INFO_V1(ujobs_sql_define_job);
PG_FUNCTION_INFO_V1(ujobs_sql_define_external_job);
PG_FUNCTION_INFO_V1(ujobs_sql_define_command);
PG_FUNCTION_INFO_V1(ujobs_sql_drop_job);
PG_FUNCTION_INFO_V1(ujobs_sql_describe_job);
PG_FUNCTION_INFO_V1(ujobs_sql_retry_schedule);
PG_FUNCTION_INFO_V1(ujobs_sql_schema_check);

/* ---- by name ---- */

static void
refuse_unknown(const char *name)
{
	ereport(ERROR,
			(ujobs_errcode(JOB_UNKNOWN),
			 errmsg("job \"%s\" is not defined", name),
			 errdetail("No job definition of this database has that name."),
			 errhint("Define it with ujobs.define_job, or correct the name.")));
}

static void
refuse_owner(const char *name)
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
		refuse_unknown(name);
	return d;
}

const UjobsDefinition *
ujobs_define_find_own(const char *name)
{
	const UjobsDefinition *d = ujobs_define_find(name);

	if (!ujobs_definition_may_control(d, GetUserId()))
		refuse_owner(name);
	return d;
}

int32
ujobs_define_lock_own(UjobsIdentity *identity, const char *name)
{
	UjobsDraft	stored;

	if (!ujobs_define_lock(identity, name, &stored))
		refuse_unknown(name);
	if (!has_privs_of_role(identity->user, ujobs_definition_role(stored.owner, stored.owner_name)))
		refuse_owner(name);
	return stored.id;
}

/* ---- the descriptor ---- */

static void
append_member(StringInfo out, const char *key, const char *string)
{
	appendStringInfo(out, "\"%s\":", key);
	escape_json(out, string);
	appendStringInfoChar(out, ',');
}

static Datum
describe(const char *name)
{
	const UjobsDefinition *d = ujobs_define_find(name);
	StringInfoData out;

	initStringInfo(&out);
	appendStringInfoChar(&out, '{');
	append_member(&out, "name", d->name);
	append_member(&out, "kind", ujobs_definition_kind_name(d->kind));
	append_member(&out, "queue", d->queue);
	appendStringInfo(&out, "\"input\":%s,", d->input_schema ?
					 JsonbToCString(NULL, &d->input_schema->root, VARSIZE(d->input_schema)) :
					 "{\"type\":\"object\",\"additionalProperties\":true}");
	appendStringInfo(&out, "\"retry\":{\"attempts\":%d,\"backoff\":\"%s\"},\"steps\":[]}",
					 d->retry.attempts, ujobs_retry_backoff_name(d->retry.backoff));
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(out.data));
}

/* For those who see the definition in ujobs.definitions, and those who use it. */
Datum
ujobs_sql_describe_job(PG_FUNCTION_ARGS)
{
	char	   *name = ujobs_argument_required(fcinfo, 0, "name");
	const UjobsDefinition *d = ujobs_define_find(name);

	if (ujobs_inspect_access(GetUserId(), d->owner, d->owner_name, InvalidOid) ==
			UJOBS_ACCESS_NONE &&
		!ujobs_definition_may_enqueue(d, GetUserId()) &&
		!ujobs_definition_may_work(d, GetUserId()))
		refuse_unknown(name);
	PG_RETURN_DATUM(describe(name));
}

/* The waits between the attempts, in ms, jitter off. */
Datum
ujobs_sql_retry_schedule(PG_FUNCTION_ARGS)
{
	UjobsRetry	policy;
	Datum	   *waits;
	int			n;

	ujobs_retry_parse(PG_ARGISNULL(0) ? NULL : PG_GETARG_JSONB_P(0), &policy);
	n = policy.attempts - 1;
	waits = palloc(Max(n, 1) * sizeof(Datum));
	for (int i = 0; i < n; i++)
		waits[i] = Int64GetDatum(ujobs_retry_delay(&policy, i + 1) / 1000);
	PG_RETURN_ARRAYTYPE_P(construct_array(waits, n, INT8OID, sizeof(int64), FLOAT8PASSBYVAL,
										  TYPALIGN_DOUBLE));
}

/* How an input does not fit a schema, or NULL: for tests of the validator alone. */
Datum
ujobs_sql_schema_check(PG_FUNCTION_ARGS)
{
	char	   *fault =
		ujobs_schema_check(ujobs_schema_compile(PG_GETARG_JSONB_P(0)), PG_GETARG_JSONB_P(1));

	if (fault == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(fault));
}

/* ---- defining ---- */

/* The name exists: same, replaced, or refused.  Returns whether it changed. */
static bool
redefine(const UjobsDraft *stored, const UjobsDraft *asked, bool replace)
{
	char	   *differences = ujobs_define_options_compare(stored, asked);
	Oid			owner = ujobs_definition_role(stored->owner, stored->owner_name);

	if (!has_privs_of_role(asked->owner, owner))
	{
		if (replace)
			refuse_owner(asked->name);
		if (differences == NULL)
			differences = psprintf("owner is \"%s\", not \"%s\"", stored->owner_name,
								   asked->owner_name);
	}
	if (differences == NULL)
		return false;
	if (!replace)
		ujobs_argument_refuse_conflict("job", asked->name,
									   psprintf("In the existing definition %s.", differences));
	ujobs_define_update(stored->id, asked);
	ujobs_define_awaken(stored->id, ujobs_clock_now());
	return true;
}

/* Ends: each turn waits for another session's insert or drop of the name. */
bool
ujobs_define_store(UjobsDraft *draft, bool replace)
{
	UjobsIdentity identity;
	UjobsDraft	stored;
	bool		changed;

	ujobs_identity_enter(&identity);
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (ujobs_define_lock(&identity, draft->name, &stored))
		{
			changed = redefine(&stored, draft, replace);
			break;
		}
		if (ujobs_define_insert(draft))
		{
			ujobs_store_identity_settle();
			changed = true;
			break;
		}
	}
	ujobs_identity_leave(&identity);
	if (changed)
		ujobs_definition_invalidate();
	return changed;
}

/* first: the number of the idempotency_key argument. */
static Datum
define(FunctionCallInfo fcinfo, int first, UjobsDraft *draft, UjobsKind kind)
{
	const int	n_options = 12;
	bool		replace = !PG_ARGISNULL(first + n_options) && PG_GETARG_BOOL(first + n_options);

	ujobs_define_options_check_kind(draft, kind);
	draft->kind = pstrdup(ujobs_definition_kind_name(kind));
	draft->owner = GetUserId();
	draft->owner_name = GetUserNameFromId(draft->owner, false);
	ujobs_define_handler_check_login(draft->owner, kind);
	(void) ujobs_define_store(draft, replace);
	return describe(draft->name);
}

static void
read_name(FunctionCallInfo fcinfo, UjobsDraft *draft)
{
	memset(draft, 0, sizeof(*draft));
	draft->name = ujobs_argument_required(fcinfo, 0, "name");
	ujobs_argument_check_name("name", draft->name);
}

Datum
ujobs_sql_define_job(PG_FUNCTION_ARGS)
{
	UjobsDraft	draft;
	UjobsKind	kind;

	read_name(fcinfo, &draft);
	ujobs_define_options_read(fcinfo, 2, &draft);
	draft.handler = ujobs_define_handler_resolve(ujobs_argument_required(fcinfo, 1, "handler"),
												 &kind);
	PG_RETURN_DATUM(define(fcinfo, 2, &draft, kind));
}

Datum
ujobs_sql_define_external_job(PG_FUNCTION_ARGS)
{
	UjobsDraft	draft;

	read_name(fcinfo, &draft);
	ujobs_define_options_read(fcinfo, 1, &draft);
	PG_RETURN_DATUM(define(fcinfo, 1, &draft, UJOBS_KIND_EXTERNAL));
}

Datum
ujobs_sql_define_command(PG_FUNCTION_ARGS)
{
	UjobsDraft	draft;

	read_name(fcinfo, &draft);
	ujobs_define_options_read(fcinfo, 2, &draft);
	draft.handler = ujobs_argument_required(fcinfo, 1, "command");
	ujobs_define_handler_check_command(draft.handler);
	PG_RETURN_DATUM(define(fcinfo, 2, &draft, UJOBS_KIND_COMMAND));
}

/* ---- drop_job ---- */

static void
refuse_in_use(const char *name, int64 live)
{
	ereport(ERROR,
			(ujobs_errcode(JOB_IN_USE),
			 errmsg("job \"%s\" still has live jobs", name),
			 errdetail_plural(INT64_FORMAT " job is ready, delayed, running or suspended.",
							  INT64_FORMAT " jobs are ready, delayed, running or suspended.",
							  (unsigned long) live, live),
			 errhint("Wait for them, or pass force => true to cancel them.")));
}

static void
refuse_used(const char *name, const char *tasks)
{
	ereport(ERROR,
			(ujobs_errcode(JOB_IN_USE),
			 errmsg("job \"%s\" is enqueued by a task", name),
			 errdetail("These tasks name it: %s.", tasks),
			 errhint("Drop or change them first, or pass force => true, which leaves them broken.")));
}

/* A handler that removes its own job's row would take its own completion away. */
static void
refuse_own(const char *name, int32 id)
{
	const UjobsJob *job = ujobs_current_job();

	if (job != NULL && job->definition_id == id)
		ereport(ERROR,
				(ujobs_errcode(JOB_IN_USE),
				 errmsg("job \"%s\" cannot be dropped by its own handler", name),
				 errdetail("Job " INT64_FORMAT " is running in this session.", job->id),
				 errhint("Drop it from another session, when the job has ended.")));
}

static UjobsCancelAll
cancel_all_of(const char *name, int32 id, int64 retention)
{
	UjobsCancelAll cancel = {0};

	cancel.definition_id = id;
	cancel.reason = psprintf("definition \"%s\" was dropped", name);
	cancel.now = ujobs_clock_now();
	cancel.keep = retention > 0;
	cancel.expires_at = ujobs_clock_add(cancel.now,
										cancel.keep ? retention : UJOBS_WAITED_FOR_RETENTION);
	cancel.slot = ujobs_history_slot_for(cancel.now, cancel.expires_at);
	return cancel;
}

static void
drop(const char *name, int64 retention, bool force)
{
	UjobsIdentity identity;
	int32		id;
	int64		live;
	char	   *tasks;

	ujobs_identity_enter(&identity);
	id = ujobs_define_lock_own(&identity, name);
	refuse_own(name, id);
	live = ujobs_define_count_live(id);
	tasks = ujobs_task_using(name);
	if (live > 0 && !force)
		refuse_in_use(name, live);
	if (tasks != NULL && !force)
		refuse_used(name, tasks);
	if (live > 0)
	{
		UjobsCancelAll cancel = cancel_all_of(name, id, retention);

		ujobs_define_cancel_all(&identity, &cancel);
	}
	ujobs_define_drop(id, ujobs_clock_now());
	if (tasks != NULL)
		ujobs_task_break_using(name);
	ujobs_identity_leave(&identity);
	ujobs_definition_invalidate();
	if (tasks != NULL)
		ujobs_task_note_changed();
}

Datum
ujobs_sql_drop_job(PG_FUNCTION_ARGS)
{
	char	   *name = ujobs_argument_required(fcinfo, 0, "name");
	const UjobsDefinition *d = ujobs_define_find_own(name);
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
