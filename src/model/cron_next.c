/*
 * cron_next.c: from readings of the wall clock to instants.
 *
 * Time is walked in spans of constant offset.  In a span an instant is its
 * reading minus the offset.  Where clocks jump forward, the readings jumped
 * over are instants counted with the offset before the jump.  Where they fall
 * back, a reading that an earlier span had already is dropped, unless the
 * schedule names every hour.
 */
#include "postgres.h"

#include "model/cron_next.h"
#include "model/cron_wall.h"

/* No clock was ever moved by more than a day: a walk that begins so early sees all that matters. */
#define LOOK_BACK (INT64CONST(3) * SECS_PER_DAY)
#define SETTLED (INT64CONST(26) * SECS_PER_HOUR)
#define KEPT 8

typedef struct Readings
{
	int64		from;
	int64		until;
} Readings;

typedef struct Walk
{
	const UjobsCron *cron;
	const UjobsZone *zone;
	int64		after;
	int64		begin;			/* of the span */
	UjobsSpan	span;
	int			n_earlier;		/* spans before it, of which the last KEPT are known */
	Readings	earlier[KEPT];
} Walk;

/* An earlier span that had this reading, or NULL. */
static const Readings *
had_before(const Walk *walk, int64 reading)
{
	for (int i = 0; i < Min(walk->n_earlier, KEPT); i++)
	{
		if (reading >= walk->earlier[i].from && reading < walk->earlier[i].until)
			return &walk->earlier[i];
	}
	return NULL;
}

/* The least reading in [from, until) that matches and is not a repetition to be dropped. */
static int64
next_reading(const Walk *walk, int64 from, int64 until)
{
	int64		reading = ujobs_wall_next(walk->cron, from, until);
	const Readings *earlier;

	if (ujobs_cron_every_hour(walk->cron))
		return reading;
	while (reading != UJOBS_WALL_NONE && (earlier = had_before(walk, reading)) != NULL)
		reading = ujobs_wall_next(walk->cron, earlier->until, until);
	return reading;
}

/* With readings taken at this offset: the least occurrence in [from, until). */
static int64
next_instant(const Walk *walk, int64 from, int64 until, int32 offset)
{
	int64		reading;

	from = Max(from, walk->after + 1);
	if (from >= until)
		return PG_INT64_MAX;
	reading = next_reading(walk, from + offset, until + offset);
	return reading == UJOBS_WALL_NONE ? PG_INT64_MAX : reading - offset;
}

/* Go on to the next span; returns the least occurrence that the jump between them moved. */
static int64
cross(Walk *walk)
{
	int64		boundary = walk->span.until;
	int32		before = walk->span.offset;
	Readings	left = {walk->begin + before, boundary + before};
	int32		jump;

	walk->span = ujobs_zone_span(walk->zone, boundary);
	walk->begin = boundary;
	walk->earlier[walk->n_earlier++ % KEPT] = left;
	jump = walk->span.offset - before;
	return jump > 0 ? next_instant(walk, boundary, boundary + jump, before) : PG_INT64_MAX;
}

bool
ujobs_cron_next(const UjobsCron *cron, const UjobsZone *zone, int64 after, int64 *occurrence)
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
next_until(const UjobsCron *cron, const UjobsZone *zone, int64 after, int64 until, int64 *occurrence)
{
	return ujobs_cron_next(cron, zone, after, occurrence) && *occurrence <= until;
}

/*
 * The next one never comes earlier when the search begins later: so the last
 * one is found by halving.  Between known and bound lies what is not decided:
 * known is an occurrence, and there is none in (bound, until].
 */
bool
ujobs_cron_previous(const UjobsCron *cron, const UjobsZone *zone, int64 until, int64 *occurrence)
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

/* Where clocks have been left alone readings are counted by the day, else one by one. */
int64
ujobs_cron_count(const UjobsCron *cron, const UjobsZone *zone, int64 after, int64 until)
{
	int64		count = 0;
	int64		next;

	while (after < until)
	{
		UjobsSpan	span = ujobs_zone_span(zone, after - SETTLED);

		if (span.until > after + 1)
		{
			int64		end = Min(until, span.until - 1);

			count += ujobs_wall_count(cron, after + 1 + span.offset, end + 1 + span.offset);
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
