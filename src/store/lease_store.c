/*
 * lease_store.c: leases by primary key without plans, and lists of them.
 *
 * A claim changes no indexed column of the job's row, so it is a HOT update;
 * due_at stays what it was, and visible_at is in the lease alone.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "core/claim.h"
#include "core/query.h"
#include "core/table.h"
#include "core/wakeup.h"
#include "store/catalogue.h"
#include "store/lease_store.h"
#include "store/row.h"

/* ---- rows ---- */

static void
push_latest(void)
{
	CommandCounterIncrement();
	PushActiveSnapshot(GetLatestSnapshot());
}

static HeapTuple
fetch_lease(Relation table, int64 id, UjobsLease *out)
{
	HeapTuple	row;
	Datum		v[UJOBS_LEASE_COLUMNS];
	bool		null[UJOBS_LEASE_COLUMNS];

	ujobs_table_fetch(table, &id, 1, &row);
	if (row == NULL)
		return NULL;
	heap_deform_tuple(row, RelationGetDescr(table), v, null);
	out->lease = DatumGetInt64(v[UJOBS_LEASE_LEASE]);
	out->visible_at = DatumGetTimestampTz(v[UJOBS_LEASE_VISIBLE_AT]);
	out->worker = TextDatumGetCString(v[UJOBS_LEASE_WORKER]);
	return row;
}

/* Only the holder of the job's row lock writes its lease; what is there is a leftover. */
static void
write_lease(int64 id, const UjobsLease *lease)
{
	Relation	table = ujobs_table_open("lease", UJOBS_TABLE_WRITE);
	Datum		values[UJOBS_LEASE_COLUMNS] = {
		Int64GetDatum(id),
		Int64GetDatum(lease->lease),
		TimestampTzGetDatum(lease->visible_at),
		CStringGetTextDatum(lease->worker)
	};
	bool		nulls[UJOBS_LEASE_COLUMNS] = {false};
	Datum	   *row = values;
	bool	   *row_nulls = nulls;
	UjobsLease	left;
	HeapTuple	there = fetch_lease(table, id, &left);

	if (there == NULL || !ujobs_table_update(table, there, values, nulls))
		ujobs_table_insert(table, &row, &row_nulls, 1);
	ujobs_table_close(table);
	ujobs_claim_note_end(lease->visible_at);
}

static void
delete_lease(int64 id)
{
	Relation	table = ujobs_table_open("lease", UJOBS_TABLE_WRITE);
	UjobsLease	lease;
	HeapTuple	row;

	push_latest();
	row = fetch_lease(table, id, &lease);
	if (row != NULL)
		(void) ujobs_table_delete(table, row);
	PopActiveSnapshot();
	ujobs_table_close(table);
}

/* Replaces columns of the job's version that was fetched. */
static bool
update_job(Relation table, const UjobsJob *job, Datum *values, const bool *replace, bool *nulls)
{
	HeapTuple	changed =
		heap_modify_tuple(job->row, RelationGetDescr(table), values, nulls, (bool *) replace);
	Datum		all[UJOBS_JOB_COLUMNS];
	bool		all_nulls[UJOBS_JOB_COLUMNS];

	heap_deform_tuple(changed, RelationGetDescr(table), all, all_nulls);
	return ujobs_table_update(table, job->row, all, all_nulls);
}

typedef struct Changes
{
	Datum		value[UJOBS_JOB_COLUMNS];
	bool		null[UJOBS_JOB_COLUMNS];
	bool		replace[UJOBS_JOB_COLUMNS];
} Changes;

static void
change(Changes *changes, UjobsJobColumn column, Datum value)
{
	changes->value[column] = value;
	changes->replace[column] = true;
}

static void
change_to_null(Changes *changes, UjobsJobColumn column)
{
	changes->null[column] = changes->replace[column] = true;
}

/* ---- claiming ---- */

