/*
 * child_store.c: live, ended, or unknown.
 *
 * A job moves from the live table to history in one transaction, and back
 * when it is retried.  Each look has its own snapshot, so one that comes back
 * between two of them is looked for twice.
 */
#include "postgres.h"

#include "core/identity.h"
#include "model/history.h"
#include "store/catalogue.h"
#include "store/child_store.h"

/* As ujobs_internal.row_access has it: from 1 on the row may be seen, from 2 on its payload. */
#define ACCESS_ROW 1
#define ACCESS_PAYLOAD 2

static UjobsResult
read_as(UjobsStatement *statement, int64 child_id, Oid role)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int64GetDatum(child_id));
	ujobs_query_bind(&args, ObjectIdGetDatum(role));
	return ujobs_query_run(statement, &args);
}

static UjobsChildFate
look_at_live(int64 child_id, Oid role, bool *is_there)
{
	UjobsResult result = read_as(ujobs_catalogue_statement(UJOBS_SQL_CHILD_LIVE), child_id, role);

	*is_there = result.rows > 0;
	if (!*is_there || DatumGetInt32(ujobs_query_result_datum(&result, 0, 0)) < ACCESS_ROW)
		return UJOBS_CHILD_UNKNOWN;
	return UJOBS_CHILD_LIVE;
}

static UjobsChildFate
decode_ended(const UjobsResult *result, UjobsChildOutcome *out, MemoryContext into)
{
	int			access = DatumGetInt32(ujobs_query_result_datum(result, 0, 0));

	if (access < ACCESS_ROW)
		return UJOBS_CHILD_UNKNOWN;
	out->state = (UjobsState) DatumGetChar(ujobs_query_result_datum(result, 0, 1));
	if (access >= ACCESS_PAYLOAD)
	{
		out->result = ujobs_query_result_jsonb(result, 0, 2, into);
		out->error = ujobs_query_result_jsonb(result, 0, 3, into);
	}
	return UJOBS_CHILD_ENDED;
}

/* Partition by partition, the likeliest first, as in history_store. */
static UjobsChildFate
look_at_history(int64 child_id, Oid role, UjobsChildOutcome *out, MemoryContext into)
{
	for (int age = 0; age < UJOBS_HISTORY_SLOTS; age++)
	{
		UjobsStatement *statement = ujobs_catalogue_statement_for_slot(UJOBS_SQL_CHILD_ENDED,
															 ujobs_history_slot_of_age(age));
		UjobsResult result = read_as(statement, child_id, role);

		if (result.rows > 0)
			return decode_ended(&result, out, into);
	}
	return UJOBS_CHILD_UNKNOWN;
}

UjobsChildFate
ujobs_child_outcome(int64 child_id, Oid role, UjobsChildOutcome *out)
{
	UjobsIdentity identity;
	UjobsChildFate fate;
	bool		is_live;

	memset(out, 0, sizeof(*out));
	ujobs_identity_enter(&identity);
	fate = look_at_live(child_id, role, &is_live);
	if (!is_live)
		fate = look_at_history(child_id, role, out, identity.caller);
	if (fate == UJOBS_CHILD_UNKNOWN && !is_live)
		fate = look_at_live(child_id, role, &is_live);	/* retried meanwhile */
	ujobs_identity_leave(&identity);
	return fate;
}

bool
ujobs_child_hold(int64 child_id)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int64GetDatum(child_id));
	return ujobs_catalogue_execute(UJOBS_SQL_CHILD_HOLD, &args) > 0;
}
