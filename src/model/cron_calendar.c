/*
 * cron_calendar.c: months, days and times of day against the sets of a cron expression.
 *
 * A search skips whole months, then days, hours and minutes, so that a date
 * that comes once in eight years costs a hundred small steps.
 */
#include "postgres.h"

#include "datatype/timestamp.h"
#include "port/pg_bitutils.h"

#include "model/cron_calendar.h"

#define NONE (-1)

/* ---- the calendar ---- */

typedef struct Month
{
	int64		year;
	int			month;			/* 1..12 */
	int64		first;			/* its first day, days since 1970-01-01 */
	int			days;
} Month;

static int64
floor_divide(int64 a, int64 b)
{
	return a / b - (a % b < 0);
}

/* The first of a month in days since 1970-01-01; years begin in March, so the leap day is last. */
static int64
first_of(int64 year, int month)
{
	int64		y = year - (month <= 2);
	int64		era = floor_divide(y, 400);
	int64		year_of_era = y - era * 400;
	int64		day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5;

	return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
		day_of_year - 719468;
}

static Month
month_at(int64 year, int month)
{
	Month		found = {year, month, first_of(year, month)};

	found.days = (month == 12 ? first_of(year + 1, 1) : first_of(year, month + 1)) - found.first;
	return found;
}

static Month
month_of(int64 day)
{
	int64		z = day + 719468;
	int64		era = floor_divide(z, 146097);
	int64		day_of_era = z - era * 146097;
	int64		leap_days = day_of_era / 1460 - day_of_era / 36524 + day_of_era / 146096;
	int64		year_of_era = (day_of_era - leap_days) / 365;
	int64		day_of_year = day_of_era - 365 * year_of_era - year_of_era / 4 + year_of_era / 100;
	int			month = (5 * day_of_year + 2) / 153 + 3;
	int64		year = year_of_era + era * 400;

	return month > 12 ? month_at(year + 1, month - 12) : month_at(year, month);
}

static Month
month_after(const Month *month)
{
	if (month->month == 12)
		return month_at(month->year + 1, 1);
	return month_at(month->year, month->month + 1);
}

/* ---- days ---- */

static uint32
days_by_date(const UjobsCron *cron, const Month *month)
{
	uint32		days = cron->day;

	for (int before = 0; before < month->days; before++)
	{
		if (cron->day_from_last & (1u << before))
			days |= 1u << (month->days - before);
	}
	return days;
}

static uint32
days_by_weekday(const UjobsCron *cron, const Month *month)
{
	uint32		days = 0;
	int			weekday = ((month->first + 4) % 7 + 7) % 7;	/* 1970-01-01 was a Thursday */

	for (int day = 1; day <= month->days; day++, weekday = (weekday + 1) % 7)
	{
		if ((cron->weekday & (1 << weekday)) ||
			(cron->weekday_nth[weekday] & (1 << ((day + 6) / 7))) ||
			(day + 7 > month->days && (cron->weekday_last & (1 << weekday))))
			days |= 1u << day;
	}
	return days;
}

/* The days of the month that match: bits 1..31. */
static uint32
days_of(const UjobsCron *cron, const Month *month)
{
	uint32		all = ((UINT64CONST(1) << month->days) - 1) << 1;
	uint32		days = 0;

	if (!(cron->month & (1u << month->month)))
		return 0;
	if (cron->day_any && cron->weekday_any)
		return all;
	if (!cron->day_any)
		days |= days_by_date(cron, month);
	if (!cron->weekday_any)
		days |= days_by_weekday(cron, month);
	return days & all;
}

/* ---- times of day ---- */

/* The least member from n on, or NONE. */
static int
member_from(uint64 set, int n)
{
	set &= n < 64 ? PG_UINT64_MAX << n : 0;
	return set ? pg_rightmost_one_pos64(set) : NONE;
}

static int
first_of_hour(const UjobsCron *cron)
{
	return member_from(cron->minute, 0) * SECS_PER_MINUTE + member_from(cron->second, 0);
}

