/*
 * bulk.c: many rows at once, each index in an order of its own.
 *
 * Rows are stored by the thousand, with one WAL record a page, and then go
 * into each index together, so that its pages are still at hand.  The unique
 * index that others meet at is filled last and in its own order: two callers
 * then wait for each other in one direction only.
 *
 * What is between two keys of an index is told by one look into it.  Where it
 * is nothing, the next look spans twice as many; where something is, the span
 * is one key again and stays so for a while, twice as long each time: a look
 * at many keys reads a whole page of others.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "core/bulk.h"
#include "core/compat.h"
#include "core/table.h"

#define SLOTS 1000				/* rows stored together, */
#define SLOT_BYTES (256 * 1024) /* unless they are large */
#define MAX_SINGLES 1024

/* An open insert. */
typedef struct Filling
{
	Relation	table;
	const UjobsBulk *bulk;
	EState	   *estate;
	ResultRelInfo *info;
	MemoryContext context;		/* of the rows at hand */
	TupleTableSlot *slot[SLOTS];
	ItemPointerData *tid;		/* where each row went */
} Filling;

static bool
index_is(Relation index, const char *name)
{
	return strcmp(RelationGetRelationName(index), name) == 0;
}

bool
ujobs_bulk_possible(Relation table, const char *ordered)
{
	List	   *indexes = RelationGetIndexList(table);
	bool		possible = ujobs_table_is_bare(table);
	bool		found = false;
	ListCell   *cell;

	foreach(cell, indexes)
	{
		Relation	index = index_open(lfirst_oid(cell), RowExclusiveLock);

		if (index->rd_index->indisexclusion || !index->rd_index->indimmediate)
			possible = false;
		if (index_is(index, ordered) && index->rd_index->indisunique && index->rd_index->indisvalid)
			found = true;
		index_close(index, NoLock);
	}
	list_free(indexes);
	return possible && found;
}

/* ---- insert ---- */

static TupleTableSlot *
slot_fill(Filling *filling, int at, int row, Size *bytes)
{
	TupleTableSlot *slot = filling->slot[at];

	ExecClearTuple(slot);
	*bytes += filling->bulk->row(filling->bulk->arg, row, slot->tts_values, slot->tts_isnull);
	slot->tts_tableOid = RelationGetRelid(filling->table);
	return ExecStoreVirtualTuple(slot);
}

/* The entry of the row in the slot, in one index of the table. */
static void
index_fill(Filling *filling, int n, TupleTableSlot *slot, ItemPointer tid)
{
	Relation	index = filling->info->ri_IndexRelationDescs[n];
	IndexInfo  *info = filling->info->ri_IndexRelationInfo[n];
	ExprContext *econtext = GetPerTupleExprContext(filling->estate);
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];

	econtext->ecxt_scantuple = slot;
	if (info->ii_Predicate != NIL)
	{
		if (info->ii_PredicateState == NULL)
			info->ii_PredicateState = ExecPrepareQual(info->ii_Predicate, filling->estate);
		if (!ExecQual(info->ii_PredicateState, econtext))
			return;
	}
	FormIndexDatum(info, slot, filling->estate, values, nulls);
	index_insert(index, values, nulls, tid, filling->table,
				 index->rd_index->indisunique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO, false, info);
}

/* Stores the rows from `first` on that fit together, and fills all indexes but the ordered one. */
static int
store_some(Filling *filling, int first)
{
	int			most = Min(SLOTS, filling->bulk->n - first);
	Size		bytes = 0;
	int			n;

	for (n = 0; n < most && bytes < SLOT_BYTES; n++)
		(void) slot_fill(filling, n, first + n, &bytes);
	table_multi_insert(filling->table, filling->slot, n, GetCurrentCommandId(true), 0, NULL);
	for (int i = 0; i < n; i++)
		filling->tid[first + i] = filling->slot[i]->tts_tid;

	for (int k = 0; k < filling->info->ri_NumIndices; k++)
	{
		if (index_is(filling->info->ri_IndexRelationDescs[k], filling->bulk->ordered) ||
			!filling->info->ri_IndexRelationInfo[k]->ii_ReadyForInserts)
			continue;
		for (int i = 0; i < n; i++)
			index_fill(filling, k, filling->slot[i], &filling->slot[i]->tts_tid);
		ResetPerTupleExprContext(filling->estate);
	}
	return n;
}

static void
fill_ordered(Filling *filling)
{
	const UjobsBulk *bulk = filling->bulk;
	int			ordered = 0;
	Size		bytes = 0;

	while (!index_is(filling->info->ri_IndexRelationDescs[ordered], bulk->ordered))
		ordered++;
	for (int i = 0; i < bulk->n; i++)
	{
		int			row = bulk->order[i];

		index_fill(filling, ordered, slot_fill(filling, 0, row, &bytes), &filling->tid[row]);
		if (i % SLOTS == SLOTS - 1)
		{
			ResetPerTupleExprContext(filling->estate);
			MemoryContextReset(filling->context);
			CHECK_FOR_INTERRUPTS();
		}
	}
}

