/*
 * control_store.c: cancel, retry, pause, purge, start and stop, as rows.
 *
 * A job is either in the live table or in history and moves between them in
 * one statement, so a session that looks at both with one snapshot finds it exactly
 * once.  A job that moves back gets a revision that no earlier run of it can
 * hold: an executor still busy with the cancelled attempt must not settle it.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"
#include "utils/xid8.h"

#include "core/queue_counters.h"
#include "model/history.h"
#include "store/catalogue.h"
#include "store/control_store.h"

static UjobsResult
read_live(int64 id)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int64GetDatum(id));
	return ujobs_query_read(ujobs_catalogue_statement(UJOBS_SQL_CONTROL_LIVE), &args);
}

static UjobsResult
read_history(int64 id, int16 slot)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int64GetDatum(id));
	return ujobs_query_read(ujobs_catalogue_statement_for_slot(UJOBS_SQL_CONTROL_HISTORY, slot),
							&args);
}

static void
decode(const UjobsResult *result, UjobsWhere *where)
{
	TransactionId xmin = DatumGetTransactionId(ujobs_query_result_datum(result, 0, 0));

	where->own = TransactionIdIsCurrentTransactionId(xmin);
	where->state = (UjobsState) DatumGetChar(ujobs_query_result_datum(result, 0, 1));
	where->definition_id = DatumGetInt32(ujobs_query_result_datum(result, 0, 2));
	where->enqueued_role = DatumGetObjectId(ujobs_query_result_datum(result, 0, 3));
}

/*
 * Partition by partition: one plan over all of them would lock every
 * partition and index.  Recently finished jobs are asked for most.
 */
static bool
locate_in_history(int64 id, UjobsWhere *where)
{
	for (int age = 0; age < UJOBS_HISTORY_SLOTS; age++)
	{
		int16		slot = ujobs_history_slot_of_age(age);
		UjobsResult result = read_history(id, slot);

		if (result.rows == 0)
			continue;
		decode(&result, where);
		where->live = false;
		where->slot = slot;
		return true;
	}
	return false;
}

bool
ujobs_control_locate(int64 id, UjobsWhere *where)
{
	UjobsResult live;
	bool		found;

	memset(where, 0, sizeof(*where));
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	live = read_live(id);
	if (live.rows > 0)
	{
		decode(&live, where);
		where->live = found = true;
		where->due_at = DatumGetTimestampTz(ujobs_query_result_datum(&live, 0, 4));
	}
	else
		found = locate_in_history(id, where);
	PopActiveSnapshot();
	return found;
}

bool
ujobs_control_cancel(int64 id, const UjobsCancellation *cancellation)
{
	UjobsArgs	args = {0};
	UjobsArgs	lock = {0};
	UjobsResult gone;

	/* Its run may be about to commit a step, which the next snapshot must see. */
	ujobs_query_bind(&lock, Int64GetDatum(id));
	if (ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_CONTROL_LOCK), &lock).rows != 1)
		return false;
	ujobs_query_bind(&args, Int64GetDatum(id));
	ujobs_query_bind(&args, Int16GetDatum(cancellation->slot));
	ujobs_query_bind_text(&args, cancellation->reason);
	ujobs_query_bind(&args, Int32GetDatum(cancellation->attempt));
	if (cancellation->attempt > 0)
		ujobs_query_bind(&args, TimestampTzGetDatum(cancellation->started_at));
	else
		ujobs_query_bind_null(&args);
	ujobs_query_bind(&args, TimestampTzGetDatum(cancellation->finished_at));
	ujobs_query_bind(&args, TimestampTzGetDatum(cancellation->expires_at));
	gone = ujobs_query_run(
		ujobs_catalogue_statement_for_slot(UJOBS_SQL_CONTROL_CANCEL, cancellation->slot), &args);
	if (gone.rows != 1)
		return false;
	ujobs_queue_counter_note(ujobs_query_result_text(&gone, 0, 0, CurrentMemoryContext),
							 UJOBS_COUNTER_CANCELLED, NULL);
	return true;
}

