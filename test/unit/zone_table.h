/*
 * zone_table.h: a time zone given as a table, for programs that have no server.
 *
 * These take the place of core/zone.c at link time; UjobsZone is the table.
 */
#ifndef ZONE_TABLE_H
#define ZONE_TABLE_H

#include "core/zone.h"

#define ZONE_MAX_CHANGES 400

typedef struct UjobsZoneTable
{
	int32		first_offset;
	int			count;
	struct
	{
		int64		at;
		int32		offset;		/* from then on */
	}			change[ZONE_MAX_CHANGES];	/* in order; the offset differs from the one before */
} UjobsZoneTable;

static inline UjobsSpan
ujobs_zone_table_span(const UjobsZoneTable *zone, int64 instant)
{
	UjobsSpan	span = {zone->first_offset, PG_INT64_MAX};

	for (int i = 0; i < zone->count; i++)
	{
		if (instant < zone->change[i].at)
		{
			span.until = zone->change[i].at;
			break;
		}
		span.offset = zone->change[i].offset;
	}
	return span;
}

UjobsSpan
ujobs_zone_span(const UjobsZone *zone, int64 instant)
{
	return ujobs_zone_table_span((const UjobsZoneTable *) zone, instant);
}

#endif							/* ZONE_TABLE_H */
