/*
 * history_store.c: one job by its id.
 *
 * A finished row sits in the partition of the day on which it expires.  What
 * finished today with the usual retention is in the partition that many days
 * ahead; yesterday's is one before it, and so on down the ring: newest first.
 */
#include "postgres.h"

#include "store/catalogue.h"
#include "store/history_store.h"

static bool
slot_holds(int slot, int64 id)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int64GetDatum(id));
	return ujobs_query_run(ujobs_catalogue_statement_for_slot(UJOBS_SQL_HISTORY_FIND, slot), &args)
			   .rows > 0;
}

int
ujobs_history_find(int64 id)
{
	for (int age = 0; age < UJOBS_HISTORY_SLOTS; age++)
	{
		int			slot = ujobs_history_slot_of_age(age);

		if (slot_holds(slot, id))
			return slot;
	}
	return -1;
}

static UjobsResult
read_as(UjobsStatement *statement, int64 id, Oid role)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int64GetDatum(id));
	ujobs_query_bind(&args, ObjectIdGetDatum(role));
	return ujobs_query_run(statement, &args);
}

Jsonb *
ujobs_history_trace(UjobsIdentity *identity, int64 id)
{
	UjobsResult result = read_as(ujobs_catalogue_statement(UJOBS_SQL_INSPECT_LIVE), id,
								 identity->user);
	int			slot;

	if (result.rows == 0)
	{
		slot = ujobs_history_find(id);
		if (slot < 0)
			return NULL;
		result = read_as(ujobs_catalogue_statement_for_slot(UJOBS_SQL_INSPECT_HISTORY, slot), id,
						 identity->user);
	}
	return result.rows == 0 ? NULL : ujobs_query_result_jsonb(&result, 0, 0, identity->caller);
}

static void
decode_step(const UjobsResult *result, UjobsJobFacts *facts, MemoryContext into)
{
	facts->step = ujobs_query_result_text(result, 0, 14, into);
	if (facts->step == NULL)
		return;
	facts->step_status = (UjobsStepStatus) DatumGetChar(ujobs_query_result_datum(result, 0, 15));
	facts->wake_at = DatumGetTimestampTz(ujobs_query_result_datum(result, 0, 16));
	facts->event = ujobs_query_result_text(result, 0, 17, into);
	facts->match = ujobs_query_result_text(result, 0, 18, into);
	facts->child_id = DatumGetInt64(ujobs_query_result_datum(result, 0, 19));
}

static int32
limit_of(const UjobsResult *result, int column)
{
	return ujobs_query_result_is_null(result, 0, column) ?
			   0 :
			   DatumGetInt32(ujobs_query_result_datum(result, 0, column));
}

static void
decode_limits(const UjobsResult *result, UjobsJobFacts *facts, MemoryContext into)
{
	facts->tenant = ujobs_query_result_text(result, 0, 20, into);
	facts->queue_concurrency = limit_of(result, 21);
	facts->per_tenant = limit_of(result, 22);
	facts->rate_per_tenant = limit_of(result, 23);
	facts->rate_window = ujobs_query_result_text(result, 0, 24, into);
}

static void
decode_live(const UjobsResult *result, UjobsJobFacts *facts, MemoryContext into)
{
	char	   *kind = ujobs_query_result_text(result, 0, 10, into);

	facts->state = DatumGetChar(ujobs_query_result_datum(result, 0, 1));
	facts->at = DatumGetTimestampTz(ujobs_query_result_datum(result, 0, 2));
	facts->attempt = DatumGetInt32(ujobs_query_result_datum(result, 0, 3));
	facts->max_attempts = DatumGetInt32(ujobs_query_result_datum(result, 0, 4));
	facts->definition_id = DatumGetInt32(ujobs_query_result_datum(result, 0, 5));
	facts->queue = ujobs_query_result_text(result, 0, 6, into);
	facts->reason = ujobs_query_result_text(result, 0, 7, into);
	facts->error = ujobs_query_result_text(result, 0, 8, into);
	facts->definition = ujobs_query_result_text(result, 0, 9, into);
	facts->external = kind != NULL && strcmp(kind, "external") == 0;
	facts->concurrency = DatumGetInt32(ujobs_query_result_datum(result, 0, 11));
	facts->dropped = DatumGetBool(ujobs_query_result_datum(result, 0, 12));
	facts->queue_paused = DatumGetBool(ujobs_query_result_datum(result, 0, 13));
	decode_step(result, facts, into);
	decode_limits(result, facts, into);
}

static void
decode_ended(const UjobsResult *result, UjobsJobFacts *facts, MemoryContext into)
{
	facts->state = DatumGetChar(ujobs_query_result_datum(result, 0, 1));
	facts->at = DatumGetTimestampTz(ujobs_query_result_datum(result, 0, 2));
	facts->attempt = DatumGetInt32(ujobs_query_result_datum(result, 0, 3));
	facts->max_attempts = DatumGetInt32(ujobs_query_result_datum(result, 0, 4));
	facts->reason = ujobs_query_result_text(result, 0, 5, into);
	facts->error = ujobs_query_result_text(result, 0, 6, into);
}

bool
ujobs_history_facts(UjobsIdentity *identity, int64 id, UjobsJobFacts *facts)
{
	UjobsResult result = read_as(ujobs_catalogue_statement(UJOBS_SQL_WHY_LIVE), id, identity->user);
	int			access;
	int			slot;

	memset(facts, 0, sizeof(*facts));
	if (result.rows > 0)
		decode_live(&result, facts, identity->caller);
	else
	{
		slot = ujobs_history_find(id);
		if (slot < 0)
			return false;
		result = read_as(ujobs_catalogue_statement_for_slot(UJOBS_SQL_WHY_HISTORY, slot), id,
						 identity->user);
		if (result.rows == 0)
			return false;
		decode_ended(&result, facts, identity->caller);
	}
	access = DatumGetInt32(ujobs_query_result_datum(&result, 0, 0));
	facts->entitled = access >= UJOBS_ACCESS_PAYLOAD;
	return access > UJOBS_ACCESS_NONE;
}
