/*
 * query.c: the narrow seam to SPI.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "optimizer/plancat.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "core/query.h"

void
ujobs_query_bind_text(UjobsArgs *args, const char *value)
{
	if (value == NULL)
		ujobs_query_bind_null(args);
	else
		ujobs_query_bind(args, CStringGetTextDatum(value));
}

void
ujobs_query_bind_jsonb(UjobsArgs *args, Jsonb *value)
{
	if (value == NULL)
		ujobs_query_bind_null(args);
	else
		ujobs_query_bind(args, JsonbPGetDatum(value));
}

void
ujobs_query_bind_array(UjobsArgs *args, Oid element, Datum *values, bool *nulls, int n)
{
	int16		length;
	bool		by_value;
	char		alignment;
	int			lower_bound = 1;

	get_typlenbyvalalign(element, &length, &by_value, &alignment);
	ujobs_query_bind(args, PointerGetDatum(construct_md_array(values, nulls, 1, &n, &lower_bound,
														element, length, by_value, alignment)));
}

/* ---- plans ---- */

#define LARGE_TUPLES 1000000.0
#define LARGE_PAGES 20000
#define LARGE_HEIGHT 2			/* of a btree */

static bool planning = false;	/* a statement of ours */
static get_relation_info_hook_type next_relation_info_hook = NULL;

/*
 * On a table that is empty, all indexes cost the same, and whichever is taken
 * stays in the plan when the table grows.  So ours are planned as if they
 * were large already.
 */
static void
see_it_large(PlannerInfo *root, Oid relation, bool inhparent, RelOptInfo *rel)
{
	ListCell   *lc;

	if (next_relation_info_hook)
		next_relation_info_hook(root, relation, inhparent, rel);
	if (!planning || relation < FirstNormalObjectId)
		return;
	rel->tuples = Max(rel->tuples, LARGE_TUPLES);
	rel->pages = Max(rel->pages, LARGE_PAGES);
	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst(lc);

		index->tuples = Max(index->tuples, LARGE_TUPLES);
		index->pages = Max(index->pages, LARGE_PAGES / 4);
		index->tree_height = Max(index->tree_height, LARGE_HEIGHT);
	}
}

void
ujobs_query_init(void)
{
	next_relation_info_hook = get_relation_info_hook;
	get_relation_info_hook = see_it_large;
}

/*
 * Plans are generic and made when the table may still be empty; a plan that
 * scans the table would then be kept while it grows.  Ours always have an
 * index to use, so planning happens with the alternatives off.  The settings
 * go with the identity section.
 */
static void
pin_planner(void)
{
	static const char *const off[] = {
		"enable_seqscan", "enable_bitmapscan", "enable_sort", "enable_hashjoin", "enable_mergejoin", "jit"
	};

	for (int i = 0; i < lengthof(off); i++)
		(void) set_config_option(off[i], "off", PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
}

static void
prepare(UjobsStatement *statement)
{
	SPIPlanPtr	plan = SPI_prepare_cursor(statement->sql, statement->nargs, statement->argtypes,
										  CURSOR_OPT_GENERIC_PLAN);

	if (plan == NULL)
		elog(ERROR, "could not prepare statement \"%s\": %s", statement->name,
			 SPI_result_code_string(SPI_result));
	SPI_keepplan(plan);
	statement->plan = plan;
}

static int
plan_and_execute(UjobsStatement *statement, UjobsArgs *args, bool read_only)
{
	int			rc;

	pin_planner();
	planning = true;
	PG_TRY();
	{
		rc = SPI_execute_plan(statement->plan, args ? args->value : NULL,
							  args ? args->null : NULL, read_only, 0);
	}
	PG_FINALLY();
	{
		planning = false;
	}
	PG_END_TRY();
	return rc;
}

static UjobsResult
run(UjobsStatement *statement, UjobsArgs *args, bool read_only)
{
	UjobsResult result;
	int			rc;

	Assert(IsTransactionState());
	Assert(InLocalUserIdChange());		/* an identity section is open */
	Assert(!read_only || ActiveSnapshotSet());
	if (args != NULL && args->n != statement->nargs)
		elog(ERROR, "statement \"%s\" takes %d arguments, got %d", statement->name,
			 statement->nargs, args->n);
	if (statement->plan == NULL)
		prepare(statement);
	if (!statement->planned || !SPI_plan_is_valid(statement->plan))
		rc = plan_and_execute(statement, args, read_only);
	else
		rc = SPI_execute_plan(statement->plan, args ? args->value : NULL,
							  args ? args->null : NULL, read_only, 0);
	if (rc < 0)
		elog(ERROR, "statement \"%s\" failed: %s", statement->name,
			 SPI_result_code_string(rc));
	statement->planned = true;
	result.rows = SPI_processed;
	result.table = SPI_tuptable;
	return result;
}

UjobsResult
ujobs_query_run(UjobsStatement *statement, UjobsArgs *args)
{
	return run(statement, args, false);
}

UjobsResult
ujobs_query_read(UjobsStatement *statement, UjobsArgs *args)
{
	return run(statement, args, true);
}

static Datum
column_datum(const UjobsResult *result, uint64 row, int column, bool *isnull)
{
	return SPI_getbinval(result->table->vals[row], result->table->tupdesc, column + 1, isnull);
}

bool
ujobs_query_result_is_null(const UjobsResult *result, uint64 row, int column)
{
	bool		isnull;

	(void) column_datum(result, row, column, &isnull);
	return isnull;
}

Datum
ujobs_query_result_datum(const UjobsResult *result, uint64 row, int column)
{
	bool		isnull;
	Datum		value = column_datum(result, row, column, &isnull);

	return isnull ? (Datum) 0 : value;
}

Datum
ujobs_query_result_copy(const UjobsResult *result, uint64 row, int column, MemoryContext into)
{
	Form_pg_attribute attribute = TupleDescAttr(result->table->tupdesc, column);
	bool		isnull;
	Datum		value = column_datum(result, row, column, &isnull);
	MemoryContext old;

	if (isnull)
		return (Datum) 0;
	old = MemoryContextSwitchTo(into);
	if (attribute->attlen == -1)
		value = PointerGetDatum(PG_DETOAST_DATUM_COPY(value));
	else
		value = datumCopy(value, attribute->attbyval, attribute->attlen);
	MemoryContextSwitchTo(old);
	return value;
}

char *
ujobs_query_result_text(const UjobsResult *result, uint64 row, int column, MemoryContext into)
{
	bool		isnull;
	Datum		value = column_datum(result, row, column, &isnull);
	MemoryContext old;
	char	   *string;

	if (isnull)
		return NULL;
	old = MemoryContextSwitchTo(into);
	string = TextDatumGetCString(value);
	MemoryContextSwitchTo(old);
	return string;
}

Jsonb *
ujobs_query_result_jsonb(const UjobsResult *result, uint64 row, int column, MemoryContext into)
{
	Datum		value = ujobs_query_result_copy(result, row, column, into);

	return value == (Datum) 0 ? NULL : (Jsonb *) DatumGetPointer(value);
}
