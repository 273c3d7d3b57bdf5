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
#include "storage/lmgr.h"
#include "utils/datum.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "core/compat.h"
#include "core/entries.h"

#define TABLES 64				/* about as many are known; 32 are partitions of history */
#define INDEXES 8

/* Which rows have an entry: all, or those of which `column operator constant` is true. */
typedef struct Condition
{
	AttrNumber	column;			/* 0: all */
	FmgrInfo	function;
	Oid			collation;
	Datum		constant;
	bool		copied;			/* the constant is memory of its own */
} Condition;

typedef struct KnownIndex
{
	Oid			index;
	bool		unique;			/* of all rows */
	Condition	condition;
} KnownIndex;

typedef struct KnownTable
{
	Oid			table;			/* hash key */
	bool		valid;			/* else it is to be looked at anew */
	bool		plain;			/* all its indexes are of the usual kind */
	int			n;
	KnownIndex	index[INDEXES];
} KnownTable;

static HTAB *known = NULL;
static uint64 changes = 0;

static const KnownIndex *
find_index(const KnownTable *entry, Oid relid)
{
	for (int i = 0; i < entry->n; i++)
	{
		if (entry->index[i].index == relid)
			return &entry->index[i];
	}
	return NULL;
}

/* relid 0: everything may have changed. */
static void
on_relcache_change(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS status;
	KnownTable *entry;

	changes++;
	hash_seq_init(&status, known);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (!OidIsValid(relid) || entry->table == relid || find_index(entry, relid) != NULL)
			entry->valid = false;
	}
}

/* ---- what the indexes are ---- */

static void
constant_keep(Condition *condition, const Const *constant)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	condition->constant = datumCopy(constant->constvalue, constant->constbyval, constant->constlen);
	condition->copied = !constant->constbyval;
	MemoryContextSwitchTo(old);
}

static void
constants_forget(KnownTable *entry)
{
	for (int i = 0; i < entry->n; i++)
	{
		if (entry->index[i].condition.copied)
			pfree(DatumGetPointer(entry->index[i].condition.constant));
		entry->index[i].condition.copied = false;
	}
	entry->n = 0;
}

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
	if (list_length(op->args) != 2 || op->opfuncid >= FirstGenbkiObjectId ||
		!IsA(lsecond(op->args), Const))
		return false;
	left = linitial(op->args);
	if (IsA(left, RelabelType))
		left = (Node *) ((RelabelType *) left)->arg;
	right = lsecond_node(Const, op->args);
	if (!IsA(left, Var) || ((Var *) left)->varattno <= 0 || right->constisnull)
		return false;
	fmgr_info_cxt(op->opfuncid, &condition->function, TopMemoryContext);
	condition->column = ((Var *) left)->varattno;
	condition->collation = op->inputcollid;
	constant_keep(condition, right);
	return condition->function.fn_strict;
}

static bool
index_read(Relation index, KnownIndex *entry)
{
	entry->index = RelationGetRelid(index);
	entry->unique = index->rd_index->indisunique && index->rd_index->indisvalid &&
					RelationGetIndexPredicate(index) == NIL;
	entry->condition.copied = false;
	if (index->rd_rel->relam != BTREE_AM_OID || !index->rd_index->indimmediate ||
		index->rd_index->indisexclusion || !index->rd_index->indisready)
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

	entry->valid = false;
	constants_forget(entry);
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
	entry->valid = changes == before;
}

static void
make_known(void)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid), .entrysize = sizeof(KnownTable)};

	known = hash_create("ujobs indexes of tables", TABLES, &ctl, HASH_ELEM | HASH_BLOBS);
	CacheRegisterRelcacheCallback(on_relcache_change, (Datum) 0);
}

static KnownTable *
known_table(Relation table)
{
	Oid			relid = RelationGetRelid(table);
	KnownTable *entry;
	bool		found;

	if (known == NULL)
		make_known();
	entry = hash_search(known, &relid, HASH_ENTER, &found);
	if (!found)
	{
		entry->valid = false;
		entry->n = 0;
	}
	if (!entry->valid)
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
		   DatumGetBool(FunctionCall2Coll(&condition->function, condition->collation,
										  slot->tts_values[at], condition->constant));
}

static IndexUniqueCheck
check_of(Relation index)
{
	return index->rd_index->indisunique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO;
}

/* False: the key is there, perhaps; only with UNIQUE_CHECK_PARTIAL. */
static bool
insert_one(Relation table, Relation index, TupleTableSlot *slot, IndexUniqueCheck check)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];

	for (int i = 0; i < index->rd_index->indnatts; i++)
	{
		values[i] = slot->tts_values[index->rd_index->indkey.values[i] - 1];
		nulls[i] = slot->tts_isnull[index->rd_index->indkey.values[i] - 1];
	}
	return index_insert(index, values, nulls, &slot->tts_tid, table, check, false, NULL);
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
		(void) insert_one(table, index, slots[i], check_of(index));
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

	Assert(CheckRelationLockedByMe(table, RowExclusiveLock, true));
	if (!indexes.plain)
	{
		insert_by_executor(table, slots, n, false);
		return;
	}
	for (int i = 0; i < indexes.n; i++)
		insert_into(table, &indexes.index[i], slots, n);
}

static bool
is_unique(const KnownTable *entry, Oid relid)
{
	const KnownIndex *index = entry->plain ? find_index(entry, relid) : NULL;

	return index != NULL && index->unique;
}

Oid
ujobs_entries_unique(Relation table, const char *name)
{
	Oid			index = get_relname_relid(name, RelationGetNamespace(table));

	return is_unique(known_table(table), index) ? index : InvalidOid;
}

bool
ujobs_entries_insert_if_free(Relation table, Oid unique, TupleTableSlot *slot)
{
	KnownTable	indexes = *known_table(table);
	Relation	index;
	bool		is_free;

	if (!is_unique(&indexes, unique))
		return false;			/* one is being built concurrently, which the executor knows to leave out */
	index = index_open(unique, RowExclusiveLock);
	is_free = insert_one(table, index, slot, UNIQUE_CHECK_PARTIAL);
	index_close(index, NoLock);
	for (int i = 0; is_free && i < indexes.n; i++)
	{
		if (indexes.index[i].index != unique)
			insert_into(table, &indexes.index[i], &slot, 1);
	}
	return is_free;
}

void
ujobs_entries_summarize(Relation table, TupleTableSlot *slot)
{
	insert_by_executor(table, &slot, 1, true);
}