void
ujobs_lease_look(const int64 *ids, int n, UjobsJob **out)
{
	Relation	table = ujobs_table_open("job", UJOBS_TABLE_READ);
	HeapTuple  *rows = palloc(n * sizeof(HeapTuple));

	push_latest();
	ujobs_table_fetch(table, ids, n, rows);
	PopActiveSnapshot();
	for (int i = 0; i < n; i++)
		out[i] = rows[i] != NULL ? ujobs_row_to_job(rows[i], RelationGetDescr(table)) : NULL;
	ujobs_table_close(table);
	pfree(rows);
}

static bool
may_start(const UjobsJob *job, bool early, TimestampTz now)
{
	if (job->state == UJOBS_STATE_SUSPENDED)
		return early || job->due_at <= now;
	return job->state == UJOBS_STATE_PENDING && job->due_at <= now;
}

static bool
begin_attempt(Relation table, UjobsJob *job, TimestampTz now)
{
	Changes		changes = {0};

	if (!job->resumed)
	{
		job->attempt++;
		change(&changes, UJOBS_JOB_STARTED_AT, TimestampTzGetDatum(now));
	}
	change(&changes, UJOBS_JOB_STATE, CharGetDatum(UJOBS_STATE_LEASED));
	change(&changes, UJOBS_JOB_ATTEMPT, Int32GetDatum(job->attempt));
	change(&changes, UJOBS_JOB_REVISION, Int32GetDatum(job->revision + 1));
	change_to_null(&changes, UJOBS_JOB_REASON);
	return update_job(table, job, changes.value, changes.replace, changes.null);
}

UjobsTaken
ujobs_lease_take(UjobsJob *job, bool early, TimestampTz now, const UjobsLease *lease)
{
	Relation	table;
	UjobsTaken	taken = UJOBS_TAKEN_BUSY;

	if (!may_start(job, early, now))
		return UJOBS_TAKEN_GONE;
	table = ujobs_table_open("job", UJOBS_TABLE_WRITE);
	push_latest();
	if (ujobs_table_try_lock(table, job->row) && begin_attempt(table, job, now))
	{
		write_lease(job->id, lease);
		taken = UJOBS_TAKEN_OURS;
	}
	PopActiveSnapshot();
	ujobs_table_close(table);
	return taken;
}

/* ---- holding ---- */

typedef enum HoldHow
{
	HOLD_BY_LEASE,
	HOLD_EXPIRED
} HoldHow;

static UjobsJob *
look_leased(Relation jobs, int64 id)
{
	HeapTuple	row;
	UjobsJob   *job;

	ujobs_table_fetch(jobs, &id, 1, &row);
	if (row == NULL)
		return NULL;
	job = ujobs_row_to_job(row, RelationGetDescr(jobs));
	return job->state == UJOBS_STATE_LEASED ? job : NULL;
}

/* One look at both rows. */
static UjobsJob *
look_at_both(Relation jobs, int64 id, UjobsLease *lease)
{
	Relation	leases = ujobs_table_open("lease", UJOBS_TABLE_READ);
	UjobsJob   *job;

	push_latest();
	job = look_leased(jobs, id);
	if (job != NULL && fetch_lease(leases, id, lease) == NULL)
		job = NULL;
	PopActiveSnapshot();
	ujobs_table_close(leases);
	return job;
}

static bool
lock_job(Relation jobs, const UjobsJob *job, HoldHow how)
{
	bool		locked;

	push_latest();
	locked = how == HOLD_EXPIRED ? ujobs_table_try_lock(jobs, job->row) :
								   ujobs_table_lock(jobs, job->row);
	PopActiveSnapshot();
	return locked;
}

UjobsJob *
ujobs_lease_hold(int64 id, UjobsLease *lease)
{
	Relation	jobs = ujobs_table_open("job", UJOBS_TABLE_WRITE);
	int64		shown = lease->lease;
	UjobsJob   *job;

	do
	{
		job = look_at_both(jobs, id, lease);
		if (job != NULL && lease->lease != shown)
			job = NULL;
	} while (job != NULL && !lock_job(jobs, job, HOLD_BY_LEASE));
	/* A heartbeat may have moved visible_at before the lock. */
	if (job != NULL)
		job = look_at_both(jobs, id, lease);
	ujobs_table_close(jobs);
	return job;
}

