/*
 * api_task.c: define_task and what is done with tasks.
 *
 * A task belongs to the role that defined it: members of that role and superusers
 * change it.  One with an enqueue_fn has a job definition beside it, of the
 * same owner, whose jobs call the function: one job an occurrence, with
 * history and retries like any other (docs/decisions/009).
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "api/api_cron.h"
#include "api/api_define.h"
#include "api/api_inspect.h"
#include "api/api_owner.h"
#include "api/argument.h"
#include "api/define_handler.h"
#include "api/task_function.h"
#include "core/clock.h"
#include "core/error.h"
#include "model/retry.h"
#include "run/current.h"
#include "run/fire.h"
#include "run/rule.h"
#include "run/timetable.h"
#include "store/definition_store.h"
#include "store/store_identity.h"
#include "store/task_store.h"

PG_FUNCTION_INFO_V1(ujobs_sql_define_task);
PG_FUNCTION_INFO_V1(ujobs_sql_drop_task);
PG_FUNCTION_INFO_V1(ujobs_sql_pause_task);
PG_FUNCTION_INFO_V1(ujobs_sql_resume_task);
PG_FUNCTION_INFO_V1(ujobs_sql_set_task_owner);
PG_FUNCTION_INFO_V1(ujobs_sql_describe_task);
PG_FUNCTION_INFO_V1(ujobs_sql_task_entries);
PG_FUNCTION_INFO_V1(ujobs_sql_task_entries_in_job);
PG_FUNCTION_INFO_V1(ujobs_sql_task_key);
PG_FUNCTION_INFO_V1(ujobs_sql_next_run);
PG_FUNCTION_INFO_V1(ujobs_sql_fire_due_tasks);

/* ---- the options ---- */

/* The role as which the task enqueues: a role that changes it does not become its owner. */
static Oid
role_of(const UjobsTask *task)
{
	UjobsTask	stored;

	if (!ujobs_task_find(task->name, &stored))
		return GetUserId();
	return ujobs_definition_role(stored.owner, stored.owner_name);
}

/*
 * Each job must be there, may be enqueued by the role, takes the input and
 * renders its key: now, and not at night.
 */
static void
check_entries(const char *task, Oid role, const UjobsTaskEntry *entries, int n)
{
	if (n == 0)
		ujobs_argument_refuse("enqueue", "The list is empty.",
							  "Name at least one job, such as [[\"send_digest\", {}]].");
	for (int i = 0; i < n; i++)
	{
		const UjobsDefinition *definition = ujobs_define_find(entries[i].job);
		const char *name = GetUserNameFromId(role, true);

		if (!ujobs_definition_may_enqueue(definition, role))
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("permission denied for job \"%s\"", definition->name),
					 name != NULL ? errdetail("The task enqueues as role \"%s\".", name) : 0,
					 errhint("The owner can grant it with ujobs.grant_enqueue.")));
		ujobs_rule_check_input(definition, entries[i].input);
		(void) ujobs_rule_tenant(definition, entries[i].input);
		(void) ujobs_task_key(task, ujobs_clock_now(),
							  ujobs_rule_key(definition, entries[i].input));
	}
}

static void
read_what(FunctionCallInfo fcinfo, UjobsTask *task)
{
	UjobsTaskEntry *entries = NULL;
	int			n;

	if (PG_ARGISNULL(3) == PG_ARGISNULL(4))
		ujobs_argument_refuse(PG_ARGISNULL(3) ? "enqueue" : "enqueue_fn",
							  PG_ARGISNULL(3) ? "Neither enqueue nor enqueue_fn is given." :
												"Both enqueue and enqueue_fn are given.",
							  "Give one of them.");
	if (!PG_ARGISNULL(4))
	{
		task->enqueue_fn = ujobs_task_function_resolve(text_to_cstring(PG_GETARG_TEXT_PP(4)));
		return;
	}
	n = ujobs_task_entries_read(PG_GETARG_JSONB_P(3), "enqueue", &entries);
	check_entries(task->name, role_of(task), entries, n);
	task->enqueue = ujobs_task_entries_to_jsonb(entries, n);
}

