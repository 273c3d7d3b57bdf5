/*
 * command.c: SPI for statements of users.
 *
 * A step's command is prepared once per session and text, because a handler
 * runs the same few commands for every job.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "nodes/makefuncs.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

#include "run/command.h"

#define KEPT_PLANS 64

typedef struct KeptPlan
{
	char	   *text;
	SPIPlanPtr	plan;
} KeptPlan;

static KeptPlan kept[KEPT_PLANS];
static int	next_kept = 0;

/* ---- results ---- */

void
ujobs_command_prepare_jsonb(FmgrInfo *to_jsonb, Oid type)
{
	Node	   *argument = (Node *) makeNullConst(type, -1, InvalidOid);

	/* to_jsonb is polymorphic: it asks the call's expression for the type. */
	fmgr_info(F_TO_JSONB, to_jsonb);
	fmgr_info_set_expr((Node *) makeFuncExpr(F_TO_JSONB, JSONBOID, list_make1(argument),
											 InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL),
					   to_jsonb);
}

static Datum
as_jsonb(Datum value, Oid type)
{
	FmgrInfo	to_jsonb;

	if (type == JSONBOID)
		return value;
	ujobs_command_prepare_jsonb(&to_jsonb, type);
	return FunctionCall1(&to_jsonb, value);
}

static bool
receive_row(TupleTableSlot *slot, DestReceiver *self)
{
	UjobsCommandResult *result = (UjobsCommandResult *) self;
	int			natts = slot->tts_tupleDescriptor->natts;
	int			column = result->column == UJOBS_RESULT_LAST_COLUMN ? natts : 1;
	bool		isnull;
	Datum		value;
	Oid			type;
	MemoryContext old;

	if (result->seen || natts == 0)
		return true;
	result->seen = true;
	type = TupleDescAttr(slot->tts_tupleDescriptor, column - 1)->atttypid;
	if (result->column == UJOBS_RESULT_LAST_COLUMN && type != JSONBOID)
		return true;
	value = slot_getattr(slot, column, &isnull);
	if (isnull || type == VOIDOID)
		return true;
	value = as_jsonb(value, type);
	old = MemoryContextSwitchTo(result->into);
	result->value = (Jsonb *) PG_DETOAST_DATUM_COPY(value);
	MemoryContextSwitchTo(old);
	return true;
}

static void
receive_startup(DestReceiver *self, int operation, TupleDesc typeinfo)
{
}

static void
receive_nothing(DestReceiver *self)
{
}

UjobsCommandResult *
ujobs_command_result(UjobsResultColumn column, MemoryContext into)
{
	UjobsCommandResult *result = palloc0(sizeof(UjobsCommandResult));

	result->pub.receiveSlot = receive_row;
	result->pub.rStartup = receive_startup;
	result->pub.rShutdown = result->pub.rDestroy = receive_nothing;
	result->pub.mydest = DestNone;
	result->column = column;
	result->into = into;
	return result;
}

static ParamListInfo
params_make(Jsonb *value)
{
	ParamListInfo params = makeParamList(1);

	params->params[0].value = JsonbPGetDatum(value);
	params->params[0].isnull = value == NULL;
	params->params[0].pflags = PARAM_FLAG_CONST;
	params->params[0].ptype = JSONBOID;
	return params;
}

ParamListInfo
ujobs_command_params(Jsonb *input)
{
	return input != NULL ? params_make(input) : NULL;
}

/* ---- running ---- */

bool
ujobs_command_copies_to_client(const Node *statement)
{
	return IsA(statement, CopyStmt) && castNode(CopyStmt, statement)->filename == NULL;
}

void
ujobs_command_refuse_copy(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("a job cannot COPY to or from a client"),
			 errdetail("A job has no client: standard input and output are those of the server."),
			 errhint("COPY to or from a file of the server, or read and write rows by INSERT and SELECT.")));
}

static void
check(int rc)
{
	if (rc == SPI_ERROR_TRANSACTION)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
				 errmsg("a job cannot control the transaction that runs it")));
	if (rc == SPI_ERROR_COPY)
		ujobs_command_refuse_copy();
	if (rc < 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("statement cannot run inside a transaction block: %s",
						SPI_result_code_string(rc))));
}

Jsonb *
ujobs_command_nested(const char *text, Jsonb *input, MemoryContext into)
{
	SPIExecuteOptions options = {0};
	UjobsCommandResult *result = ujobs_command_result(UJOBS_RESULT_LAST_COLUMN, into);

	SPI_connect();
	options.params = ujobs_command_params(input);
	options.dest = &result->pub;
	check(SPI_execute_extended(text, &options));
	SPI_finish();
	return result->value;
}

static SPIPlanPtr
prepare(const char *text)
{
	Oid			type = JSONBOID;
	KeptPlan   *place;
	SPIPlanPtr	plan;

	for (int i = 0; i < KEPT_PLANS; i++)
	{
		if (kept[i].text != NULL && strcmp(kept[i].text, text) == 0)
			return kept[i].plan;
	}
	plan = SPI_prepare(text, 1, &type);
	if (plan == NULL)
		check(SPI_result);
	if (list_length(SPI_plan_get_plan_sources(plan)) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("a step runs exactly one statement"),
				 errdetail("Its command has %d.", list_length(SPI_plan_get_plan_sources(plan))),
				 errhint("Give each statement a step of its own, or put them between step_begin and step_end.")));
	place = &kept[next_kept];
	next_kept = (next_kept + 1) % KEPT_PLANS;
	if (place->text != NULL)
	{
		pfree(place->text);
		place->text = NULL;
		SPI_freeplan(place->plan);
	}
	if (SPI_keepplan(plan) != 0)
		elog(ERROR, "could not keep a step's plan");
	place->plan = plan;
	place->text = MemoryContextStrdup(TopMemoryContext, text);
	return plan;
}

void
ujobs_command_open(bool may_commit)
{
	SPI_connect_ext(may_commit ? SPI_OPT_NONATOMIC : 0);
}

Jsonb *
ujobs_command_run(const char *command, Jsonb *args, MemoryContext into)
{
	SPIExecuteOptions options = {0};
	UjobsCommandResult *result = ujobs_command_result(UJOBS_RESULT_FIRST_COLUMN, into);

	options.params = params_make(args);
	options.dest = &result->pub;
	check(SPI_execute_plan_extended(prepare(command), &options));
	return result->value;
}

void
ujobs_command_commit(void)
{
	SPI_commit();
}

void
ujobs_command_close(void)
{
	SPI_finish();
}
