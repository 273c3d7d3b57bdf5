/*
 * table.c: the table access method, directly.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "executor/executor.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "core/compat.h"
#include "core/entries.h"
#include "core/table.h"

#define NEAR 8					/* ids so close are read together */

/* The snapshot that callers must have made active. */
static Snapshot
active_snapshot(void)
{
	Assert(ActiveSnapshotSet());
	return GetActiveSnapshot();
}

Relation
ujobs_table_open(const char *name, UjobsTableUse use)
{
	Oid			schema = get_namespace_oid("ujobs_internal", true);
	Oid			relid = OidIsValid(schema) ? get_relname_relid(name, schema) : InvalidOid;

	Assert(IsTransactionState());
	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("extension \"ujobs\" is not installed in this database"),
				 errhint("Run CREATE EXTENSION ujobs.")));
	return table_open(relid, use == UJOBS_TABLE_WRITE ? RowExclusiveLock : AccessShareLock);
}

void
ujobs_table_close(Relation table)
{
	table_close(table, NoLock);
}

static Oid
primary_key_of(Relation table)
{
	Oid			index;

	if (!table->rd_indexvalid)
		list_free(RelationGetIndexList(table));
	index = table->rd_pkindex;
	if (!OidIsValid(index))
		elog(ERROR, "table \"%s\" has no primary key", RelationGetRelationName(table));
	return index;
}

/* How many of the ids can be read in one go: they rise, and there is little between them. */
static int
run_of(const int64 *ids, int n)
{
	int			run = 1;

	while (run < n && ids[run] > ids[run - 1] && ids[run] - ids[run - 1] <= NEAR)
		run++;
	return run;
}

/* One run, by one scan.  There may be others' rows between its own. */
static void
fetch_run(IndexScanDesc scan, const int64 *ids, int n, TupleTableSlot *slot, HeapTuple *out)
{
	ScanKeyData key[2];
	int			at = 0;

	ScanKeyInit(&key[0], 1, BTGreaterEqualStrategyNumber, F_INT8GE, Int64GetDatum(ids[0]));
	ScanKeyInit(&key[1], 1, BTLessEqualStrategyNumber, F_INT8LE, Int64GetDatum(ids[n - 1]));
	if (n == 1)
	{
		ScanKeyInit(&key[0], 1, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(ids[0]));
		key[1] = key[0];
	}
	memset(out, 0, n * sizeof(HeapTuple));
	index_rescan(scan, key, 2, NULL, 0);
	while (at < n && index_getnext_slot(scan, ForwardScanDirection, slot))
	{
		bool		isnull;
		int64		id = DatumGetInt64(slot_getattr(slot, scan->indexRelation->rd_index->indkey.values[0], &isnull));

		while (at < n && ids[at] < id)
			at++;
		if (at < n && ids[at] == id)
			out[at++] = ExecCopySlotHeapTuple(slot);
	}
}

void
ujobs_table_fetch(Relation table, const int64 *ids, int n, HeapTuple *out)
{
	Relation	index = index_open(primary_key_of(table), AccessShareLock);
	TupleTableSlot *slot = table_slot_create(table, NULL);
	IndexScanDesc scan = ujobs_compat_index_beginscan(table, index, active_snapshot(), 2);
	int			run;

	for (int i = 0; i < n; i += run)
	{
		run = run_of(ids + i, n - i);
		fetch_run(scan, ids + i, run, slot, out + i);
	}
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	index_close(index, NoLock);
}

HeapTuple
ujobs_table_fetch_member(Relation table, int64 id, int32 seq)
{
	Relation	index = index_open(primary_key_of(table), AccessShareLock);
	TupleTableSlot *slot = table_slot_create(table, NULL);
	IndexScanDesc scan = ujobs_compat_index_beginscan(table, index, active_snapshot(), 2);
	ScanKeyData key[2];
	HeapTuple	row;

	ScanKeyInit(&key[0], 1, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(id));
	ScanKeyInit(&key[1], 2, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(seq));
	index_rescan(scan, key, 2, NULL, 0);
	row = index_getnext_slot(scan, ForwardScanDirection, slot) ? ExecCopySlotHeapTuple(slot) : NULL;
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	index_close(index, NoLock);
	return row;
}

List *
ujobs_table_fetch_group(Relation table, int64 id)
{
	Relation	index = index_open(primary_key_of(table), AccessShareLock);
	TupleTableSlot *slot = table_slot_create(table, NULL);
	IndexScanDesc scan = ujobs_compat_index_beginscan(table, index, active_snapshot(), 1);
	ScanKeyData key;
	List	   *rows = NIL;

	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(id));
	index_rescan(scan, &key, 1, NULL, 0);
	while (index_getnext_slot(scan, ForwardScanDirection, slot))
		rows = lappend(rows, ExecCopySlotHeapTuple(slot));
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	index_close(index, NoLock);
	return rows;
}

static bool
lock_row(Relation table, HeapTuple row, LockWaitPolicy policy)
{
	TupleTableSlot *slot = table_slot_create(table, NULL);
	TM_FailureData failure;
	TM_Result	result = table_tuple_lock(table, &row->t_self, active_snapshot(), slot,
										  GetCurrentCommandId(true), LockTupleNoKeyExclusive,
										  policy, 0, &failure);

	ExecDropSingleTupleTableSlot(slot);
	return result == TM_Ok;
}

bool
ujobs_table_lock(Relation table, HeapTuple row)
{
	return lock_row(table, row, LockWaitBlock);
}

bool
ujobs_table_try_lock(Relation table, HeapTuple row)
{
	return lock_row(table, row, LockWaitSkip);
}