void
ujobs_control_forget(int64 id, int16 slot)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int64GetDatum(id));
	(void) ujobs_query_run(ujobs_catalogue_statement_for_slot(UJOBS_SQL_CONTROL_FORGET, slot),
						   &args);
}

UjobsRestart
ujobs_control_restart(int64 id, TimestampTz now, UjobsIdentity *identity, UjobsRestarted *out)
{
	UjobsArgs	args = {0};
	UjobsResult result;

	memset(out, 0, sizeof(*out));
	ujobs_query_bind(&args, Int64GetDatum(id));
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_CONTROL_RESTART), &args);
	if (result.rows == 0)
		return UJOBS_RESTART_MOVED;
	out->queue = ujobs_query_result_text(&result, 0, 0, identity->caller);
	out->priority = DatumGetInt16(ujobs_query_result_datum(&result, 0, 1));
	out->tenant = ujobs_query_result_text(&result, 0, 2, identity->caller);
	return UJOBS_RESTART_DONE;
}

static int64
key_holder(int32 definition_id, const UjobsRestarted *wanted)
{
	UjobsArgs	args = {0};
	UjobsResult result;

	ujobs_query_bind(&args, Int32GetDatum(definition_id));
	ujobs_query_bind_text(&args, wanted->tenant);
	ujobs_query_bind_text(&args, wanted->key);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_CONTROL_KEY_HOLDER), &args);
	return result.rows == 0 ? 0 : DatumGetInt64(ujobs_query_result_datum(&result, 0, 0));
}

UjobsRestart
ujobs_control_revive(int64 id, const UjobsWhere *where, TimestampTz now,
					 UjobsIdentity *identity, UjobsRestarted *out)
{
	UjobsArgs	args = {0};
	UjobsResult result;

	memset(out, 0, sizeof(*out));
	ujobs_query_bind(&args, Int64GetDatum(id));
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	result = ujobs_query_run(
		ujobs_catalogue_statement_for_slot(UJOBS_SQL_CONTROL_REVIVE, where->slot), &args);
	if (result.rows == 0)
		return UJOBS_RESTART_MOVED;
	out->queue = ujobs_query_result_text(&result, 0, 0, identity->caller);
	out->priority = DatumGetInt16(ujobs_query_result_datum(&result, 0, 1));
	out->tenant = ujobs_query_result_text(&result, 0, 2, identity->caller);
	out->key = ujobs_query_result_text(&result, 0, 3, identity->caller);
	if (!ujobs_query_result_is_null(&result, 0, 4))
		return UJOBS_RESTART_DONE;
	out->holder = key_holder(where->definition_id, out);
	return UJOBS_RESTART_KEY_HELD;
}

static void
move_events_since(int64 id, TimestampTz now)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int64GetDatum(id));
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_CONTROL_EVENTS_SINCE), &args);
}

bool
ujobs_control_drop_steps(int64 id, const char *first, TimestampTz now)
{
	UjobsArgs	args = {0};
	UjobsResult result;

	ujobs_query_bind(&args, Int64GetDatum(id));
	ujobs_query_bind_text(&args, first);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_CONTROL_DROP_STEPS), &args);
	if (DatumGetInt64(ujobs_query_result_datum(&result, 0, 0)) == 0)
		return false;
	if (DatumGetInt64(ujobs_query_result_datum(&result, 0, 1)) > 0)
		move_events_since(id, now);
	return true;
}

bool
ujobs_control_pause_queue(const char *queue, bool paused)
{
	UjobsArgs	args = {0};
	UjobsStatementId id = paused ? UJOBS_SQL_CONTROL_PAUSE_QUEUE : UJOBS_SQL_CONTROL_RESUME_QUEUE;

	ujobs_query_bind_text(&args, queue);
	return ujobs_query_run(ujobs_catalogue_statement(id), &args).rows > 0;
}

