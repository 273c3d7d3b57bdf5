/*
 * api_claim.c: claim and wait_for_work: a program outside asks for jobs.
 *
 * The dispatcher says which (core/claim.h); here the leases are written in
 * the caller's transaction, and what cannot be claimed after all goes back.
 * Nothing is kept between calls, so any session of a pool may do the next.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "api/api_lease.h"
#include "api/argument.h"
#include "core/claim.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "run/command.h"
#include "store/definition_store.h"
#include "store/lease_store.h"

#define MAX_JOBS 1000
#define MAX_WAIT_US (INT64CONST(60) * USECS_PER_SEC)
#define MAX_WORKER_BYTES 200
#define LEASE_BITS 53			/* exact in a program that has only doubles */

PG_FUNCTION_INFO_V1(ujobs_sql_claim);
PG_FUNCTION_INFO_V1(ujobs_sql_wait_for_work);

/* ---- arguments ---- */

static void
read_queues(FunctionCallInfo fcinfo, int number, UjobsClaimAsk *ask)
{
	Datum	   *elements;
	bool	   *nulls;
	int			n;

	ujobs_argument_check_null(fcinfo, number, "queues");
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(number), TEXTOID, -1, false, TYPALIGN_INT, &elements,
					  &nulls, &n);
	if (n < 1 || n > UJOBS_CLAIM_QUEUES)
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("option \"queues\" has an invalid value"),
				 errdetail("It names %d queues.", n),
				 errhint("Name 1 to %d queues.", UJOBS_CLAIM_QUEUES)));
	for (int i = 0; i < n; i++)
	{
		char	   *queue;

		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("argument \"queues\" must not contain NULL"),
					 errhint("Give the name of each queue.")));
		queue = TextDatumGetCString(elements[i]);
		ujobs_argument_check_name("queues", queue);
		ask->queue[i] = ujobs_hash_claimed_queue(queue);
	}
	ask->n_queues = n;
}

static int
max_jobs_argument(FunctionCallInfo fcinfo, int number)
{
	int			max;

	ujobs_argument_check_null(fcinfo, number, "max_jobs");
	max = PG_GETARG_INT32(number);
	if (max < 1 || max > MAX_JOBS)
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("option \"max_jobs\" has an invalid value"),
				 errdetail("It is %d.", max),
				 errhint("Claim 1 to %d jobs at a time.", MAX_JOBS)));
	return max;
}

static int64
wait_argument(FunctionCallInfo fcinfo, int number, const char *name)
{
	int64		us = ujobs_lease_interval(fcinfo, number, name);

	if (us > MAX_WAIT_US)
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("option \"%s\" has an invalid value", name),
				 errdetail("It is longer than 60 seconds."),
				 errhint("Wait at most 60 seconds, and call again.")));
	return us;
}

static char *
worker_argument(FunctionCallInfo fcinfo, int number)
{
	char	   *worker = ujobs_argument_required(fcinfo, number, "worker");

	if (worker[0] == '\0' || strlen(worker) > MAX_WORKER_BYTES)
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("option \"worker\" has an invalid value"),
				 errdetail("It has %zu bytes.", strlen(worker)),
				 errhint("Give the worker a name of 1 to %d bytes, such as its host and process id.", MAX_WORKER_BYTES)));
	return worker;
}

/* ---- claiming ---- */

typedef struct Claim
{
	UjobsClaimAsk ask;
	int			max_jobs;
	char	   *worker;
	int64		visibility;
	TimestampTz deadline;
	int			taken;
	ReturnSetInfo *out;
} Claim;

static int64
random_lease(void)
{
	uint64		lease;

	do
	{
		if (!pg_strong_random(&lease, sizeof(lease)))
			elog(ERROR, "could not generate a random lease");
		lease >>= 64 - LEASE_BITS;
	} while (lease == 0);
	return (int64) lease;
}

static Datum
text_datum(const char *text, bool *isnull)
{
	*isnull = text == NULL || text[0] == '\0';
	return *isnull ? (Datum) 0 : CStringGetTextDatum(text);
}

static void
put_row(const Claim *claim, const UjobsJob *job, const char *name, const UjobsLease *lease)
{
	bool		nulls[12] = {false};
	Datum		values[12] = {
		Int64GetDatum(job->id),
		UUIDPGetDatum(&job->run_id),
		CStringGetTextDatum(name),
		CStringGetTextDatum(job->queue),
		JsonbPGetDatum(job->input),
		Int32GetDatum(job->attempt),
		Int32GetDatum(job->max_attempts),
		text_datum(job->tenant, &nulls[7]),
		Int64GetDatum(lease->lease),
		TimestampTzGetDatum(lease->visible_at),
		text_datum(job->traceparent, &nulls[10]),
		text_datum(job->enqueued_by, &nulls[11])
	};

	tuplestore_putvalues(claim->out->setResult, claim->out->setDesc, values, nulls);
}

static bool
asked_for(const Claim *claim, const char *queue)
{
	uint64		hash = ujobs_hash_claimed_queue(queue);

	for (int i = 0; i < claim->ask.n_queues; i++)
	{
		if (claim->ask.queue[i] == hash)
			return true;
	}
	return false;
}