/* The least matching second of the hour from this one on, or NONE. */
static int
next_in_hour(const UjobsCron *cron, int from)
{
	int			minute = from / SECS_PER_MINUTE;
	int			second = NONE;

	if (cron->minute & (UINT64CONST(1) << minute))
		second = member_from(cron->second, from % SECS_PER_MINUTE);
	if (second == NONE)
	{
		minute = member_from(cron->minute, minute + 1);
		second = member_from(cron->second, 0);
	}
	return minute == NONE ? NONE : minute * SECS_PER_MINUTE + second;
}

/* The least matching second of the day from this one on, or NONE. */
static int
next_in_day(const UjobsCron *cron, int from)
{
	int			hour = from / SECS_PER_HOUR;
	int			within = NONE;

	if (cron->hour & (1u << hour))
		within = next_in_hour(cron, from % SECS_PER_HOUR);
	if (within == NONE)
	{
		hour = member_from(cron->hour, hour + 1);
		within = first_of_hour(cron);
	}
	return hour == NONE ? NONE : hour * SECS_PER_HOUR + within;
}

/* How many members are less than n. */
static int64
members_below(uint64 set, int n)
{
	return pg_popcount64(set & ((UINT64CONST(1) << n) - 1));
}

/* How many matching seconds of a day come before this one; until may be the day's end. */
static int64
count_in_day(const UjobsCron *cron, int until)
{
	int			hour = until / SECS_PER_HOUR;
	int			minute = until % SECS_PER_HOUR / SECS_PER_MINUTE;
	int64		per_minute = pg_popcount64(cron->second);
	int64		per_hour = pg_popcount64(cron->minute) * per_minute;
	int64		count = members_below(cron->hour, hour) * per_hour;

	if (hour == HOURS_PER_DAY || !(cron->hour & (1u << hour)))
		return count;
	count += members_below(cron->minute, minute) * per_minute;
	if (cron->minute & (UINT64CONST(1) << minute))
		count += members_below(cron->second, until % SECS_PER_MINUTE);
	return count;
}

/* ---- both ---- */

int64
ujobs_cron_calendar_next(const UjobsCron *cron, int64 from, int64 until)
{
	int64		day = floor_divide(from, SECS_PER_DAY);
	int			second = from - day * SECS_PER_DAY;

	for (Month month = month_of(day); month.first * SECS_PER_DAY < until;
		 month = month_after(&month))
	{
		uint32		days = days_of(cron, &month);
		int			at = member_from(days, day > month.first ? day - month.first + 1 : 1);

		for (; at != NONE; at = member_from(days, at + 1))
		{
			int64		found = month.first + at - 1;
			int			time = next_in_day(cron, found == day ? second : 0);

			if (time != NONE)
			{
				int64		local = found * SECS_PER_DAY + time;

				return local < until ? local : UJOBS_CRON_CALENDAR_NONE;
			}
		}
	}
	return UJOBS_CRON_CALENDAR_NONE;
}

int64
ujobs_cron_calendar_count(const UjobsCron *cron, int64 from, int64 until)
{
	int64		first = floor_divide(from, SECS_PER_DAY);
	int64		last = floor_divide(until, SECS_PER_DAY);
	int64		per_day = count_in_day(cron, SECS_PER_DAY);
	int64		count = 0;

	if (until <= from)
		return 0;
	for (Month month = month_of(first); month.first <= last; month = month_after(&month))
	{
		uint32		days = days_of(cron, &month);

		for (int at = member_from(days, 1); at != NONE; at = member_from(days, at + 1))
		{
			int64		day = month.first + at - 1;

			if (day < first || day > last)
				continue;
			count += day == last ? count_in_day(cron, until - last * SECS_PER_DAY) : per_day;
			if (day == first)
				count -= count_in_day(cron, from - first * SECS_PER_DAY);
		}
	}
	return count;
}
