/*
 * api_queue.c: ujobs.set_queue, the limits of a queue.
 *
 * They are rows like everything else: the engine follows at commit.  Jobs that
 * run when a limit gets smaller finish; nothing more starts until fewer run than it allows.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "api/argument.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/identity.h"
#include "core/json.h"
#include "store/control_store.h"
#include "store/definition_store.h"

#define US_PER_MS INT64CONST(1000)

PG_FUNCTION_INFO_V1(ujobs_sql_set_queue);

static void
refuse(const char *option, const char *detail)
{
	ujobs_argument_refuse(option, detail, "Give it such a value, or leave it out for no limit.");
}

/* 0 = none. */
static int32
limit_argument(FunctionCallInfo fcinfo, int number, const char *option)
{
	int32		limit;

	if (PG_ARGISNULL(number))
		return 0;
	limit = PG_GETARG_INT32(number);
	if (limit <= 0)
		refuse(option, psprintf("\"%s\" is %d; it takes 1 or more.", option, limit));
	return limit;
}

static void
read_rate(FunctionCallInfo fcinfo, UjobsQueueLimits *limits)
{
	int64		us;

	limits->rate_per_tenant = limit_argument(fcinfo, 3, "rate_per_tenant");
	if ((limits->rate_per_tenant == 0) != PG_ARGISNULL(4))
		refuse(PG_ARGISNULL(4) ? "rate_window" : "rate_per_tenant",
			   "\"rate_per_tenant\" and \"rate_window\" are given together or not at all.");
	if (PG_ARGISNULL(4))
		return;
	limits->rate_window = PG_GETARG_INTERVAL_P(4);
	us = ujobs_clock_interval_us(limits->rate_window);
	if (us < US_PER_MS || us > UJOBS_MAX_INTERVAL_US)
		refuse("rate_window", "\"rate_window\" is an interval from 1 ms to 100 years.");
}

/* ---- the answer ---- */

/* 0 is shown as null: no limit. */
static void
add_limit(UjobsJson *json, const char *name, int64 limit)
{
	if (limit == 0)
		ujobs_json_null(json, name);
	else
		ujobs_json_number(json, name, limit);
}

static Jsonb *
describe(const char *queue, const UjobsQueueLimits *limits)
{
	UjobsJson	json = {0};

	ujobs_json_begin_object(&json, NULL);
	ujobs_json_text(&json, "queue", queue);
	add_limit(&json, "concurrency", limits->concurrency);
	add_limit(&json, "perTenant", limits->per_tenant);
	add_limit(&json, "ratePerTenant", limits->rate_per_tenant);
	add_limit(&json, "rateWindowMs",
			  limits->rate_per_tenant == 0 ?
				  0 :
				  ujobs_clock_interval_us(limits->rate_window) / US_PER_MS);
	return ujobs_json_end(&json);
}

/* set_queue(queue, concurrency, per_tenant, rate_per_tenant, rate_window) */
Datum
ujobs_sql_set_queue(PG_FUNCTION_ARGS)
{
	char	   *queue = ujobs_argument_required(fcinfo, 0, "queue");
	UjobsQueueLimits limits = {0};
	UjobsIdentity identity;

	ujobs_argument_check_name("queue", queue);
	limits.concurrency = limit_argument(fcinfo, 1, "concurrency");
	limits.per_tenant = limit_argument(fcinfo, 2, "per_tenant");
	read_rate(fcinfo, &limits);
	PreventCommandIfReadOnly("ujobs.set_queue()");
	ujobs_identity_enter(&identity);
	if (ujobs_control_set_queue(queue, &limits))
		ujobs_definition_invalidate();
	ujobs_identity_leave(&identity);
	PG_RETURN_JSONB_P(describe(queue, &limits));
}