static void
read_catch_up(FunctionCallInfo fcinfo, UjobsTask *task)
{
	char	   *policy = PG_ARGISNULL(5) ? pstrdup("skip") : text_to_cstring(PG_GETARG_TEXT_PP(5));

	if (!ujobs_task_catch_up_read(policy, &task->catch_up))
		ujobs_argument_refuse("catch_up", psprintf("\"catch_up\" is \"%s\".", policy),
							  "Pass 'skip', 'run-once' or 'run-all'.");
	task->max_catch_up = PG_ARGISNULL(6) ? 10 : PG_GETARG_INT32(6);
	if (task->max_catch_up < 1)
		ujobs_argument_refuse("max_catch_up",
							  psprintf("\"max_catch_up\" is %d.", task->max_catch_up),
							  "Pass 1 or more.");
}

/* The key of an occurrence begins with the name. */
static void
read_task(FunctionCallInfo fcinfo, UjobsTask *task)
{
	UjobsCron	cron;

	memset(task, 0, sizeof(*task));
	task->name = ujobs_argument_required(fcinfo, 0, "name");
	ujobs_argument_check_name("name", task->name);
	task->cron = ujobs_argument_required(fcinfo, 1, "cron");
	ujobs_cron_read(task->cron, &cron);
	task->tz = pstrdup(ujobs_zone_name(ujobs_cron_zone(ujobs_argument_required(fcinfo, 2, "tz"))));
	read_what(fcinfo, task);
	read_catch_up(fcinfo, task);
	task->enabled = PG_ARGISNULL(7) || PG_GETARG_BOOL(7);
	task->paused = !task->enabled;
	task->description = PG_ARGISNULL(8) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(8));
	task->owner = GetUserId();
	task->owner_name = GetUserNameFromId(task->owner, false);
	task->watermark = ujobs_clock_now();
	if (ujobs_cron_either_day(&cron))
		ereport(NOTICE,
				(errmsg("task \"%s\" runs on every day that matches its day-of-month or its day-of-week", task->name),
				 errhint("Make one of the two fields * to let the other decide alone.")));
}

/* ---- the same, another, or refused ---- */

static bool
same_text(const char *a, const char *b)
{
	return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

static bool
same_list(Jsonb *a, Jsonb *b)
{
	return (a == NULL) == (b == NULL) &&
		   (a == NULL || compareJsonbContainers(&a->root, &b->root) == 0);
}

/* The first option in which they differ; NULL: in none. */
static const char *
difference(const UjobsTask *stored, const UjobsTask *asked)
{
	if (!same_text(stored->cron, asked->cron))
		return "cron";
	if (!same_text(stored->tz, asked->tz))
		return "tz";
	if (!same_list(stored->enqueue, asked->enqueue))
		return "enqueue";
	if (!same_text(stored->enqueue_fn, asked->enqueue_fn))
		return "enqueue_fn";
	if (stored->catch_up != asked->catch_up)
		return "catch_up";
	if (stored->max_catch_up != asked->max_catch_up)
		return "max_catch_up";
	if (stored->enabled != asked->enabled)
		return "enabled";
	return same_text(stored->description, asked->description) ? NULL : "description";
}

static void
refuse_unknown(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT),
			 errmsg("task \"%s\" is not defined", name),
			 errhint("Define it with ujobs.define_task, or correct the name.")));
}

/* A task that may not be seen is as one that is not there. */
static void
see_required(const UjobsTask *task, Oid role)
{
	if (ujobs_inspect_access(role, task->owner, task->owner_name, InvalidOid) == UJOBS_ACCESS_NONE)
		refuse_unknown(task->name);
}

static void
own_required(const UjobsTask *task, Oid role)
{
	if (!has_privs_of_role(role, ujobs_definition_role(task->owner, task->owner_name)))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of task \"%s\"", task->name),
				 errhint("Ask its owner, or a role that is a member of it, to do this.")));
}

