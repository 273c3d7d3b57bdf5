/*
 * api_inspect.c: the C side of looking in.
 *
 * The views of sql/50_inspect.sql read the tables as the extension's owner
 * and ask here what the invoker may see, and what shared memory knows that no
 * row says: which job an executor runs now.  One rule, job_now, turns a row
 * and that knowledge into the state that users read.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/detoast.h"
#include "catalog/pg_authid.h"
#include "commands/dbcommands.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "api/api_inspect.h"
#include "core/activity.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/identity.h"
#include "core/slot.h"
#include "model/state.h"
#include "store/catalogue.h"
#include "store/definition_store.h"
#include "store/history_store.h"

PG_FUNCTION_INFO_V1(ujobs_sql_now);
PG_FUNCTION_INFO_V1(ujobs_sql_row_access);
PG_FUNCTION_INFO_V1(ujobs_sql_job_state);
PG_FUNCTION_INFO_V1(ujobs_sql_job_now);
PG_FUNCTION_INFO_V1(ujobs_sql_end_state);
PG_FUNCTION_INFO_V1(ujobs_sql_running);
PG_FUNCTION_INFO_V1(ujobs_sql_workers);
PG_FUNCTION_INFO_V1(ujobs_sql_error_codes);
PG_FUNCTION_INFO_V1(ujobs_sql_statements);
PG_FUNCTION_INFO_V1(ujobs_sql_inspect_job);
PG_FUNCTION_INFO_V1(ujobs_sql_history_slot);
PG_FUNCTION_INFO_V1(ujobs_sql_raw_size);

/* now(): the engine's clock, which ujobs.clock may have set for this session. */
Datum
ujobs_sql_now(PG_FUNCTION_ARGS)
{
	PG_RETURN_TIMESTAMPTZ(ujobs_clock_now());
}

UjobsAccess
ujobs_inspect_access(Oid role, Oid owner, const char *owner_name, Oid enqueued_role)
{
	if (superuser_arg(role))
		return UJOBS_ACCESS_PAYLOAD;
	if (OidIsValid(enqueued_role) && has_privs_of_role(role, enqueued_role))
		return UJOBS_ACCESS_PAYLOAD;
	if (owner_name != NULL && has_privs_of_role(role, ujobs_definition_role(owner, owner_name)))
		return UJOBS_ACCESS_PAYLOAD;
	if (has_privs_of_role(role, ROLE_PG_MONITOR))
		return UJOBS_ACCESS_ROW;
	return UJOBS_ACCESS_NONE;
}

/*
 * row_access([role oid,] owner oid, owner_name name, enqueued_role oid):
 * without a role, the current user.  Owner is NULL when the definition's row
 * is gone, enqueued_role when there is no job.
 */
Datum
ujobs_sql_row_access(PG_FUNCTION_ARGS)
{
	int			first = PG_NARGS() - 3;
	Oid			role = first == 0 ? GetUserId() : PG_GETARG_OID(0);
	Oid			owner = PG_ARGISNULL(first) ? InvalidOid : PG_GETARG_OID(first);
	const char *name = PG_ARGISNULL(first + 1) ? NULL : NameStr(*PG_GETARG_NAME(first + 1));
	Oid			enqueued = PG_ARGISNULL(first + 2) ? InvalidOid : PG_GETARG_OID(first + 2);

	PG_RETURN_INT32(ujobs_inspect_access(role, owner, name, enqueued));
}

/* job_state(state "char", due_at timestamptz, id bigint) */
Datum
ujobs_sql_job_state(PG_FUNCTION_ARGS)
{
	bool		running = ujobs_slot_find_running(PG_GETARG_INT64(2), NULL) >= 0;

	PG_RETURN_TEXT_P(cstring_to_text(ujobs_state_shown((UjobsState) PG_GETARG_CHAR(0),
													   PG_GETARG_TIMESTAMPTZ(1),
													   ujobs_clock_now(), running)));
}

/* end_state(state "char"): the same for finished jobs. */
Datum
ujobs_sql_end_state(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(
		cstring_to_text(ujobs_state_shown((UjobsState) PG_GETARG_CHAR(0), 0, 0, false)));
}

/*
 * job_now(state, due_at, id, attempt, started_at): one look at the slots, so
 * that the four answers fit together.
 */
Datum
ujobs_sql_job_now(PG_FUNCTION_ARGS)
{
	UjobsState	state = (UjobsState) PG_GETARG_CHAR(0);
	TimestampTz due_at = PG_GETARG_TIMESTAMPTZ(1);
	int32		attempt = PG_GETARG_INT32(3);
	UjobsSlot	slot;
	bool		running = ujobs_slot_find_running(PG_GETARG_INT64(2), &slot) >= 0;
	TupleDesc	descriptor;
	Datum		values[4];
	bool		nulls[4] = {false};

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "job_now must return a composite type");
	values[0] = CStringGetTextDatum(ujobs_state_shown(state, due_at, ujobs_clock_now(), running));
	/* A pending row's attempt is recorded when it ends; a resumed one's was before. */
	values[1] = Int32GetDatum(running && state == UJOBS_STATE_PENDING ? attempt + 1 : attempt);
	values[2] = running ? TimestampTzGetDatum(slot.job_started) : PG_GETARG_DATUM(4);
	nulls[2] = !running && PG_ARGISNULL(4);
	values[3] = Int32GetDatum(running ? slot.pid : 0);
	nulls[3] = !running;
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, nulls)));
}

