/*
 * cron_occurrence.h: the occurrences of a cron expression in a time zone.  Pure.
 *
 * Instants are seconds since 1970-01-01 UTC; an occurrence is a whole second.
 * An instant whose local time matches is an occurrence.  A matching local
 * time that clocks jump over moves forward by the jump; one that comes twice
 * is an occurrence in the first pass only, unless the schedule names all 24
 * hours.  Searches end after 50 years.
 */
#ifndef UJOBS_MODEL_CRON_OCCURRENCE_H
#define UJOBS_MODEL_CRON_OCCURRENCE_H

#include "postgres.h"

#include "core/zone.h"
#include "datatype/timestamp.h"
#include "model/cron_parse.h"

#define UJOBS_CRON_HORIZON (INT64CONST(50) * 366 * SECS_PER_DAY)

/* The least occurrence after the instant; false when there is none. */
extern bool ujobs_cron_occurrence_next(const UjobsCron *cron, const UjobsZone *zone, int64 after,
									   int64 *occurrence);

/* The greatest occurrence up to and including the instant. */
extern bool ujobs_cron_occurrence_previous(const UjobsCron *cron, const UjobsZone *zone,
										   int64 until, int64 *occurrence);

/* How many occurrences lie in (after, until]; cheap for any number. */
extern int64 ujobs_cron_occurrence_count(const UjobsCron *cron, const UjobsZone *zone, int64 after,
										 int64 until);

#define UJOBS_CRON_EPOCH ((POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * INT64CONST(86400))

/* A finite timestamp of the server, microseconds since 2000, rounded down. */
static inline int64
ujobs_cron_seconds(TimestampTz t)
{
	return t / USECS_PER_SEC - (t % USECS_PER_SEC < 0) + UJOBS_CRON_EPOCH;
}

/* And back; what is later than any timestamp is infinity. */
static inline TimestampTz
ujobs_cron_timestamp(int64 seconds)
{
	if (seconds - UJOBS_CRON_EPOCH >= END_TIMESTAMP / USECS_PER_SEC)
		return DT_NOEND;
	return (seconds - UJOBS_CRON_EPOCH) * USECS_PER_SEC;
}

#endif							/* UJOBS_MODEL_CRON_OCCURRENCE_H */
