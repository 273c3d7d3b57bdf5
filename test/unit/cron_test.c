/*
 * cron_test.c: the calendar against a slow one.
 *
 * Random expressions in real and invented zones.  The slow calendar looks at
 * every second or minute of a stretch of time and at nothing else: which
 * instants match, which readings the jumps moved, which came twice.  Its
 * answer must be what ujobs_cron_occurrence_next walks through, what _previous finds
 * backwards and what _count counts.
 *
 * UJOBS_UNIT_ROUNDS and UJOBS_UNIT_SEED change how many and which.
 *
 * sources: src/model/cron_*.c
 */
#include "postgres.h"

#include <time.h>

#include "unit.h"
#include "zone_table.h"
#include "model/cron_occurrence.h"

#define MAX_FOUND 200000
#define DAY 86400

/* ---- zones ---- */

/* What the C library makes of the same database. */
static void
real_zone(UjobsZoneTable *zone, const char *name)
{
	const time_t begin = 0;
	const time_t end = (time_t) 90 * 365 * DAY;
	struct tm	tm;

	setenv("TZ", name, 1);
	tzset();
	localtime_r(&begin, &tm);
	zone->count = 0;
	zone->first_offset = tm.tm_gmtoff;
	for (time_t t = begin; t < end && zone->count < ZONE_MAX_CHANGES; t += DAY / 2)
	{
		long		offset = tm.tm_gmtoff;
		time_t		low = t;
		time_t		high = t + DAY / 2;

		localtime_r(&high, &tm);
		if (tm.tm_gmtoff == offset)
			continue;
		while (high - low > 1)
		{
			time_t		middle = low + (high - low) / 2;
			struct tm	there;

			localtime_r(&middle, &there);
			if (there.tm_gmtoff == offset)
				low = middle;
			else
				high = middle;
		}
		zone->change[zone->count].at = high;
		zone->change[zone->count++].offset = tm.tm_gmtoff;
	}
}

/* Jumps of any length up to a day, at least eight days apart. */
static void
invented_zone(UjobsZoneTable *zone)
{
	static const int32 steps[] = {900, 1800, 3600, 7200, 86400, 20 * 60 + 7};
	int64		at = 0;
	int32		offset = ((int32) unit_random(24 * 4) - 48) * 900;

	zone->first_offset = offset;
	zone->count = 50;
	for (int i = 0; i < zone->count; i++)
	{
		int32		step = steps[unit_random(lengthof(steps))];

		at += 8 * DAY + unit_random(90 * DAY);
		if (unit_random(3) != 0)
			at -= at % 900;
		offset += (offset > 0) ? -step : step;
		zone->change[i].at = at;
		zone->change[i].offset = offset;
	}
}

/* ---- expressions ---- */

static int
random_value(char *out, int low, int high)
{
	return sprintf(out, "%d", low + (int) unit_random(high - low + 1));
}

static char *
random_item(char *out, int low, int high)
{
	switch (unit_random(5))
	{
		case 0:
			return out + sprintf(out, "*/%d", 1 + (int) unit_random(high - low));
		case 1:
			out += random_value(out, low, high);
			*out++ = '-';
			return out + random_value(out, low, high);
		case 2:
			out += random_value(out, low, high);
			return out + sprintf(out, "/%d", 1 + (int) unit_random(high - low));
		default:
			return out + random_value(out, low, high);
	}
}

static char *
random_field(char *out, int low, int high, int odds_of_star)
{
	int			items = 1 + (int) unit_random(3);

	if ((int) unit_random(100) < odds_of_star)
		return out + sprintf(out, "* ");
	while (items-- > 0)
	{
		out = random_item(out, low, high);
		*out++ = items > 0 ? ',' : ' ';
	}
	return out;
}

static void
random_expression(char *out)
{
	if (unit_random(4) == 0)
		out = random_field(out, 0, 59, 10);
	out = random_field(out, 0, 59, 30);
	out = random_field(out, 0, 23, 50);
	if (unit_random(6) == 0)
		out += sprintf(out, unit_random(2) ? "L " : "L-%d ", 1 + (int) unit_random(4));
	else
		out = random_field(out, 1, 31, 70);
	out = random_field(out, 1, 12, 80);
	if (unit_random(6) == 0)
		out += sprintf(out, unit_random(2) ? "%dL" : "%d#%d", (int) unit_random(8),
					   1 + (int) unit_random(4));
	else
		out = random_field(out, 0, 7, 70);
	*out = '\0';
}

/* ---- the slow calendar ---- */

static bool
day_matches(const UjobsCron *cron, const struct tm *tm)
{
	static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int			year = tm->tm_year + 1900;
	int			length = lengths[tm->tm_mon] + (tm->tm_mon == 1 &&
												(year % 4 == 0 &&
												 (year % 100 != 0 || year % 400 == 0)));
	bool		by_date = (cron->day & (1u << tm->tm_mday)) ||
		(cron->day_from_last & (1u << (length - tm->tm_mday)));
	bool		by_weekday = (cron->weekday & (1 << tm->tm_wday)) ||
		(cron->weekday_nth[tm->tm_wday] & (1 << ((tm->tm_mday - 1) / 7 + 1))) ||
		((cron->weekday_last & (1 << tm->tm_wday)) && tm->tm_mday + 7 > length);

	if (cron->day_any)
		return cron->weekday_any || by_weekday;
	return by_date || (!cron->weekday_any && by_weekday);
}

static bool
reading_matches(const UjobsCron *cron, int64 reading)
{
	time_t		t = reading;
	struct tm	tm;

	gmtime_r(&t, &tm);
	return (cron->second & (UINT64CONST(1) << tm.tm_sec)) &&
		(cron->minute & (UINT64CONST(1) << tm.tm_min)) &&
		(cron->hour & (1u << tm.tm_hour)) && (cron->month & (1u << (tm.tm_mon + 1))) &&
			day_matches(cron, &tm);
}

