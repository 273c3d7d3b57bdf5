/*
 * define_store.c: the rows of definition and definition_grant, written.
 *
 * The unique index on live names decides between two sessions that define the
 * same name: the insert waits for the other and then reports that it lost, so
 * the loser reads the winner's row.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "core/slot.h"
#include "core/queue_counters.h"
#include "core/wakeup.h"
#include "store/catalogue.h"
#include "store/define_store.h"

static Interval *
interval_copy(const UjobsResult *r, int column, MemoryContext into)
{
	Datum		value = ujobs_query_result_copy(r, 0, column, into);

	return value == (Datum) 0 ? NULL : DatumGetIntervalP(value);
}

bool
ujobs_define_lock(UjobsIdentity *identity, const char *name, UjobsDraft *stored)
{
	MemoryContext into = identity->caller;
	UjobsArgs	args = {0};
	UjobsResult r;

	ujobs_query_bind_text(&args, name);
	r = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_DEFINE_LOCK), &args);
	if (r.rows == 0)
		return false;
	memset(stored, 0, sizeof(*stored));
	stored->id = DatumGetInt32(ujobs_query_result_datum(&r, 0, 0));
	stored->name = MemoryContextStrdup(into, name);
	stored->kind = ujobs_query_result_text(&r, 0, 1, into);
	stored->handler = ujobs_query_result_text(&r, 0, 2, into);
	stored->owner = DatumGetObjectId(ujobs_query_result_datum(&r, 0, 3));
	stored->owner_name = MemoryContextStrdup(
		into, NameStr(*DatumGetName(ujobs_query_result_datum(&r, 0, 4))));
	stored->key = ujobs_query_result_text(&r, 0, 5, into);
	stored->tenant = ujobs_query_result_text(&r, 0, 6, into);
	stored->input_schema = ujobs_query_result_jsonb(&r, 0, 7, into);
	stored->retry = ujobs_query_result_jsonb(&r, 0, 8, into);
	stored->queue = ujobs_query_result_text(&r, 0, 9, into);
	stored->priority = DatumGetInt16(ujobs_query_result_datum(&r, 0, 10));
	stored->concurrency = DatumGetInt32(ujobs_query_result_datum(&r, 0, 11));
	stored->timeout = interval_copy(&r, 12, into);
	stored->step_timeout = interval_copy(&r, 13, into);
	stored->batch = DatumGetInt32(ujobs_query_result_datum(&r, 0, 14));
	stored->retention = interval_copy(&r, 15, into);
	stored->description = ujobs_query_result_text(&r, 0, 16, into);
	return true;
}

/* The options, in the order of both statements. */
static void
bind_options(UjobsArgs *args, const UjobsDraft *draft)
{
	ujobs_query_bind_text(args, draft->kind);
	ujobs_query_bind_text(args, draft->handler);
	ujobs_query_bind_text(args, draft->key);
	ujobs_query_bind_text(args, draft->tenant);
	ujobs_query_bind_jsonb(args, draft->input_schema);
	ujobs_query_bind_jsonb(args, draft->retry);
	ujobs_query_bind_text(args, draft->queue);
	ujobs_query_bind(args, Int16GetDatum((int16) draft->priority));
	ujobs_query_bind_maybe(args, Int32GetDatum(draft->concurrency));
	ujobs_query_bind_maybe(args, PointerGetDatum(draft->timeout));
	ujobs_query_bind_maybe(args, PointerGetDatum(draft->step_timeout));
	ujobs_query_bind(args, Int32GetDatum(draft->batch));
	ujobs_query_bind_maybe(args, PointerGetDatum(draft->retention));
	ujobs_query_bind_text(args, draft->description);
}

static Datum
name_datum(const char *string)
{
	return DirectFunctionCall1(namein, CStringGetDatum(string));
}

bool
ujobs_define_insert(const UjobsDraft *draft)
{
	UjobsArgs	args = {0};

	bind_options(&args, draft);
	ujobs_query_bind_text(&args, draft->name);
	ujobs_query_bind(&args, ObjectIdGetDatum(draft->owner));
	ujobs_query_bind(&args, name_datum(draft->owner_name));
	ujobs_query_bind(&args, TimestampTzGetDatum(GetCurrentTimestamp()));
	return ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_DEFINE_INSERT), &args).rows == 1;
}

void
ujobs_define_update(int32 id, const UjobsDraft *draft)
{
	UjobsArgs	args = {0};

	bind_options(&args, draft);
	ujobs_query_bind(&args, Int32GetDatum(id));
	(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_DEFINE_UPDATE), &args);
}