/* The rule changed or begins again: nothing fires for the past. */
static void
keep_watermark(const UjobsTask *stored, UjobsTask *asked)
{
	bool		same_rule =
		same_text(stored->cron, asked->cron) && same_text(stored->tz, asked->tz);

	asked->paused = stored->enabled == asked->enabled ? stored->paused : !asked->enabled;
	if (same_rule && (asked->paused || !stored->paused))
		asked->watermark = stored->watermark;
}

/* Returns whether anything changed; the owner stays. */
static bool
redefine(const UjobsTask *stored, UjobsTask *asked, bool replace)
{
	const char *option = difference(stored, asked);

	if (option == NULL &&
		!has_privs_of_role(asked->owner, ujobs_definition_role(stored->owner, stored->owner_name)))
		option = "owner";
	if (option != NULL && !replace)
		ujobs_argument_refuse_conflict("task", asked->name,
									   psprintf("The existing task has another %s.", option));
	own_required(stored, asked->owner);
	asked->owner = stored->owner;
	asked->owner_name = stored->owner_name;
	if (option == NULL)
		return false;
	keep_watermark(stored, asked);
	ujobs_task_update(stored->id, asked);
	return true;
}

/* had_function: the task that was there before had an enqueue_fn. */
static bool
store(UjobsTask *task, bool replace, bool *had_function)
{
	UjobsIdentity identity;
	UjobsTask	stored;
	bool		changed;

	*had_function = false;
	ujobs_identity_enter(&identity);
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (ujobs_task_lock(&identity, task->name, &stored))
		{
			changed = redefine(&stored, task, replace);
			*had_function = stored.enqueue_fn != NULL;
			break;
		}
		if (ujobs_task_insert(task))
		{
			ujobs_store_identity_settle();
			changed = true;
			break;
		}
	}
	ujobs_identity_leave(&identity);
	return changed;
}

/* ---- the job that calls an enqueue_fn ---- */

static void
define_function_job(const UjobsTask *task)
{
	UjobsRetry	policy;
	UjobsDraft	draft = {0};

	ujobs_retry_default(&policy);
	draft.name = ujobs_task_job_name(task->name);
	draft.kind = pstrdup(ujobs_definition_kind_name(UJOBS_KIND_ATOMIC));
	draft.handler = "ujobs.run_task";
	draft.owner = task->owner;
	draft.owner_name = task->owner_name;
	draft.key = "{task}:{epochMs}";
	draft.retry = ujobs_retry_to_jsonb(&policy);
	draft.queue = "default";
	draft.batch = 1;
	draft.description = psprintf("Calls the enqueue_fn of task \"%s\".", task->name);
	ujobs_define_store(&draft, false);
}

/* ---- describing ---- */

static void
append_jobs(StringInfo out, const UjobsTask *task)
{
	UjobsTaskEntry *entries = NULL;
	int			n = task->enqueue ? ujobs_task_entries_read(task->enqueue, "enqueue", &entries) : 0;
	const char *comma = "";

	for (int i = 0; i < n; i++)
	{
		bool		again = false;

		for (int j = 0; j < i; j++)
			again |= strcmp(entries[i].job, entries[j].job) == 0;
		if (again)
			continue;
		appendStringInfoString(out, comma);
		escape_json(out, entries[i].job);
		comma = ",";
	}
}

static void
append_member(StringInfo out, const char *key, const char *value)
{
	appendStringInfo(out, "\"%s\":", key);
	escape_json(out, value);
	appendStringInfoChar(out, ',');
}

static void
find_required(const char *name, UjobsTask *task)
{
	if (!ujobs_task_find(name, task))
		refuse_unknown(name);
}

static Datum
describe(const char *name)
{
	UjobsTask	task;
	StringInfoData out;

	find_required(name, &task);
	see_required(&task, GetUserId());
	initStringInfo(&out);
	appendStringInfoString(&out, "{\"kind\":\"task\",");
	append_member(&out, "name", task.name);
	append_member(&out, "cron", task.cron);
	append_member(&out, "tz", task.tz);
	append_member(&out, "catchUp", ujobs_task_catch_up_name(task.catch_up));
	appendStringInfo(&out, "\"maxCatchUp\":%d,\"jobs\":[", task.max_catch_up);
	append_jobs(&out, &task);
	appendStringInfoString(&out, "]}");
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(out.data));
}