/* Did clocks show this reading before the instant? */
static bool
shown_before(const UjobsZoneTable *zone, int64 reading, int64 instant)
{
	for (int i = -1; i < zone->count; i++)
	{
		int64		begin = i < 0 ? PG_INT64_MIN / 2 : zone->change[i].at;
		int64		end = i + 1 < zone->count ? zone->change[i + 1].at : PG_INT64_MAX / 2;
		int64		then = reading - (i < 0 ? zone->first_offset : zone->change[i].offset);

		if (then >= begin && then < end && then < instant)
			return true;
	}
	return false;
}

static int
by_instant(const void *a, const void *b)
{
	int64		x = *(const int64 *) a;
	int64		y = *(const int64 *) b;

	return (x > y) - (x < y);
}

/* All occurrences in (from, until], in order; -1 when there are too many. */
static int
slowly(const UjobsCron *cron, const UjobsZoneTable *zone, int64 from, int64 until, int64 *found)
{
	bool		named = cron->hour != (1 << 24) - 1;
	int			n = 0;
	int			unique = 0;

	for (int64 t = from + 1; t <= until && n < MAX_FOUND; t++)
	{
		int64		reading = t + ujobs_zone_table_span(zone, t).offset;

		if (reading_matches(cron, reading) && !(named && shown_before(zone, reading, t)))
			found[n++] = t;
	}
	for (int i = 0; i < zone->count; i++)
	{
		int64		at = zone->change[i].at;
		int32		before = i == 0 ? zone->first_offset : zone->change[i - 1].offset;

		for (int64 t = Max(at, from + 1); t < at + zone->change[i].offset - before && t <= until &&
			 n < MAX_FOUND; t++)
		{
			if (reading_matches(cron, t + before) && !(named && shown_before(zone, t + before, at)))
				found[n++] = t;
		}
	}
	if (n == MAX_FOUND)
		return -1;
	qsort(found, n, sizeof(int64), by_instant);
	for (int i = 0; i < n; i++)
	{
		if (unique == 0 || found[unique - 1] != found[i])
			found[unique++] = found[i];
	}
	return unique;
}

/* ---- the comparison ---- */

/* NULL: they agree. */
static const char *
compare(const UjobsCron *cron, const UjobsZoneTable *table, int64 from, int64 until)
{
	static int64 found[MAX_FOUND];
	const UjobsZone *zone = (const UjobsZone *) table;
	int			n = slowly(cron, table, from, until, found);
	int64		t = from;
	int64		next;
	int64		previous;

	if (n < 0)
		return NULL;
	for (int i = 0; i < n; i++)
	{
		if (!ujobs_cron_occurrence_next(cron, zone, t, &next) || next != found[i])
			return "next is another";
		if (i % 97 == 0 && (!ujobs_cron_occurrence_previous(cron, zone, next, &previous) ||
							previous != next))
			return "previous(next) is not it";
		if (i > 0 && i % 89 == 0 &&
			(!ujobs_cron_occurrence_previous(cron, zone, next - 1, &previous) ||
			 previous != found[i - 1]))
			return "previous is not the one before";
		t = next;
	}
	if (ujobs_cron_occurrence_next(cron, zone, t, &next) && next <= until)
		return "next finds too many";
	if (ujobs_cron_occurrence_count(cron, zone, from, until) != n)
		return "count is another";
	return NULL;
}

static bool
try_one(const UjobsZoneTable *zone, const char *name)
{
	char		expression[UJOBS_CRON_MAX_BYTES * 2];
	UjobsCron	cron;
	UjobsCronError error;
	int64		from;
	const char *wrong;

	random_expression(expression);
	if (!ujobs_cron_parse(expression, strlen(expression), &cron, &error))
		return strlen(expression) > UJOBS_CRON_MAX_BYTES ||
			strstr(error.detail, "can never fire") != NULL;
	from = zone->count > 0 && unit_random(5) != 0 ?
			   zone->change[unit_random(zone->count)].at - unit_random(3 * DAY) :
			   (int64) unit_random(2000000000);
	wrong = compare(&cron, zone, from, from + 2 * DAY + unit_random(4 * DAY));
	if (wrong != NULL)
		unit_note("%s: \"%s\" in %s after " INT64_FORMAT, wrong, expression, name, from);
	return wrong == NULL;
}

void
unit_main(void)
{
	static const char *const names[] = {
		"UTC", "America/New_York", "Europe/Berlin", "Europe/Dublin", "Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo",
		"Africa/Casablanca", "Antarctica/Troll", "Asia/Kathmandu", "Asia/Gaza", "Pacific/Kwajalein", "America/Caracas"
	};
	static UjobsZoneTable zone;
	int			rounds = getenv("UJOBS_UNIT_ROUNDS") ? atoi(getenv("UJOBS_UNIT_ROUNDS")) : 4;

	if (getenv("UJOBS_UNIT_SEED") != NULL)
		unit_random_seed(strtoull(getenv("UJOBS_UNIT_SEED"), NULL, 10));
	for (int i = 0; i <= lengthof(names); i++)
	{
		const char *name = i < lengthof(names) ? names[i] : "zones made up";
		int			wrong = 0;

		if (i < lengthof(names))
			real_zone(&zone, name);
		else
			rounds *= 5;
		for (int round = 0; round < rounds; round++)
		{
			if (i == lengthof(names))
				invented_zone(&zone);
			wrong += !try_one(&zone, name);
		}
		unit_ok(wrong == 0, "cron in %s: a slow calendar agrees with %d random expressions", name,
				rounds);
	}
}