static void
put_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* running(): (job_id, pid, started_at) of this database's executors. */
Datum
ujobs_sql_running(PG_FUNCTION_ARGS)
{
	UjobsProcess process[UJOBS_MAX_SLOTS];
	int			n = ujobs_activity_running(process);

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < n; i++)
	{
		Datum		values[3];
		bool		nulls[3] = {false};

		values[0] = Int64GetDatum(process[i].job_id);
		values[1] = Int32GetDatum(process[i].pid);
		values[2] = TimestampTzGetDatum(process[i].job_started);
		put_row(fcinfo, values, nulls);
	}
	return (Datum) 0;
}

static void
bind_name(Datum *value, bool *null, char *name)
{
	*null = name == NULL;
	*value = *null ? (Datum) 0 : CStringGetTextDatum(name);
}

/* workers(): the rows of ujobs.workers. */
Datum
ujobs_sql_workers(PG_FUNCTION_ARGS)
{
	static const char *const kinds[] = {
		[UJOBS_PROCESS_LAUNCHER] = "launcher",
		[UJOBS_PROCESS_DISPATCHER] = "dispatcher",
		[UJOBS_PROCESS_SCHEDULER] = "scheduler",
		[UJOBS_PROCESS_EXECUTOR] = "executor",
		[UJOBS_PROCESS_RELAY] = "relay"
	};
	UjobsProcess *process = palloc(UJOBS_ACTIVITY_MAX * sizeof(UjobsProcess));
	int			n = ujobs_activity_take(process);

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < n; i++)
	{
		UjobsProcess *p = &process[i];
		Datum		values[9];
		bool		nulls[9] = {false};

		values[0] = Int32GetDatum(p->pid);
		nulls[0] = p->pid == 0;
		values[1] = CStringGetTextDatum(kinds[p->kind]);
		bind_name(&values[2], &nulls[2],
				  OidIsValid(p->database) ? get_database_name(p->database) : NULL);
		bind_name(&values[3], &nulls[3],
				  OidIsValid(p->role) ? GetUserNameFromId(p->role, true) : NULL);
		values[4] = CStringGetTextDatum(p->state);
		values[5] = Int64GetDatum(p->job_id);
		nulls[5] = p->job_id == 0;
		values[6] = TimestampTzGetDatum(p->since);
		nulls[6] = p->since == 0;
		values[7] = Int64GetDatum((int64) p->jobs_done);
		nulls[7] = p->kind != UJOBS_PROCESS_EXECUTOR;
		values[8] = Int64GetDatum((int64) p->memory);
		nulls[8] = p->memory == 0;
		put_row(fcinfo, values, nulls);
	}
	return (Datum) 0;
}

/* error_codes(): the rows of ujobs.error_codes. */
Datum
ujobs_sql_error_codes(PG_FUNCTION_ARGS)
{
	InitMaterializedSRF(fcinfo, 0);
	for (const UjobsErrorInfo *row = ujobs_error_list(); row->sqlstate != NULL; row++)
	{
		Datum		values[5];
		bool		nulls[5] = {false};

		values[0] = CStringGetTextDatum(row->sqlstate);
		values[1] = CStringGetTextDatum(row->name);
		values[2] = CStringGetTextDatum(row->meaning);
		values[3] = CStringGetTextDatum(row->fix);
		values[4] = BoolGetDatum(row->terminal);
		put_row(fcinfo, values, nulls);
	}
	return (Datum) 0;
}

/* ujobs.statements() */
Datum
ujobs_sql_statements(PG_FUNCTION_ARGS)
{
	InitMaterializedSRF(fcinfo, 0);
	for (int id = 0; id < UJOBS_SQL_COUNT; id++)
	{
		UjobsStatement *statement = ujobs_catalogue_statement(id);
		Datum		values[2];
		bool		nulls[2] = {false};

		if (statement->name == NULL)
			continue;
		values[0] = CStringGetTextDatum(statement->name);
		values[1] = CStringGetTextDatum(ujobs_catalogue_statement_text(statement));
		put_row(fcinfo, values, nulls);
	}
	return (Datum) 0;
}

Jsonb *
ujobs_inspect_job(int64 id)
{
	UjobsIdentity identity;
	Jsonb	   *trace;

	ujobs_identity_enter(&identity);
	trace = ujobs_history_trace(&identity, id);
	ujobs_identity_leave(&identity);
	return trace;
}

/* ujobs.inspect_job(id bigint) */
Datum
ujobs_sql_inspect_job(PG_FUNCTION_ARGS)
{
	Jsonb	   *trace = ujobs_inspect_job(PG_GETARG_INT64(0));

	if (trace == NULL)
		PG_RETURN_NULL();
	PG_RETURN_JSONB_P(trace);
}

/* history_slot(expires_at timestamptz): for ujobs.check(). */
Datum
ujobs_sql_history_slot(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT16(ujobs_history_slot(PG_GETARG_TIMESTAMPTZ(0)));
}

/* raw_size(value jsonb): of a toasted value too, without reading it. */
Datum
ujobs_sql_raw_size(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32((int32) toast_raw_datum_size(PG_GETARG_DATUM(0)));
}
