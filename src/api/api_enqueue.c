/*
 * api_enqueue.c: enqueue, enqueue_many and enqueue_as.
 *
 * Step 1 of the walk of a job: arguments in, one row (or many) written in the
 * caller's transaction, ids out.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "api/enqueue_options.h"
#include "run/route.h"

PG_FUNCTION_INFO_V1(ujobs_sql_enqueue);
PG_FUNCTION_INFO_V1(ujobs_sql_enqueue_many);
PG_FUNCTION_INFO_V1(ujobs_sql_enqueue_as);

#define RESULT_COLUMNS 3

/* A job that went to a broker has no id. */
static void
result_values(UjobsEnqueued *result, Datum *values, bool *nulls)
{
	values[0] = Int64GetDatum(result->id);
	nulls[0] = result->id == 0;
	values[1] = UUIDPGetDatum(&result->run_id);
	values[2] = BoolGetDatum(result->deduped);
}

/*
 * The row type of one job's answer, made once: to ask for it at each call is a
 * thirtieth of an enqueue.
 */
static TupleDesc
result_type(FunctionCallInfo fcinfo)
{
	static TupleDesc known = NULL;
	TupleDesc	tupdesc;
	MemoryContext old;

	if (known != NULL && known->tdtypeid == get_func_rettype(fcinfo->flinfo->fn_oid))
		return known;
	if (known != NULL)
		FreeTupleDesc(known);	/* of an extension that was dropped */
	known = NULL;
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	old = MemoryContextSwitchTo(TopMemoryContext);
	known = BlessTupleDesc(CreateTupleDescCopy(tupdesc));
	MemoryContextSwitchTo(old);
	return known;
}

static Datum
result_row(FunctionCallInfo fcinfo, UjobsEnqueued *result)
{
	Datum		values[RESULT_COLUMNS];
	bool		nulls[RESULT_COLUMNS] = {false};

	result_values(result, values, nulls);
	return HeapTupleGetDatum(heap_form_tuple(result_type(fcinfo), values, nulls));
}

static Jsonb *
input_required(FunctionCallInfo fcinfo, int n)
{
	if (PG_ARGISNULL(n))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the input of a job must not be null"),
				 errhint("Pass a jsonb value, such as '{}', or 'null' for JSON null.")));
	return PG_GETARG_JSONB_P(n);
}

/* ---- one ---- */

Datum
ujobs_sql_enqueue(PG_FUNCTION_ARGS)
{
	static const UjobsEnqueueForm form = {"ujobs.enqueue()", 0, true};
	UjobsEnqueueCall call;
	UjobsEnqueueItem item;

	ujobs_enqueue_options_read(fcinfo, &form, &call);
	ujobs_enqueue_options_item(&call, input_required(fcinfo, 1), 0, &item);
	ujobs_route_one(&call.options, &item);
	return result_row(fcinfo, &item.result);
}

Datum
ujobs_sql_enqueue_as(PG_FUNCTION_ARGS)
{
	static const UjobsEnqueueForm form = {"ujobs.enqueue_as()", 1, true};
	UjobsEnqueueCall call;
	UjobsEnqueueItem item;

	ujobs_enqueue_options_read(fcinfo, &form, &call);
	if (!PG_ARGISNULL(0))
		ujobs_enqueue_options_actor(&call, PG_GETARG_JSONB_P(0));
	ujobs_enqueue_options_item(&call, input_required(fcinfo, 2), 0, &item);
	ujobs_route_one(&call.options, &item);
	return result_row(fcinfo, &item.result);
}

/* ---- many ---- */

/* The same text in a chunk of its own size: a rendering leaves room to grow. */
static const char *
trimmed(const char *text, const char *given)
{
	char	   *copy;

	if (text == given || *text == '\0')
		return text;
	copy = pstrdup(text);
	pfree(unconstify(char *, text));
	return copy;
}

static UjobsEnqueueItem *
items_read(const UjobsEnqueueCall *call, ArrayType *inputs, int *n)
{
	UjobsEnqueueItem *items;
	Datum	   *values;
	bool	   *nulls;

	deconstruct_array(inputs, JSONBOID, -1, false, TYPALIGN_INT, &values, &nulls, n);
	items = MemoryContextAllocHuge(CurrentMemoryContext, Max(*n, 1) * sizeof(UjobsEnqueueItem));
	for (int i = 0; i < *n; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("the input of a job must not be null"),
					 errdetail("Input %d of the call is null.", i + 1),
					 errhint("Pass a jsonb value, such as '{}', or 'null' for JSON null.")));
		ujobs_enqueue_options_item(call, DatumGetJsonbP(values[i]), i + 1, &items[i]);
		items[i].key = trimmed(items[i].key, call->key);
		items[i].tenant = trimmed(items[i].tenant, call->tenant);
		CHECK_FOR_INTERRUPTS();
	}
	return items;
}

Datum
ujobs_sql_enqueue_many(PG_FUNCTION_ARGS)
{
	static const UjobsEnqueueForm form = {"ujobs.enqueue_many()", 0, false};
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	UjobsEnqueueCall call;
	UjobsEnqueueItem *items;
	int			n;

	ujobs_enqueue_options_read(fcinfo, &form, &call);
	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the inputs of the jobs must not be null"),
				 errhint("Pass an array of jsonb; an empty one enqueues nothing.")));
	items = items_read(&call, PG_GETARG_ARRAYTYPE_P(1), &n);
	ujobs_route_many(&call.options, items, n);

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < n; i++)
	{
		Datum		values[RESULT_COLUMNS];
		bool		nulls[RESULT_COLUMNS] = {false};

		result_values(&items[i].result, values, nulls);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