Datum
ujobs_sql_describe_task(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(describe(ujobs_argument_required(fcinfo, 0, "name")));
}

/* ---- changing ---- */

Datum
ujobs_sql_define_task(PG_FUNCTION_ARGS)
{
	UjobsTask	task;
	bool		had_function;

	read_task(fcinfo, &task);
	if (task.enqueue_fn != NULL)
		ujobs_define_handler_check_login(role_of(&task), UJOBS_KIND_ATOMIC);
	if (store(&task, !PG_ARGISNULL(9) && PG_GETARG_BOOL(9), &had_function))
		ujobs_task_note_changed();
	if (task.enqueue_fn != NULL)
		define_function_job(&task); /* also when it was dropped */
	else if (had_function)
		ujobs_define_drop_forced(ujobs_task_job_name(task.name));
	PG_RETURN_DATUM(describe(task.name));
}

/* The task, locked, for its owner alone. */
static void
lock_own(UjobsIdentity *identity, const char *name, UjobsTask *task)
{
	if (!ujobs_task_lock(identity, name, task))
		refuse_unknown(name);
	see_required(task, identity->user);
	own_required(task, identity->user);
}

Datum
ujobs_sql_drop_task(PG_FUNCTION_ARGS)
{
	char	   *name = ujobs_argument_required(fcinfo, 0, "name");
	UjobsIdentity identity;
	UjobsTask	task;

	ujobs_identity_enter(&identity);
	lock_own(&identity, name, &task);
	ujobs_task_delete(task.id);
	ujobs_identity_leave(&identity);
	if (task.enqueue_fn != NULL)
		ujobs_define_drop_forced(ujobs_task_job_name(name));
	ujobs_task_note_changed();
	PG_RETURN_VOID();
}

Datum
ujobs_sql_set_task_owner(PG_FUNCTION_ARGS)
{
	char	   *name = ujobs_argument_required(fcinfo, 0, "name");
	UjobsIdentity identity;
	UjobsDraft	job;
	UjobsTask	task;
	Oid			role;
	char	   *role_name;

	ujobs_argument_check_null(fcinfo, 1, "role");
	role_name = pstrdup(NameStr(*PG_GETARG_NAME(1)));
	ujobs_identity_enter(&identity);
	lock_own(&identity, name, &task);
	role = ujobs_owner_new(identity.user, role_name, "task");
	if (task.enqueue_fn != NULL)
		ujobs_define_handler_check_login(role, UJOBS_KIND_ATOMIC);
	ujobs_task_set_owner(task.id, role, role_name);
	if (task.enqueue_fn != NULL &&
		ujobs_define_lock(&identity, ujobs_task_job_name(name), &job))
		ujobs_define_set_owner(job.id, role, role_name);
	ujobs_identity_leave(&identity);
	ujobs_definition_invalidate();
	ujobs_task_note_changed();
	PG_RETURN_VOID();
}

static void
set_paused(FunctionCallInfo fcinfo, bool paused)
{
	char	   *name = ujobs_argument_required(fcinfo, 0, "name");
	UjobsIdentity identity;
	UjobsTask	task;

	ujobs_identity_enter(&identity);
	lock_own(&identity, name, &task);
	ujobs_task_set_paused(task.id, paused, paused ? task.watermark : ujobs_clock_now());
	ujobs_identity_leave(&identity);
	ujobs_task_note_changed();
}

Datum
ujobs_sql_pause_task(PG_FUNCTION_ARGS)
{
	set_paused(fcinfo, true);
	PG_RETURN_VOID();
}

Datum
ujobs_sql_resume_task(PG_FUNCTION_ARGS)
{
	set_paused(fcinfo, false);
	PG_RETURN_VOID();
}

/* ---- what it would enqueue ---- */

static TimestampTz
next_run(const UjobsTask *task, TimestampTz after)
{
	UjobsCron	cron;
	UjobsCronError error;
	const UjobsZone *zone = ujobs_zone_find(task->tz);
	int64		next;

	if (zone == NULL || TIMESTAMP_NOT_FINITE(after) ||
		!ujobs_cron_parse(task->cron, strlen(task->cron), &cron, &error) ||
		!ujobs_cron_occurrence_next(&cron, zone, ujobs_cron_seconds(after), &next))
		return DT_NOEND;
	return ujobs_cron_timestamp(next);
}

