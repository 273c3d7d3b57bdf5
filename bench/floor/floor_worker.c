/*
 * floor_worker.c: the floor that ujobs is held against: what a background
 * worker in C can do at best that takes jobs from a table and calls a handler
 * for each.  No retries, no history, no limits, no roles: two loops.
 *
 * Together: one transaction deletes 100 rows that nobody holds and calls the
 * handler for each.  One by one: a transaction claims 100 rows by UPDATE, then
 * each job has a transaction of its own that calls the handler and deletes the
 * row.  A worker ends when it finds no row, and notes when it began and ended.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(floor_worker_start);
PGDLLEXPORT void floor_worker_main(Datum argument);

/* What bgw_extra carries to the worker. */
typedef struct FloorOrder
{
	Oid			database;
	Oid			role;
	Oid			handler;
	bool		together;
} FloorOrder;

StaticAssertDecl(sizeof(FloorOrder) <= BGW_EXTRALEN, "an order fits into bgw_extra");

#define AT_ONCE 100

static const char *const take_together =
"delete from bench.floor_job "
"where ctid = any (array(select ctid from bench.floor_job where state = 'ready' order by id limit 100 for update skip locked)) "
"returning id, payload";

static const char *const claim =
"update bench.floor_job set state = 'running' "
"where ctid = any (array(select ctid from bench.floor_job where state = 'ready' order by id limit 100 for update skip locked)) "
"returning id, payload";

static const char *const finish = "delete from bench.floor_job where id = $1";

static const char *const note = "insert into bench.floor_span values ($1, $2)";

static SPIPlanPtr
prepare(const char *sql, int nargs, Oid *types)
{
	SPIPlanPtr	plan = SPI_prepare(sql, nargs, types);

	if (plan == NULL || SPI_keepplan(plan) != 0)
		elog(ERROR, "cannot prepare: %s", sql);
	return plan;
}

static void
begin(void)
{
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	SPI_connect();
}

static void
commit(void)
{
	SPI_finish();
	PopActiveSnapshot();
	CommitTransactionCommand();
}

/* The handler sees what came before it in its transaction, as a statement would. */
static void
call(FmgrInfo *handler, Datum payload)
{
	LOCAL_FCINFO(fcinfo, 1);

	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	InitFunctionCallInfoData(*fcinfo, handler, 1, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = payload;
	fcinfo->args[0].isnull = false;
	(void) FunctionCallInvoke(fcinfo);
	PopActiveSnapshot();
}

static Datum
column(SPITupleTable *rows, uint64 row, int number)
{
	bool		isnull;

	return SPI_getbinval(rows->vals[row], rows->tupdesc, number, &isnull);
}

/* False when there was no row. */
static bool
run_together(SPIPlanPtr take, FmgrInfo *handler)
{
	SPITupleTable *rows;
	uint64		n;

	begin();
	SPI_execute_plan(take, NULL, NULL, false, 0);
	rows = SPI_tuptable;
	n = SPI_processed;
	for (uint64 i = 0; i < n; i++)
		call(handler, column(rows, i, 2));
	commit();
	return n > 0;
}

static bool
run_one_by_one(SPIPlanPtr take, SPIPlanPtr end, FmgrInfo *handler, MemoryContext keep)
{
	Datum		ids[AT_ONCE];
	Datum		payloads[AT_ONCE];
	int			n;

	begin();
	SPI_execute_plan(take, NULL, NULL, false, 0);
	n = (int) SPI_processed;
	for (int i = 0; i < n; i++)
	{
		MemoryContext old = MemoryContextSwitchTo(keep);

		ids[i] = column(SPI_tuptable, i, 1);
		payloads[i] = PointerGetDatum(PG_DETOAST_DATUM_COPY(column(SPI_tuptable, i, 2)));
		MemoryContextSwitchTo(old);
	}
	commit();
	for (int i = 0; i < n; i++)
	{
		begin();
		call(handler, payloads[i]);
		SPI_execute_plan(end, &ids[i], NULL, false, 0);
		commit();
	}
	MemoryContextReset(keep);
	return n > 0;
}

static void
note_span(TimestampTz began, TimestampTz ended)
{
	Oid			types[] = {TIMESTAMPTZOID, TIMESTAMPTZOID};
	Datum		values[] = {TimestampTzGetDatum(began), TimestampTzGetDatum(ended)};

	begin();
	SPI_execute_with_args(note, 2, types, values, NULL, false, 0);
	commit();
}

void
floor_worker_main(Datum argument)
{
	MemoryContext keep = AllocSetContextCreate(TopMemoryContext, "claimed jobs", ALLOCSET_DEFAULT_SIZES);
	Oid			id_type[] = {INT8OID};
	FloorOrder	order;
	FmgrInfo	handler;
	SPIPlanPtr	take;
	SPIPlanPtr	end;
	TimestampTz began;

	memcpy(&order, MyBgworkerEntry->bgw_extra, sizeof(order));
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(order.database, order.role, 0);
	begin();
	take = prepare(order.together ? take_together : claim, 0, NULL);
	end = prepare(finish, 1, id_type);
	fmgr_info_cxt(order.handler, &handler, TopMemoryContext);
	commit();

	began = GetCurrentTimestamp();
	if (order.together)
		while (run_together(take, &handler))
			CHECK_FOR_INTERRUPTS();
	else
		while (run_one_by_one(take, end, &handler, keep))
			CHECK_FOR_INTERRUPTS();
	note_span(began, GetCurrentTimestamp());
}

/* floor_worker_start(together boolean, handler regprocedure): starts one worker. */
Datum
floor_worker_start(PG_FUNCTION_ARGS)
{
	FloorOrder	order = {MyDatabaseId, GetUserId(), PG_GETARG_OID(1), PG_GETARG_BOOL(0)};
	BackgroundWorker worker = {
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_name = "floor worker",
		.bgw_type = "floor worker",
		.bgw_library_name = "floor_worker",
		.bgw_function_name = "floor_worker_main",
	};

	memcpy(worker.bgw_extra, &order, sizeof(order));
	if (!RegisterDynamicBackgroundWorker(&worker, NULL))
		elog(ERROR, "no background worker is free");
	PG_RETURN_VOID();
}