UjobsJob *
ujobs_lease_hold_expired(int64 id, TimestampTz now, UjobsLease *lease)
{
	Relation	jobs = ujobs_table_open("job", UJOBS_TABLE_WRITE);
	UjobsJob   *job = look_at_both(jobs, id, lease);

	if (job != NULL && !lock_job(jobs, job, HOLD_EXPIRED))
		job = NULL;
	if (job != NULL)
		job = look_at_both(jobs, id, lease);
	if (job != NULL && lease->visible_at > now)
		job = NULL;
	ujobs_table_close(jobs);
	return job;
}

/* ---- of a held job ---- */

void
ujobs_lease_extend(const UjobsJob *job, TimestampTz visible_at)
{
	Relation	table = ujobs_table_open("lease", UJOBS_TABLE_READ);
	UjobsLease	lease;

	push_latest();
	(void) fetch_lease(table, job->id, &lease);
	lease.visible_at = visible_at;
	write_lease(job->id, &lease);
	PopActiveSnapshot();
	ujobs_table_close(table);
}

void
ujobs_lease_remove(const UjobsJob *job)
{
	delete_lease(job->id);
}

void
ujobs_lease_suspend(const UjobsJob *job, const UjobsSuspension *suspension)
{
	Relation	table = ujobs_table_open("job", UJOBS_TABLE_WRITE);
	Changes		changes = {0};

	change(&changes, UJOBS_JOB_STATE, CharGetDatum(UJOBS_STATE_SUSPENDED));
	change(&changes, UJOBS_JOB_DUE_AT, TimestampTzGetDatum(suspension->due_at));
	change(&changes, UJOBS_JOB_REVISION, Int32GetDatum(job->revision + 1));
	if (suspension->give_back)
	{
		change(&changes, UJOBS_JOB_ATTEMPT, Int32GetDatum(Max(job->attempt - 1, 0)));
		change_to_null(&changes, UJOBS_JOB_STARTED_AT);
	}
	if (suspension->reason != NULL)
		change(&changes, UJOBS_JOB_REASON, CStringGetTextDatum(suspension->reason));
	if (suspension->error != NULL)
		change(&changes, UJOBS_JOB_LAST_ERROR, JsonbPGetDatum(suspension->error));
	push_latest();
	if (!update_job(table, job, changes.value, changes.replace, changes.null))
		elog(ERROR, "job " INT64_FORMAT " changed while its row was locked", job->id);
	PopActiveSnapshot();
	ujobs_table_close(table);
	delete_lease(job->id);
	/*
	 * The dispatcher gets a hint as for any job that may start then, and looks
	 * whether the lease is over.
	 */
	ujobs_row_announce(job, suspension->due_at);
}

/* ---- by id ---- */

int64
ujobs_lease_of_done(int64 id, int32 *definition_id)
{
	UjobsIdentity identity;
	int64		lease = 0;

	ujobs_identity_enter(&identity);
	for (int age = 0; age < UJOBS_HISTORY_SLOTS; age++)
	{
		UjobsArgs	args = {0};
		UjobsResult result;

		ujobs_query_bind(&args, Int64GetDatum(id));
		result = ujobs_query_run(ujobs_catalogue_statement_for_slot(UJOBS_SQL_LEASE_HISTORY,
																	ujobs_history_slot_of_age(age)),
								 &args);
		if (result.rows == 0)
			continue;
		if (DatumGetChar(ujobs_query_result_datum(&result, 0, 1)) == UJOBS_STATE_DONE)
			lease = DatumGetInt64(ujobs_query_result_datum(&result, 0, 0));
		*definition_id = DatumGetInt32(ujobs_query_result_datum(&result, 0, 2));
		break;
	}
	ujobs_identity_leave(&identity);
	return lease;
}

int32
ujobs_lease_definition(int64 id)
{
	UjobsJob   *job;

	ujobs_lease_look(&id, 1, &job);
	return job != NULL ? job->definition_id : 0;
}