void
ujobs_define_set_owner(int32 id, Oid owner, const char *owner_name)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int32GetDatum(id));
	ujobs_query_bind(&args, ObjectIdGetDatum(owner));
	ujobs_query_bind(&args, name_datum(owner_name));
	(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_DEFINE_SET_OWNER), &args);
}

void
ujobs_define_awaken(int32 id, TimestampTz now)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int32GetDatum(id));
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	if (ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_DEFINE_AWAKEN), &args).rows > 0)
		ujobs_wakeup_note_rescan();
}

static void
change_grant(UjobsStatementId statement, int32 id, char privilege, Oid role, const char *role_name)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int32GetDatum(id));
	ujobs_query_bind(&args, CharGetDatum(privilege));
	ujobs_query_bind(&args, ObjectIdGetDatum(role));
	ujobs_query_bind(&args, name_datum(role_name));
	(void) ujobs_query_run(ujobs_catalogue_statement(statement), &args);
}

void
ujobs_define_grant(int32 id, char privilege, Oid role, const char *role_name)
{
	change_grant(UJOBS_SQL_DEFINE_GRANT, id, privilege, role, role_name);
}

void
ujobs_define_revoke(int32 id, char privilege, Oid role, const char *role_name)
{
	change_grant(UJOBS_SQL_DEFINE_REVOKE, id, privilege, role, role_name);
}

void
ujobs_define_drop(int32 id, TimestampTz now)
{
	UjobsArgs	args = {0};
	UjobsArgs	grants = {0};

	ujobs_query_bind(&args, Int32GetDatum(id));
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_DEFINE_DROP), &args);
	ujobs_query_bind(&grants, Int32GetDatum(id));
	(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_DEFINE_DROP_GRANTS), &grants);
}

int64
ujobs_define_count_live(int32 id)
{
	UjobsArgs	args = {0};
	UjobsResult r;

	ujobs_query_bind(&args, Int32GetDatum(id));
	r = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_DEFINE_COUNT_LIVE), &args);
	return DatumGetInt64(ujobs_query_result_datum(&r, 0, 0));
}

/* The attempt at hand is known to the executor's slot alone: record it. */
static void
record_running(const UjobsCancelAll *cancel, int64 id)
{
	UjobsArgs	args = {0};
	UjobsSlot	slot;

	if (!cancel->keep || ujobs_slot_find_running(id, &slot) < 0)
		return;
	ujobs_query_bind(&args, Int64GetDatum(id));
	ujobs_query_bind(&args, Int16GetDatum(cancel->slot));
	ujobs_query_bind(&args, Int32GetDatum(slot.attempt));
	ujobs_query_bind(&args, TimestampTzGetDatum(slot.job_started));
	(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_DEFINE_CANCEL_RUNNING), &args);
}

/* One string at a time: there may be millions. */
static void
count_cancelled(const UjobsResult *r, uint64 row)
{
	char	   *queue = ujobs_query_result_text(r, row, 1, CurrentMemoryContext);

	ujobs_queue_counter_note(queue, UJOBS_COUNTER_CANCELLED, NULL);
	pfree(queue);
}

/*
 * A job that begins to wait for one of them has committed then, and is seen by
 * the next statement.
 */
static void
lock_all(int32 definition_id)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, Int32GetDatum(definition_id));
	(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_DEFINE_LOCK_ALL), &args);
}

void
ujobs_define_cancel_all(UjobsIdentity *identity, const UjobsCancelAll *cancel)
{
	UjobsArgs	args = {0};
	UjobsResult r;
	int64	   *ids;

	if (!cancel->keep)
		lock_all(cancel->definition_id);
	ujobs_query_bind(&args, Int32GetDatum(cancel->definition_id));
	ujobs_query_bind(&args, BoolGetDatum(cancel->keep));
	ujobs_query_bind(&args, Int16GetDatum(cancel->slot));
	ujobs_query_bind(&args, TimestampTzGetDatum(cancel->now));
	ujobs_query_bind(&args, TimestampTzGetDatum(cancel->expires_at));
	ujobs_query_bind_text(&args, cancel->reason);
	r = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_DEFINE_CANCEL_ALL), &args);
	ids = MemoryContextAllocHuge(identity->caller, (r.rows + 1) * sizeof(int64));
	for (uint64 i = 0; i < r.rows; i++)
	{
		ids[i] = DatumGetInt64(ujobs_query_result_datum(&r, i, 0));
		count_cancelled(&r, i);
	}
	for (uint64 i = 0; i < r.rows; i++)
	{
		UjobsHint	hint = {
			.id = ids[i],
			.definition_id = cancel->definition_id,
			.kind = UJOBS_HINT_GONE
		};

		record_running(cancel, ids[i]);
		ujobs_wakeup_note(&hint);
		ujobs_wakeup_note_finished(ids[i]);
	}
}
