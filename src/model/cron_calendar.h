/*
 * cron_calendar.h: which local times match a cron expression.  Pure.
 *
 * A local time is counted in seconds since 1970-01-01 00:00 of the same clock,
 * as if the clock had never been moved.
 */
#ifndef UJOBS_MODEL_CRON_CALENDAR_H
#define UJOBS_MODEL_CRON_CALENDAR_H

#include "model/cron_parse.h"

#define UJOBS_CRON_CALENDAR_NONE PG_INT64_MAX

/* The least local time in [from, until) that matches, or UJOBS_CRON_CALENDAR_NONE. */
extern int64 ujobs_cron_calendar_next(const UjobsCron *cron, int64 from, int64 until);

/* How many local times in [from, until) match. */
extern int64 ujobs_cron_calendar_count(const UjobsCron *cron, int64 from, int64 until);

#endif							/* UJOBS_MODEL_CRON_CALENDAR_H */