void
ujobs_lease_forget(int64 id)
{
	delete_lease(id);
}

/*
 * No job in state 'l' has it; one that is claimed meanwhile writes its row
 * anew, which the delete then misses.
 */
bool
ujobs_lease_drop_stale(int64 id)
{
	Relation	table = ujobs_table_open("lease", UJOBS_TABLE_WRITE);
	UjobsJob   *job;
	UjobsLease	lease;
	HeapTuple	row;
	bool		leased;

	push_latest();
	row = fetch_lease(table, id, &lease);
	ujobs_lease_look(&id, 1, &job);
	leased = job != NULL && job->state == UJOBS_STATE_LEASED;
	if (row != NULL && !leased)
		(void) ujobs_table_delete(table, row);
	PopActiveSnapshot();
	ujobs_table_close(table);
	return !leased;
}

/* ---- lists ---- */

static List *
decode_leased(const UjobsResult *result, MemoryContext into)
{
	MemoryContext old = MemoryContextSwitchTo(into);
	List	   *list = NIL;

	for (uint64 row = 0; row < result->rows; row++)
	{
		UjobsLeased *leased = palloc0(sizeof(UjobsLeased));

		leased->id = DatumGetInt64(ujobs_query_result_datum(result, row, 0));
		leased->definition_id = DatumGetInt32(ujobs_query_result_datum(result, row, 1));
		strlcpy(leased->queue, ujobs_query_result_text(result, row, 2, into), NAMEDATALEN);
		leased->tenant = ujobs_query_result_text(result, row, 3, into);
		leased->priority = DatumGetInt16(ujobs_query_result_datum(result, row, 4));
		leased->due_at = DatumGetTimestampTz(ujobs_query_result_datum(result, row, 5));
		leased->leased = DatumGetChar(ujobs_query_result_datum(result, row, 6)) ==
						 UJOBS_STATE_LEASED;
		list = lappend(list, leased);
	}
	MemoryContextSwitchTo(old);
	return list;
}

List *
ujobs_lease_all(void)
{
	UjobsIdentity identity;
	UjobsResult result;
	List	   *list;

	ujobs_identity_enter(&identity);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_LEASE_ALL), NULL);
	list = decode_leased(&result, identity.caller);
	ujobs_identity_leave(&identity);
	return list;
}

List *
ujobs_lease_of(const int64 *ids, int n)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult result;
	Datum	   *values;
	List	   *list;

	ujobs_identity_enter(&identity);
	values = palloc(n * sizeof(Datum));
	for (int i = 0; i < n; i++)
		values[i] = Int64GetDatum(ids[i]);
	ujobs_query_bind_array(&args, INT8OID, values, NULL, n);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_LEASE_OF), &args);
	list = decode_leased(&result, identity.caller);
	ujobs_identity_leave(&identity);
	return list;
}

int
ujobs_lease_expired(UjobsLeaseEnd *after, TimestampTz now, UjobsLeaseEnd *out, int max)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult result;

	ujobs_identity_enter(&identity);
	ujobs_query_bind(&args, TimestampTzGetDatum(after->visible_at));
	ujobs_query_bind(&args, Int64GetDatum(after->job_id));
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	ujobs_query_bind(&args, Int64GetDatum(max));
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_LEASE_EXPIRED), &args);
	for (uint64 row = 0; row < result.rows; row++)
	{
		out[row].job_id = DatumGetInt64(ujobs_query_result_datum(&result, row, 0));
		out[row].visible_at = DatumGetTimestampTz(ujobs_query_result_datum(&result, row, 1));
		*after = out[row];
	}
	ujobs_identity_leave(&identity);
	return (int) result.rows;
}

TimestampTz
ujobs_lease_next(TimestampTz now)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	return DatumGetTimestampTz(
		ujobs_catalogue_value(UJOBS_SQL_LEASE_NEXT, &args, TimestampTzGetDatum(DT_NOEND)));
}
