/*
 * entries.c: index entries of rows that were just stored.
 *
 * The executor would open each index, copy and compile its predicate, and
 * throw all of it away: for one row that costs as much as a third of the entry.
 * What a table's indexes are is kept per process instead, until the server
 * says that table or index changed.  An index whose predicate no row meets is
 * not even opened.
 *
 * Only indexes as the extension makes them are kept so: B-trees on columns,
 * with no predicate but "column operator constant" of built-in functions.  A
 * table with any other, that an administrator may have added, is left to the
 * executor.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/transam.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "executor/executor.h"
#include "nodes/primnodes.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "core/compat.h"
#include "core/entries.h"

#define TABLES 8
#define INDEXES 4

/* Which rows have an entry: all, or those of which `column operator constant` is true. */
typedef struct Condition
{
	AttrNumber	column;			/* 0: all */
	FmgrInfo	function;
	Oid			collation;
	Datum		constant;		/* passed by value */
} Condition;

typedef struct KnownIndex
{
	Oid			index;
	Condition	condition;
} KnownIndex;

typedef struct KnownTable
{
	Oid			table;			/* 0: to be looked at anew */
	bool		plain;			/* all its indexes are of the usual kind */
	int			n;
	KnownIndex	index[INDEXES];
} KnownTable;

static KnownTable known[TABLES];
static bool registered = false;
static uint64 changes = 0;

static bool
has_index(const KnownTable *entry, Oid relid)
{
	for (int i = 0; i < entry->n; i++)
	{
		if (entry->index[i].index == relid)
			return true;
	}
	return false;
}

/* relid 0: everything may have changed. */
static void
on_relcache_change(Datum arg, Oid relid)
{
	changes++;
	for (int i = 0; i < TABLES; i++)
	{
		if (!OidIsValid(relid) || known[i].table == relid || has_index(&known[i], relid))
			known[i].table = InvalidOid;
	}
}

/* ---- what the indexes are ---- */

/* False: a predicate of another kind. */
static bool
condition_read(Relation index, Condition *condition)
{
	List	   *predicate = RelationGetIndexPredicate(index);
	OpExpr	   *op;
	Node	   *left;
	Const	   *right;

	condition->column = 0;
	if (predicate == NIL)
		return true;
	if (list_length(predicate) != 1 || !IsA(linitial(predicate), OpExpr))
		return false;
	op = linitial_node(OpExpr, predicate);
	if (list_length(op->args) != 2 || op->opfuncid >= FirstGenbkiObjectId || !IsA(lsecond(op->args), Const))
		return false;
	left = linitial(op->args);
	if (IsA(left, RelabelType))
		left = (Node *) ((RelabelType *) left)->arg;
	right = lsecond_node(Const, op->args);
	if (!IsA(left, Var) || ((Var *) left)->varattno <= 0 || !right->constbyval || right->constisnull)
		return false;
	fmgr_info_cxt(op->opfuncid, &condition->function, TopMemoryContext);
	condition->column = ((Var *) left)->varattno;
	condition->collation = op->inputcollid;
	condition->constant = right->constvalue;
	return condition->function.fn_strict;
}

static bool
index_read(Relation index, KnownIndex *entry)
{
	entry->index = RelationGetRelid(index);
	if (index->rd_rel->relam != BTREE_AM_OID || !index->rd_index->indimmediate || index->rd_index->indisexclusion ||
		!index->rd_index->indisready)
		return false;
	for (int i = 0; i < index->rd_index->indnatts; i++)
	{
		if (index->rd_index->indkey.values[i] <= 0)
			return false;
	}
	return condition_read(index, &entry->condition);
}

static void
table_read(Relation table, KnownTable *entry)
{
	uint64		before = changes;
	List	   *indexes = RelationGetIndexList(table);
	ListCell   *cell;

	entry->table = InvalidOid;
	entry->n = 0;
	entry->plain = list_length(indexes) <= INDEXES;
	foreach(cell, indexes)
	{
		Relation	index;

		if (!entry->plain)
			break;
		index = index_open(lfirst_oid(cell), RowExclusiveLock);
		entry->plain = index_read(index, &entry->index[entry->n++]);
		index_close(index, NoLock);
	}
	list_free(indexes);
	/* To open an index may have told of a change: then it serves this once. */
	if (changes == before)
		entry->table = RelationGetRelid(table);
}

static KnownTable *
known_table(Relation table)
{
	KnownTable *entry = &known[RelationGetRelid(table) % TABLES];

	if (!registered)
		CacheRegisterRelcacheCallback(on_relcache_change, (Datum) 0);
	registered = true;
	if (entry->table != RelationGetRelid(table))
		table_read(table, entry);
	return entry;
}

/* ---- entries ---- */

static bool
condition_holds(Condition *condition, const TupleTableSlot *slot)
{
	int			at = condition->column - 1;

	if (condition->column == 0)
		return true;
	return !slot->tts_isnull[at] &&
		DatumGetBool(FunctionCall2Coll(&condition->function, condition->collation, slot->tts_values[at],
									   condition->constant));
}

static void
insert_one(Relation table, Relation index, TupleTableSlot *slot)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];

	for (int i = 0; i < index->rd_index->indnatts; i++)
	{
		values[i] = slot->tts_values[index->rd_index->indkey.values[i] - 1];
		nulls[i] = slot->tts_isnull[index->rd_index->indkey.values[i] - 1];
	}
	(void) index_insert(index, values, nulls, &slot->tts_tid, table,
						index->rd_index->indisunique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO, false, NULL);
}

static void
insert_into(Relation table, KnownIndex *entry, TupleTableSlot **slots, int n)
{
	Condition	condition = entry->condition;
	Oid			relid = entry->index;
	Relation	index = NULL;

	for (int i = 0; i < n; i++)
	{
		if (!condition_holds(&condition, slots[i]))
			continue;
		if (index == NULL)
			index = index_open(relid, RowExclusiveLock);
		insert_one(table, index, slots[i]);
	}
	if (index != NULL)
		index_close(index, NoLock);
}

static void
insert_by_executor(Relation table, TupleTableSlot **slots, int n, bool only_summarizing)
{
	EState	   *estate = CreateExecutorState();
	ResultRelInfo *info = makeNode(ResultRelInfo);

	InitResultRelInfo(info, table, 1, NULL, 0);
	ExecOpenIndices(info, false);
	for (int i = 0; i < n; i++)
	{
		ujobs_compat_insert_index_tuples(info, slots[i], estate, only_summarizing);
		ResetPerTupleExprContext(estate);
	}
	ExecCloseIndices(info);
	FreeExecutorState(estate);
}

void
ujobs_entries_insert(Relation table, TupleTableSlot **slots, int n)
{
	KnownTable	indexes = *known_table(table);	/* a copy: to open one may tell of changes to another */

	if (!indexes.plain)
	{
		insert_by_executor(table, slots, n, false);
		return;
	}
	for (int i = 0; i < indexes.n; i++)
		insert_into(table, &indexes.index[i], slots, n);
}

void
ujobs_entries_summarize(Relation table, TupleTableSlot *slot)
{
	insert_by_executor(table, &slot, 1, true);
}
