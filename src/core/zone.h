/*
 * zone.h: time zones as spans of constant offset from UTC.
 *
 * Only offsets are told, never whether they are daylight saving.  Instants
 * are seconds since 1970-01-01 UTC.
 */
#ifndef UJOBS_CORE_ZONE_H
#define UJOBS_CORE_ZONE_H

#include "postgres.h"

#include "pgtime.h"

/* Lives as long as the process. */
typedef pg_tz UjobsZone;

/* Clocks show UTC + offset before the instant `until` (PG_INT64_MAX: for ever). */
typedef struct UjobsSpan
{
	int32		offset;			/* seconds east of Greenwich */
	int64		until;
} UjobsSpan;

/*
 * A region of the server's database ('Europe/Berlin', in any case), UTC or
 * GMT; NULL for everything else, abbreviations and POSIX rules among it.
 */
extern const UjobsZone *ujobs_zone_find(const char *name);

/* Its name as the database spells it. */
extern const char *ujobs_zone_name(const UjobsZone *zone);

/* The span in which the instant lies. */
extern UjobsSpan ujobs_zone_span(const UjobsZone *zone, int64 instant);

#endif							/* UJOBS_CORE_ZONE_H */