static void
filling_open(Filling *filling, Relation table, const UjobsBulk *bulk)
{
	filling->table = table;
	filling->bulk = bulk;
	filling->estate = CreateExecutorState();
	filling->info = makeNode(ResultRelInfo);
	InitResultRelInfo(filling->info, table, 1, NULL, 0);
	ExecOpenIndices(filling->info, false);
	filling->context = AllocSetContextCreate(CurrentMemoryContext, "ujobs rows at hand",
											 ALLOCSET_DEFAULT_SIZES);
	filling->tid = MemoryContextAllocHuge(CurrentMemoryContext, bulk->n * sizeof(ItemPointerData));
	for (int i = 0; i < Min(SLOTS, bulk->n); i++)
		filling->slot[i] = MakeSingleTupleTableSlot(RelationGetDescr(table), &TTSOpsVirtual);
}

static void
filling_close(Filling *filling)
{
	for (int i = 0; i < Min(SLOTS, filling->bulk->n); i++)
		ExecDropSingleTupleTableSlot(filling->slot[i]);
	ExecCloseIndices(filling->info);
	FreeExecutorState(filling->estate);
	MemoryContextDelete(filling->context);
	pfree(filling->tid);
}

void
ujobs_bulk_insert(Relation table, const UjobsBulk *bulk)
{
	Filling		filling;
	MemoryContext caller;
	int			stored = 0;

	filling_open(&filling, table, bulk);
	caller = MemoryContextSwitchTo(filling.context);
	while (stored < bulk->n)
	{
		stored += store_some(&filling, stored);
		MemoryContextReset(filling.context);
		CHECK_FOR_INTERRUPTS();
	}
	fill_ordered(&filling);
	MemoryContextSwitchTo(caller);
	filling_close(&filling);
	CommandCounterIncrement();
}

/* ---- look ---- */

static Relation
ordered_open(Relation table, const char *name)
{
	ListCell   *cell;

	foreach(cell, RelationGetIndexList(table))
	{
		Relation	index = index_open(lfirst_oid(cell), RowExclusiveLock);

		if (index_is(index, name))
			return index;
		index_close(index, NoLock);
	}
	elog(ERROR, "table \"%s\" has no index \"%s\"", RelationGetRelationName(table), name);
}

/* Is there a row of a key from..to, which are of one group? */
static bool
span_has_row(IndexScanDesc scan, TupleTableSlot *slot, int32 first,
			 const UjobsBulkKey *from, const UjobsBulkKey *to)
{
	ScanKeyData key[4];
	text	   *group = cstring_to_text(from->group);
	text	   *least = cstring_to_text(from->name);
	text	   *last = from == to ? NULL : cstring_to_text(to->name);
	bool		found;

	ScanKeyInit(&key[0], 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(first));
	ScanKeyInit(&key[1], 2, BTEqualStrategyNumber, F_TEXTEQ, PointerGetDatum(group));
	if (last == NULL)
	{
		ScanKeyInit(&key[2], 3, BTEqualStrategyNumber, F_TEXTEQ, PointerGetDatum(least));
		key[3] = key[2];
	}
	else
	{
		ScanKeyInit(&key[2], 3, BTGreaterEqualStrategyNumber, F_TEXT_GE, PointerGetDatum(least));
		ScanKeyInit(&key[3], 3, BTLessEqualStrategyNumber, F_TEXT_LE, PointerGetDatum(last));
	}
	index_rescan(scan, key, 4, NULL, 0);
	found = index_getnext_slot(scan, ForwardScanDirection, slot);
	ExecClearTuple(slot);
	pfree(group);
	pfree(least);
	if (last != NULL)
		pfree(last);
	return found;
}

/* The last of the keys from i on that are of one group, `span` at most. */
static int
span_end(const UjobsBulkKeys *keys, int i, int span)
{
	const UjobsBulkKey *key = keys->key;
	int			end = i;

	while (end + 1 < keys->n && end - i + 1 < span &&
		   (key[end + 1].group == key[i].group || strcmp(key[end + 1].group, key[i].group) == 0))
		end++;
	return end;
}

void
ujobs_bulk_look(Relation table, const char *ordered, const UjobsBulkKeys *keys, bool *taken)
{
	Relation	index = ordered_open(table, ordered);
	TupleTableSlot *slot = table_slot_create(table, NULL);
	SnapshotData dirty;
	IndexScanDesc scan;
	int			span = 1;
	int			singles = 0;	/* looks at one key that are still to be made, */
	int			hold = 1;		/* and how many after the next fault */

	InitDirtySnapshot(dirty);
	scan = ujobs_compat_index_beginscan(table, index, &dirty, 4);
	memset(taken, false, keys->n * sizeof(bool));
	for (int i = 0; i < keys->n;)
	{
		int			end = span_end(keys, i, singles > 0 ? 1 : span);
		bool		found = span_has_row(scan, slot, keys->first, &keys->key[i], &keys->key[end]);

		CHECK_FOR_INTERRUPTS();
		if (found && end > i)
		{
			span = 1;
			singles = hold = Min(hold * 2, MAX_SINGLES);
			continue;
		}
		taken[i] = found;
		if (singles > 0)
			singles--;
		else if (!found)
		{
			span = Min(span * 2, keys->n);
			if (span > MAX_SINGLES)
				hold = 1;
		}
		i = end + 1;
	}
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	index_close(index, NoLock);
}