bool
ujobs_control_set_queue(const char *queue, const UjobsQueueLimits *limits)
{
	UjobsArgs	args = {0};

	ujobs_query_bind_text(&args, queue);
	ujobs_query_bind_maybe(&args, Int32GetDatum(limits->concurrency));
	ujobs_query_bind_maybe(&args, Int32GetDatum(limits->per_tenant));
	ujobs_query_bind_maybe(&args, Int32GetDatum(limits->rate_per_tenant));
	if (limits->rate_per_tenant == 0)
		ujobs_query_bind_null(&args);
	else
		ujobs_query_bind(&args, IntervalPGetDatum(limits->rate_window));
	return ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_CONTROL_SET_QUEUE), &args).rows > 0;
}

int64
ujobs_control_purge(TimestampTz cutoff, const char *queue)
{
	UjobsArgs	args = {0};
	UjobsResult result;

	ujobs_query_bind(&args, TimestampTzGetDatum(cutoff));
	ujobs_query_bind_text(&args, queue);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_CONTROL_PURGE), &args);
	return DatumGetInt64(ujobs_query_result_datum(&result, 0, 0));
}

/* The origin row, if there is one. */
typedef struct Origin
{
	bool		exists;
	Oid			database;
	bool		same_database;
	bool		same_version;	/* still the row version that this database wrote: not restored */
} Origin;

static Origin
read_origin(void)
{
	UjobsResult result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_CONTROL_ORIGIN), NULL);
	Origin		origin = {0};
	FullTransactionId inserted_by;

	if (result.rows == 0)
		return origin;
	origin.exists = true;
	origin.database = DatumGetObjectId(ujobs_query_result_datum(&result, 0, 0));
	origin.same_database = origin.database == MyDatabaseId;
	inserted_by = DatumGetFullTransactionId(ujobs_query_result_datum(&result, 0, 1));
	origin.same_version = XidFromFullTransactionId(inserted_by) ==
		DatumGetTransactionId(ujobs_query_result_datum(&result, 0, 2));
	return origin;
}

/*
 * The row's xmin is that of the subtransaction at hand, which is not what
 * pg_current_xact_id() says inside an EXCEPTION block.
 */
static Datum
writing_xid(void)
{
	return FullTransactionIdGetDatum(GetCurrentFullTransactionId());
}

/* moved: brokers are to know this store by a name of its own. */
static void
write_identity(bool stopped, bool moved)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, ObjectIdGetDatum(MyDatabaseId));
	ujobs_query_bind(&args, writing_xid());
	ujobs_query_bind(&args, BoolGetDatum(stopped));
	ujobs_query_bind(&args, BoolGetDatum(moved));
	(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_CONTROL_WRITE_IDENTITY), &args);
}

bool
ujobs_control_start(Oid *old_database)
{
	Origin		origin = read_origin();
	bool		restored = origin.exists && !origin.same_version;

	*old_database =
		restored || (origin.exists && !origin.same_database) ? origin.database : InvalidOid;
	write_identity(false, OidIsValid(*old_database));
	if (restored)
	{
		/* A copy made inside the cluster keeps its role oids; a dump does not. */
		(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_CONTROL_RESOLVE_OWNERS), NULL);
		(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_CONTROL_RESOLVE_TASKS), NULL);
		(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_CONTROL_RESOLVE_GRANTS), NULL);
	}
	if (OidIsValid(*old_database))
	{
		/* Logical replication brings rows, and no values of sequences. */
		(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_CONTROL_LOCK_ROWS), NULL);
		(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_CONTROL_ADVANCE_IDS), NULL);
	}
	return restored;
}

void
ujobs_control_stop(void)
{
	Origin		origin = read_origin();
	UjobsArgs	args = {0};

	if (!origin.exists || (origin.same_database && origin.same_version))
	{
		write_identity(true, false);
		return;
	}

	/* In another database it stays so, in the way it was. */
	if (origin.same_version)
		ujobs_query_bind(&args, writing_xid());
	else
		ujobs_query_bind_null(&args);
	(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_CONTROL_STOP_STRANGE), &args);
}