bool
ujobs_table_delete(Relation table, HeapTuple row)
{
	TM_FailureData failure;
	TM_Result	result = table_tuple_delete(table, &row->t_self, GetCurrentCommandId(true),
											active_snapshot(), InvalidSnapshot, true,
											&failure, false);

	return result == TM_Ok;
}

static TupleTableSlot *
slot_of(Relation table, Datum *values, bool *nulls)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(RelationGetDescr(table), &TTSOpsVirtual);
	int			natts = RelationGetDescr(table)->natts;

	memcpy(slot->tts_values, values, natts * sizeof(Datum));
	memcpy(slot->tts_isnull, nulls, natts * sizeof(bool));
	ExecStoreVirtualTuple(slot);
	slot->tts_tableOid = RelationGetRelid(table);
	return slot;
}

static bool
update_row(Relation table, HeapTuple row, TupleTableSlot *slot, UjobsIndexesNeeded *needed)
{
	TM_FailureData failure;
	LockTupleMode mode;

	return ujobs_compat_tuple_update(table, &row->t_self, slot, GetCurrentCommandId(true),
									 active_snapshot(), &failure, &mode, needed) == TM_Ok;
}

static RegProcedure
equality_of(Relation index, int column)
{
	Oid			type = index->rd_opcintype[column];

	return get_opcode(
		get_opfamily_member(index->rd_opfamily[column], type, type, BTEqualStrategyNumber));
}

/* Is there a row of this key, as of now, committed or not? */
static bool
has_key(Relation table, Oid unique, Datum *values)
{
	Relation	index = index_open(unique, AccessShareLock);
	int			n = IndexRelationGetNumberOfKeyAttributes(index);
	TupleTableSlot *slot = table_slot_create(table, NULL);
	ScanKeyData key[INDEX_MAX_KEYS];
	SnapshotData dirty;
	IndexScanDesc scan;
	bool		found;

	InitDirtySnapshot(dirty);
	for (int i = 0; i < n; i++)
		ScanKeyEntryInitialize(&key[i], 0, i + 1, BTEqualStrategyNumber, InvalidOid,
							   index->rd_indcollation[i], equality_of(index, i),
							   values[index->rd_index->indkey.values[i] - 1]);
	scan = ujobs_compat_index_beginscan(table, index, &dirty, n);
	index_rescan(scan, key, n, NULL, 0);
	found = index_getnext_slot(scan, ForwardScanDirection, slot);
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	index_close(index, NoLock);
	return found;
}

void
ujobs_table_insert(Relation table, Datum **values, bool **nulls, int n)
{
	TupleTableSlot **slots = palloc(n * sizeof(TupleTableSlot *));

	for (int i = 0; i < n; i++)
		slots[i] = slot_of(table, values[i], nulls[i]);
	if (n == 1)
		table_tuple_insert(table, slots[0], GetCurrentCommandId(true), 0, NULL);
	else
		table_multi_insert(table, slots, n, GetCurrentCommandId(true), 0, NULL);
	ujobs_entries_insert(table, slots, n);
	for (int i = 0; i < n; i++)
		ExecDropSingleTupleTableSlot(slots[i]);
	pfree(slots);
}

/*
 * As INSERT ... ON CONFLICT does it: a row that others who want its key wait
 * for, until it is confirmed or taken back.
 */
static bool
insert_speculatively(Relation table, Oid unique, TupleTableSlot *slot)
{
	TransactionId xid = GetCurrentTransactionId();
	uint32		token = SpeculativeInsertionLockAcquire(xid);
	bool		is_free;

	table_tuple_insert_speculative(table, slot, GetCurrentCommandId(true), 0, NULL, token);
	is_free = ujobs_entries_insert_if_free(table, unique, slot);
	table_tuple_complete_speculative(table, slot, token, is_free);
	SpeculativeInsertionLockRelease(xid);
	return is_free;
}

bool
ujobs_table_is_bare(Relation table)
{
	TupleConstr *constraints = RelationGetDescr(table)->constr;

	return table->trigdesc == NULL && (constraints == NULL || constraints->num_check == 0);
}

bool
ujobs_table_key_is_free(Relation table, const char *unique, Datum *values, Oid *index)
{
	*index = ujobs_entries_unique(table, unique);
	return OidIsValid(*index) && ujobs_table_is_bare(table) && !has_key(table, *index, values);
}

bool
ujobs_table_insert_if_free(Relation table, Oid index, Datum *values, bool *nulls)
{
	/* Of a virtual slot the row would be formed at each of the two calls. */
	TupleTableSlot *slot = MakeSingleTupleTableSlot(RelationGetDescr(table), &TTSOpsHeapTuple);
	bool		stored;

	ExecStoreHeapTuple(heap_form_tuple(RelationGetDescr(table), values, nulls), slot, true);
	slot->tts_tableOid = RelationGetRelid(table);
	slot_getallattrs(slot);
	stored = insert_speculatively(table, index, slot);
	ExecDropSingleTupleTableSlot(slot);
	if (stored)
		CommandCounterIncrement();
	return stored;
}

bool
ujobs_table_update(Relation table, HeapTuple row, Datum *values, bool *nulls)
{
	TupleTableSlot *slot = slot_of(table, values, nulls);
	UjobsIndexesNeeded needed;
	bool		ours = update_row(table, row, slot, &needed);

	if (ours && needed == UJOBS_INDEXES_ALL)
		ujobs_entries_insert(table, &slot, 1);
	else if (ours && needed == UJOBS_INDEXES_SUMMARIZING)
		ujobs_entries_summarize(table, slot);
	ExecDropSingleTupleTableSlot(slot);
	return ours;
}
