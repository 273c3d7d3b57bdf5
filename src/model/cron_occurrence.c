/*
 * cron_occurrence.c: from matching local times to instants.
 *
 * Time is walked in spans of constant offset.  In a span an instant is its
 * local time minus the offset.  Where clocks jump forward, the local times
 * jumped over become instants with the offset before the jump.  Where they
 * fall back, a local time that an earlier span had already is dropped, unless
 * the schedule names every hour.
 */
#include "postgres.h"

#include "model/cron_calendar.h"
#include "model/cron_occurrence.h"

/* No clock was ever moved by more than a day: a walk that begins so early sees all that matters. */
#define LOOK_BACK (INT64CONST(3) * SECS_PER_DAY)
#define SETTLED (INT64CONST(26) * SECS_PER_HOUR)
#define KEPT 8

typedef struct LocalRange
{
	int64		from;
	int64		until;
} LocalRange;

typedef struct Walk
{
	const UjobsCron *cron;
	const UjobsZone *zone;
	int64		after;
	int64		begin;			/* of the span */
	UjobsSpan	span;
	int			n_earlier;		/* spans before it, of which the last KEPT are known */
	LocalRange	earlier[KEPT];
} Walk;

/* The local times of an earlier span that had this one, or NULL. */
static const LocalRange *
repeated_from(const Walk *walk, int64 local)
{
	for (int i = 0; i < Min(walk->n_earlier, KEPT); i++)
	{
		if (local >= walk->earlier[i].from && local < walk->earlier[i].until)
			return &walk->earlier[i];
	}
	return NULL;
}

/* The least local time in [from, until) that matches and is not a repetition to be dropped. */
static int64
next_local(const Walk *walk, int64 from, int64 until)
{
	int64		local = ujobs_cron_calendar_next(walk->cron, from, until);
	const LocalRange *earlier;

	if (ujobs_cron_every_hour(walk->cron))
		return local;
	while (local != UJOBS_CRON_CALENDAR_NONE && (earlier = repeated_from(walk, local)) != NULL)
		local = ujobs_cron_calendar_next(walk->cron, earlier->until, until);
	return local;
}

/* With local times at this offset: the least occurrence in [from, until). */
static int64
next_instant(const Walk *walk, int64 from, int64 until, int32 offset)
{
	int64		local;

	from = Max(from, walk->after + 1);
	if (from >= until)
		return PG_INT64_MAX;
	local = next_local(walk, from + offset, until + offset);
	return local == UJOBS_CRON_CALENDAR_NONE ? PG_INT64_MAX : local - offset;
}

/* Go on to the next span; returns the least occurrence that the jump between them moved. */
static int64
cross(Walk *walk)
{
	int64		boundary = walk->span.until;
	int32		before = walk->span.offset;
	LocalRange	left = {walk->begin + before, boundary + before};
	int32		jump;

	walk->span = ujobs_zone_span(walk->zone, boundary);
	walk->begin = boundary;
	walk->earlier[walk->n_earlier++ % KEPT] = left;
	jump = walk->span.offset - before;
	return jump > 0 ? next_instant(walk, boundary, boundary + jump, before) : PG_INT64_MAX;
}

bool
ujobs_cron_occurrence_next(const UjobsCron *cron, const UjobsZone *zone, int64 after,
						   int64 *occurrence)
{
	int64		horizon = after + UJOBS_CRON_HORIZON;
	int64		best = PG_INT64_MAX;
	Walk		walk = {cron, zone, after, after - LOOK_BACK};

	walk.span = ujobs_zone_span(zone, walk.begin);
	for (;;)
	{
		int64		end = Min(walk.span.until, horizon);
		int64		found = next_instant(&walk, walk.begin, end, walk.span.offset);

		best = Min(best, found);
		if (best < end || end == horizon)
			break;
		found = cross(&walk);
		best = Min(best, found);
	}
	*occurrence = best;
	return best < horizon;
}

/* Is there one in (after, until]? */
static bool
next_until(const UjobsCron *cron, const UjobsZone *zone, int64 after, int64 until,
		   int64 *occurrence)
{
	return ujobs_cron_occurrence_next(cron, zone, after, occurrence) && *occurrence <= until;
}

/*
 * The next one never comes earlier when the search begins later: so the last
 * one is found by halving.  Between known and bound lies what is not decided:
 * known is an occurrence, and there is none in (bound, until].
 */
bool
ujobs_cron_occurrence_previous(const UjobsCron *cron, const UjobsZone *zone, int64 until,
							   int64 *occurrence)
{
	int64		back = SECS_PER_MINUTE;
	int64		bound = until;
	int64		known;
	int64		next;

	while (!next_until(cron, zone, until - back, until, &known))
	{
		bound = until - back;
		if (back >= UJOBS_CRON_HORIZON)
			return false;
		back = Min(back * 2, UJOBS_CRON_HORIZON);
	}
	while (known < bound)
	{
		int64		middle = known + (bound - known) / 2;

		if (next_until(cron, zone, middle, until, &next))
			known = next;
		else
			bound = middle;
	}
	*occurrence = known;
	return true;
}

/* Where clocks have been left alone local times are counted by the day, else one by one. */
int64
ujobs_cron_occurrence_count(const UjobsCron *cron, const UjobsZone *zone, int64 after, int64 until)
{
	int64		count = 0;
	int64		next;

	while (after < until)
	{
		UjobsSpan	span = ujobs_zone_span(zone, after - SETTLED);

		if (span.until > after + 1)
		{
			int64		end = Min(until, span.until - 1);

			count += ujobs_cron_calendar_count(cron, after + 1 + span.offset,
											   end + 1 + span.offset);
			after = end;
			continue;
		}
		if (!next_until(cron, zone, after, until, &next))
			break;
		count++;
		after = next;
	}
	return count;
}