/* What the dispatcher knew may be out of date. */
static bool
may_claim(const Claim *claim, const UjobsJob *job, const UjobsDefinition *definition)
{
	return definition != NULL && !definition->dropped && definition->kind == UJOBS_KIND_EXTERNAL &&
		ujobs_definition_may_work(definition, claim->ask.role) && asked_for(claim, job->queue);
}

static bool
take_one(Claim *claim, UjobsJob *job, const UjobsGranted *granted)
{
	TimestampTz now = GetCurrentTimestamp();
	UjobsLease	lease = {random_lease(), ujobs_clock_add(now, claim->visibility), claim->worker};
	const UjobsDefinition *definition = job != NULL ? ujobs_definition_by_id(job->definition_id) :
													  NULL;
	UjobsTaken	taken = UJOBS_TAKEN_GONE;

	if (job != NULL && !may_claim(claim, job, definition))
		taken = UJOBS_TAKEN_BUSY;
	else if (job != NULL)
		taken = ujobs_lease_take(job, granted->woken, now, &lease);
	if (taken == UJOBS_TAKEN_OURS)
		put_row(claim, job, definition->name, &lease);
	else
		ujobs_claim_decline(granted,
							taken == UJOBS_TAKEN_BUSY ? UJOBS_FATE_LATER : UJOBS_FATE_GONE);
	return taken == UJOBS_TAKEN_OURS;
}

static void
take(Claim *claim, const UjobsGranted *granted, int n)
{
	int64		ids[UJOBS_CLAIM_GRANTS];
	UjobsJob   *job[UJOBS_CLAIM_GRANTS];

	for (int i = 0; i < n; i++)
		ids[i] = granted[i].id;
	ujobs_lease_look(ids, n, job);
	for (int i = 0; i < n; i++)
		claim->taken += take_one(claim, job[i], &granted[i]);
}

/* Until there are enough, or the dispatcher gave less than it was asked for. */
static void
claim_all(Claim *claim)
{
	UjobsGranted granted[UJOBS_CLAIM_GRANTS];
	bool		more;
	int			n;

	do
	{
		claim->ask.max = claim->max_jobs - claim->taken;
		claim->ask.wait = claim->taken == 0 && GetCurrentTimestamp() < claim->deadline;
		n = ujobs_claim_ask(&claim->ask, claim->deadline, granted);
		take(claim, granted, n);
		more = n == claim->ask.max || (n > 0 && claim->taken == 0);
	} while (more && claim->taken < claim->max_jobs);
}

/* claim(worker, queues, max_jobs, visibility_timeout, wait) */
Datum
ujobs_sql_claim(PG_FUNCTION_ARGS)
{
	Claim		claim = {0};

	claim.worker = worker_argument(fcinfo, 0);
	read_queues(fcinfo, 1, &claim.ask);
	claim.max_jobs = max_jobs_argument(fcinfo, 2);
	claim.visibility = ujobs_lease_visibility(fcinfo, 3);
	claim.deadline = ujobs_clock_add(GetCurrentTimestamp(), wait_argument(fcinfo, 4, "wait"));
	claim.ask.role = GetUserId();
	PreventCommandIfReadOnly("ujobs.claim()");
	InitMaterializedSRF(fcinfo, 0);
	claim.out = (ReturnSetInfo *) fcinfo->resultinfo;
	claim_all(&claim);
	return (Datum) 0;
}

/* ---- waiting ---- */

static void
refuse_atomic(FunctionCallInfo fcinfo)
{
	if (fcinfo->context == NULL || !IsA(fcinfo->context, CallContext) ||
		castNode(CallContext, fcinfo->context)->atomic)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("wait_for_work cannot run inside a transaction block"),
				 errdetail("It commits before it waits, so that nothing is held meanwhile."),
				 errhint("Send CALL ujobs.wait_for_work(...) as a statement of its own, outside BEGIN.")));
}

/*
 * wait_for_work(queues, timeout, INOUT found).  After the commit there is a
 * transaction without a snapshot: it holds back nothing while it waits.
 */
Datum
ujobs_sql_wait_for_work(PG_FUNCTION_ARGS)
{
	UjobsClaimAsk ask = {.wait = true, .role = GetUserId()};
	TimestampTz deadline;
	MemoryContext caller = CurrentMemoryContext;
	TupleDesc	desc;
	Datum		found;
	bool		isnull = false;
	UjobsGranted none[1];

	read_queues(fcinfo, 0, &ask);
	deadline = ujobs_clock_add(GetCurrentTimestamp(), ujobs_lease_interval(fcinfo, 1, "timeout"));
	refuse_atomic(fcinfo);
	ujobs_command_open(true);
	ujobs_command_commit();
	found = BoolGetDatum(ujobs_claim_ask(&ask, deadline, none) > 0);
	ujobs_command_close();
	MemoryContextSwitchTo(caller);
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "wait_for_work must return a row");
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), &found, &isnull));
}