static Datum
entries_of(FunctionCallInfo fcinfo)
{
	UjobsTask	task;
	UjobsTaskEntry *entries = NULL;
	TimestampTz occurrence;
	Jsonb	   *list;
	int			n = 0;

	find_required(ujobs_argument_required(fcinfo, 0, "name"), &task);
	see_required(&task, GetUserId());
	own_required(&task, GetUserId());
	occurrence = PG_ARGISNULL(1) ? next_run(&task, ujobs_clock_now()) : PG_GETARG_TIMESTAMPTZ(1);
	list = task.enqueue_fn ? ujobs_task_function_call(task.enqueue_fn, occurrence) : task.enqueue;
	if (list != NULL)
		n = ujobs_task_entries_read(
			list, task.enqueue_fn ? psprintf("enqueue_fn %s", task.enqueue_fn) : "enqueue",
			&entries);
	PG_RETURN_JSONB_P(ujobs_task_entries_to_jsonb(entries, n));
}

Datum
ujobs_sql_task_entries(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(entries_of(fcinfo));
}

Datum
ujobs_sql_task_entries_in_job(PG_FUNCTION_ARGS)
{
	const UjobsJob *job = ujobs_current_job();
	const UjobsDefinition *definition =
		job != NULL ? ujobs_definition_by_id(job->definition_id) : NULL;
	char	   *name = ujobs_argument_required(fcinfo, 0, "task");

	if (definition == NULL || strcmp(definition->name, ujobs_task_job_name(name)) != 0)
		ereport(ERROR,
				(ujobs_errcode(STEP_OUTSIDE_JOB),
				 errmsg("ujobs.run_task works only as the handler of a job of its task"),
				 errdetail("This is no job of task \"%s\".", name),
				 errhint("Call ujobs.enqueue_task to enqueue its entries now.")));
	PG_RETURN_DATUM(entries_of(fcinfo));
}

/* (task, occurrence, job, input): the key of that job for that occurrence. */
Datum
ujobs_sql_task_key(PG_FUNCTION_ARGS)
{
	const UjobsDefinition *definition = ujobs_define_find(text_to_cstring(PG_GETARG_TEXT_PP(2)));
	char	   *key = ujobs_rule_key(definition, PG_GETARG_JSONB_P(3));

	PG_RETURN_TEXT_P(cstring_to_text(ujobs_task_key(text_to_cstring(PG_GETARG_TEXT_PP(0)),
													PG_GETARG_TIMESTAMPTZ(1), key)));
}

/* (cron, tz, after): as next_runs, but NULL for what this server cannot read. */
Datum
ujobs_sql_next_run(PG_FUNCTION_ARGS)
{
	UjobsTask	task = {0};
	TimestampTz next;

	task.cron = text_to_cstring(PG_GETARG_TEXT_PP(0));
	task.tz = text_to_cstring(PG_GETARG_TEXT_PP(1));
	next = next_run(&task, PG_GETARG_TIMESTAMPTZ(2));
	if (next == DT_NOEND)
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(next);
}

/* ---- a round by hand ---- */

/*
 * One round of the scheduler in this session and at this session's clock,
 * beside any other scheduler.
 */
Datum
ujobs_sql_fire_due_tasks(PG_FUNCTION_ARGS)
{
	TimestampTz now = ujobs_clock_now();
	UjobsTimetable *table = ujobs_timetable_make(CurrentMemoryContext);
	UjobsPick  *picks = palloc(UJOBS_PICKS_AT_ONCE * sizeof(UjobsPick));
	int64		fired = 0;
	int			n;

	ujobs_timetable_reload(table, now);
	while ((n = ujobs_timetable_collect(table, now, picks)) > 0)
	{
		fired += ujobs_fire_picks(picks, n, now);
		(void) ujobs_timetable_settle(table, picks, n, now);
	}
	PG_RETURN_INT64(fired);
}
