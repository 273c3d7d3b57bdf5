/*
 * api_cron.c: next_runs and describe_cron, to try an expression before a task
 * is built on it.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "api/api_cron.h"
#include "api/argument.h"
#include "core/clock.h"
#include "core/error.h"
#include "model/cron_describe.h"

PG_FUNCTION_INFO_V1(ujobs_sql_next_runs);
PG_FUNCTION_INFO_V1(ujobs_sql_describe_cron);

/* What next_runs remembers between its rows. */
typedef struct Runs
{
	UjobsCron	cron;
	const UjobsZone *zone;
	int64		last;
} Runs;

void
ujobs_cron_read(const char *expr, UjobsCron *cron)
{
	UjobsCronError error;

	if (ujobs_cron_parse(expr, strlen(expr), cron, &error))
		return;
	ereport(ERROR,
			(ujobs_errcode(CRON_INVALID),
			 errmsg("invalid cron expression \"%.*s\"",
					pg_mbcliplen(expr, strlen(expr), 2 * UJOBS_CRON_MAX_BYTES), expr),
			 errdetail("%s", error.detail),
			 errhint("%s", error.hint)));
}

const UjobsZone *
ujobs_cron_zone(const char *name)
{
	const UjobsZone *zone = ujobs_zone_find(name);

	if (zone == NULL)
		ereport(ERROR,
				(ujobs_errcode(TIMEZONE_INVALID),
				 errmsg("time zone \"%.*s\" is not recognized",
						pg_mbcliplen(name, strlen(name), UJOBS_CRON_MAX_BYTES), name),
				 errdetail("It is neither a region of the server's time zone database nor UTC or GMT."),
				 errhint("Use a name of pg_timezone_names that contains a slash, such as 'Europe/Berlin', or 'UTC'.")));
	return zone;
}

static void
check_after(TimestampTz after)
{
	if (TIMESTAMP_NOT_FINITE(after))
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("option \"after\" has an invalid value"),
				 errdetail("\"after\" is infinite."),
				 errhint("Give it a point in time, or leave it out for now.")));
}

static int64
count_option(FunctionCallInfo fcinfo, int argument)
{
	int32		n = PG_ARGISNULL(argument) ? 1 : PG_GETARG_INT32(argument);

	if (n < 0)
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("option \"n\" has an invalid value"),
				 errdetail("\"n\" is %d; it takes 0 or more.", n),
				 errhint("Give it such a value, or leave it out for 1.")));
	return n;
}

static void
begin_runs(FunctionCallInfo fcinfo)
{
	FuncCallContext *context = SRF_FIRSTCALL_INIT();
	Runs	   *runs = MemoryContextAllocZero(context->multi_call_memory_ctx, sizeof(Runs));
	TimestampTz after = PG_ARGISNULL(2) ? ujobs_clock_now() : PG_GETARG_TIMESTAMPTZ(2);

	ujobs_cron_read(ujobs_argument_required(fcinfo, 0, "cron"), &runs->cron);
	runs->zone = ujobs_cron_zone(ujobs_argument_required(fcinfo, 1, "tz"));
	check_after(after);
	runs->last = ujobs_cron_seconds(after);
	context->max_calls = count_option(fcinfo, 3);
	context->user_fctx = runs;
}

Datum
ujobs_sql_next_runs(PG_FUNCTION_ARGS)
{
	FuncCallContext *context;
	Runs	   *runs;
	TimestampTz found;

	if (SRF_IS_FIRSTCALL())
		begin_runs(fcinfo);
	context = SRF_PERCALL_SETUP();
	runs = context->user_fctx;
	if (context->call_cntr >= context->max_calls ||
		!ujobs_cron_occurrence_next(&runs->cron, runs->zone, runs->last, &runs->last))
		SRF_RETURN_DONE(context);
	found = ujobs_cron_timestamp(runs->last);
	if (TIMESTAMP_IS_NOEND(found))
		SRF_RETURN_DONE(context);
	SRF_RETURN_NEXT(context, TimestampTzGetDatum(found));
}

Datum
ujobs_sql_describe_cron(PG_FUNCTION_ARGS)
{
	char		sentence[UJOBS_CRON_SENTENCE];
	UjobsCron	cron;
	const UjobsZone *zone;

	ujobs_cron_read(ujobs_argument_required(fcinfo, 0, "cron"), &cron);
	zone = ujobs_cron_zone(ujobs_argument_required(fcinfo, 1, "tz"));
	ujobs_cron_describe(&cron, ujobs_zone_name(zone), sentence);
	PG_RETURN_TEXT_P(cstring_to_text(sentence));
}
