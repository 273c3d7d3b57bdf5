/*
 * drain_store.c: due rows of a lane, with the question who wrote them.
 *
 * A row version that this transaction wrote carries its id or that of one of
 * its subtransactions.  All of those are at most as old as the transaction,
 * which is what the statement can tell; the rest is asked of the server.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/timestamp.h"

#include "store/catalogue.h"
#include "store/drain_store.h"

bool
ujobs_drain_due(const UjobsDrainLane *lane, UjobsHeap *heap)
{
	TransactionId mine = GetTopTransactionIdIfAny();
	UjobsArgs	args = {0};
	UjobsResult result;

	if (lane->own_only && !TransactionIdIsValid(mine))
		return false;
	ujobs_query_bind(&args, Int32GetDatum(lane->definition_id));
	ujobs_query_bind_text(&args, lane->queue);
	ujobs_query_bind(&args, TimestampTzGetDatum(lane->now));
	ujobs_query_bind_maybe(&args, lane->own_only ? TransactionIdGetDatum(mine) : (Datum) 0);
	ujobs_query_bind(&args, Int64GetDatum(lane->max));
	result = ujobs_query_read(ujobs_catalogue_statement(UJOBS_SQL_DRAIN_DUE), &args);
	for (uint64 row = 0; row < result.rows; row++)
	{
		UjobsHeapItem item = {
			.id = DatumGetInt64(ujobs_query_result_datum(&result, row, 0)),
			.due_at = DatumGetTimestampTz(ujobs_query_result_datum(&result, row, 1)),
			.priority = DatumGetInt16(ujobs_query_result_datum(&result, row, 2))
		};
		TransactionId writer = DatumGetTransactionId(ujobs_query_result_datum(&result, row, 3));

		if (!lane->own_only || TransactionIdIsCurrentTransactionId(writer))
			ujobs_heap_push(heap, item);
	}
	return result.rows == (uint64) lane->max;
}

bool
ujobs_drain_lock(int64 id)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int64GetDatum(id));
	return ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_DRAIN_LOCK), &args).rows == 1;
}

List *
ujobs_drain_leftovers(const UjobsIdentity *identity)
{
	UjobsResult result = ujobs_query_read(ujobs_catalogue_statement(UJOBS_SQL_DRAIN_LEFTOVERS),
										  NULL);
	MemoryContext old = MemoryContextSwitchTo(identity->caller);
	List	   *leftovers = NIL;

	for (uint64 row = 0; row < result.rows; row++)
	{
		UjobsLeftover *leftover = palloc(sizeof(UjobsLeftover));

		leftover->kind = (UjobsLeftoverKind) DatumGetChar(
			ujobs_query_result_datum(&result, row, 0));
		leftover->name = ujobs_query_result_text(&result, row, 1, identity->caller);
		leftover->class_id = DatumGetObjectId(ujobs_query_result_datum(&result, row, 2));
		leftover->object_id = DatumGetObjectId(ujobs_query_result_datum(&result, row, 3));
		leftovers = lappend(leftovers, leftover);
	}
	MemoryContextSwitchTo(old);
	return leftovers;
}
