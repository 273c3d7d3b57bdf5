/*
 * api_event.c: publish_event.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "api/argument.h"
#include "api/job_grant.h"
#include "core/clock.h"
#include "core/error.h"
#include "model/step.h"
#include "store/event_store.h"

PG_FUNCTION_INFO_V1(ujobs_sql_publish_event);

/* ---- arguments ---- */

static const char *
name_argument(FunctionCallInfo fcinfo)
{
	char	   *name;

	if (PG_ARGISNULL(0))
		ujobs_argument_refuse_null("event", "Name the event, such as 'order_paid'.");
	name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	if (name[0] == '\0' || strlen(name) > UJOBS_MAX_EVENT_BYTES)
		ujobs_argument_refuse("event",
							  psprintf("A name has 1 to %d bytes, this one has %zu.",
									   UJOBS_MAX_EVENT_BYTES, strlen(name)),
							  "Name the event, such as 'order_paid'; put data into the payload.");
	return name;
}

static const char *
match_argument(FunctionCallInfo fcinfo)
{
	char	   *match;

	if (PG_ARGISNULL(2))
		return NULL;
	match = text_to_cstring(PG_GETARG_TEXT_PP(2));
	if (strlen(match) > UJOBS_MAX_EVENT_BYTES)
		ujobs_argument_refuse("match",
							  psprintf("A match has at most %d bytes, this one has %zu.",
									   UJOBS_MAX_EVENT_BYTES, strlen(match)),
							  "Give the key that waiting jobs name; put data into the payload.");
	return match;
}

static int64
ttl_argument(FunctionCallInfo fcinfo)
{
	int64		ttl;

	if (PG_ARGISNULL(3))
		ujobs_argument_refuse_null(
			"ttl", "Give the time for which the event can be found, such as '7 days'.");
	ttl = ujobs_clock_interval_us(PG_GETARG_INTERVAL_P(3));
	if (ttl < 0 || ttl > UJOBS_MAX_INTERVAL_US)
		ujobs_argument_refuse("ttl", "It takes an interval from 0 to 100 years.",
							 "Give the time for which the event can be found, such as '7 days'.");
	return ttl;
}

Datum
ujobs_sql_publish_event(PG_FUNCTION_ARGS)
{
	UjobsEvent	event = {.published_at = ujobs_clock_now()};

	ujobs_job_grant_required(fcinfo, "publish_event");
	PreventCommandIfReadOnly("ujobs.publish_event()");
	event.name = name_argument(fcinfo);
	if (PG_ARGISNULL(1))
		ujobs_argument_refuse_null("payload",
								   "Pass a jsonb value, such as '{}', or 'null' for JSON null.");
	event.payload = PG_GETARG_JSONB_P(1);
	event.match = match_argument(fcinfo);
	event.expires_at = ujobs_clock_add(event.published_at, ttl_argument(fcinfo));
	PG_RETURN_INT64(ujobs_event_publish(&event));
}
