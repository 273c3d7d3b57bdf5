/*
 * attempt.c: calls a handler.  Step 5 of the walk.
 *
 * A function is called through fmgr: it cannot commit, so nothing more is
 * needed.  A procedure or command goes through a portal of its own, as a
 * client's statement would: only there may it commit (bare SPI has no portal
 * for the snapshots of later transactions to hang on).  In drain, inside a
 * client's transaction, the same text runs through SPI, where a COMMIT is the
 * server's own error 2D000.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "parser/analyze.h"
#include "pgstat.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"

#include "core/compat.h"
#include "run/attempt.h"
#include "run/command.h"

/* Parse, analyse, plan: as exec_simple_query does, with one statement. */
static List *
plan_text(const char *text, ParamListInfo params, CommandTag *tag)
{
	List	   *raw = pg_parse_query(text);
	Oid			types[] = {JSONBOID};
	List	   *queries;
	List	   *plans;
	RawStmt    *statement;
	bool		snapshot;

	if (list_length(raw) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("a command job runs exactly one statement")));
	statement = linitial_node(RawStmt, raw);
	if (ujobs_command_copies_to_client(statement->stmt))
		ujobs_command_refuse_copy();
	*tag = CreateCommandTag(statement->stmt);
	snapshot = analyze_requires_snapshot(statement);
	if (snapshot)
		PushActiveSnapshot(GetTransactionSnapshot());
	queries = pg_analyze_and_rewrite_fixedparams(statement, text, types, params ? 1 : 0, NULL);
	plans = pg_plan_queries(queries, text, 0, params);
	if (snapshot)
		PopActiveSnapshot();
	return plans;
}

/* Everything the run reads lives in `context`, which outlasts its commits. */
static Jsonb *
run_portal(const char *text, Jsonb *input, MemoryContext context)
{
	ParamListInfo params = ujobs_command_params(input);
	UjobsCommandResult *result = ujobs_command_result(UJOBS_RESULT_LAST_COLUMN, context);
	CommandTag	tag;
	List	   *plans = plan_text(text, params, &tag);
	Portal		portal = CreatePortal("", true, true);

	portal->visible = false;
	PortalDefineQuery(portal, NULL, text, tag, plans, NULL);
	PortalStart(portal, params, 0, InvalidSnapshot);
	(void) ujobs_compat_portal_run(portal, FETCH_ALL, true, &result->pub);
	PortalDrop(portal, false);
	MemoryContextSwitchTo(context);
	return result->value;
}

static Jsonb *
result_to_jsonb(UjobsHandler *handler, Datum value, MemoryContext into)
{
	MemoryContext old;
	Jsonb	   *result;

	if (handler->result_type != JSONBOID)
		value = FunctionCall1(&handler->to_jsonb, value);
	old = MemoryContextSwitchTo(into);
	result = (Jsonb *) PG_DETOAST_DATUM_COPY(value);
	MemoryContextSwitchTo(old);
	return result;
}

/* What a function without a row returns: JSON null. */
static Jsonb *
json_null(MemoryContext into)
{
	MemoryContext old = MemoryContextSwitchTo(into);
	JsonbValue	null = {.type = jbvNull};
	Jsonb	   *result = JsonbValueToJsonb(&null);

	MemoryContextSwitchTo(old);
	return result;
}

static Jsonb *
call_function(UjobsHandler *handler, Jsonb *input, MemoryContext into)
{
	LOCAL_FCINFO(fcinfo, 1);
	PgStat_FunctionCallUsage usage;
	Datum		value;

	InitFunctionCallInfoData(*fcinfo, &handler->function, 1, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = JsonbPGetDatum(input);
	fcinfo->args[0].isnull = false;
	pgstat_init_function_usage(fcinfo, &usage);
	value = FunctionCallInvoke(fcinfo);
	pgstat_end_function_usage(&usage, true);
	if (handler->result_type == VOIDOID)
		return NULL;
	if (fcinfo->isnull)
		return json_null(into);
	return result_to_jsonb(handler, value, into);
}

Jsonb *
ujobs_attempt_call(UjobsHandler *handler, Jsonb *input, UjobsCallLevel level, MemoryContext into)
{
	if (handler->kind == UJOBS_KIND_ATOMIC)
		return call_function(handler, input, into);
	if (handler->kind == UJOBS_KIND_COMMAND)
		input = NULL;
	if (level == UJOBS_CALL_NESTED)
		return ujobs_command_nested(handler->text, input, into);
	return run_portal(handler->text, input, into);
}
