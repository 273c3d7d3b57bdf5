/*
 * cron_describe.c: says when, on which days, in which months, in which zone.
 *
 * It reads the sets and not the text, so expressions that mean the same are
 * described alike.
 */
#include "postgres.h"

#include "port/pg_bitutils.h"

#include "model/cron_describe.h"

#define MAX_TIMES 6				/* so many clock times are listed one by one */
#define ALL_60 ((UINT64CONST(1) << 60) - 1)
#define ALL_24 ((UINT64CONST(1) << 24) - 1)
#define ALL_MONTHS 0x1ffe

typedef struct Text
{
	char	   *at;
	int			length;
} Text;

/* What n is called in the sentence. */
typedef void (*Say) (Text *text, int n);

static void append(Text *text, const char *format,...) pg_attribute_printf(2, 3);

static void
append(Text *text, const char *format,...)
{
	va_list		args;
	int			left = UJOBS_CRON_SENTENCE - text->length;
	int			needed;

	va_start(args, format);
	needed = vsnprintf(text->at + text->length, left, format, args);
	va_end(args);
	text->length += Min(Max(needed, 0), left - 1);
}

/* ---- sets ---- */

static int
lowest(uint64 set)
{
	return set ? pg_rightmost_one_pos64(set) : -1;
}

static int
highest(uint64 set)
{
	return set ? pg_leftmost_one_pos64(set) : -1;
}

/* The step n >= 2 of a set that is 0, n, 2n, ... below the period, which n divides; else 0. */
static int
step_in(uint64 set, int period)
{
	int			step = lowest(set & ~UINT64CONST(1));
	uint64		regular = 0;

	if (step < 2 || period % step != 0)
		return 0;
	for (int n = 0; n < period; n += step)
		regular |= UINT64CONST(1) << n;
	return set == regular ? step : 0;
}

static int
even_step(uint64 set)
{
	return step_in(set, 60);
}

/* "1, 2 and 5", "9 through 17": runs of three and more are drawn together. */
static void
append_set(Text *text, uint64 set, Say say)
{
	bool		first = true;

	while (set != 0)
	{
		int			from = lowest(set);
		int			to = from;

		while (to < 63 && (set & (UINT64CONST(1) << (to + 1))))
			to++;
		if (to < from + 2)
			to = from;
		set &= to == 63 ? 0 : PG_UINT64_MAX << (to + 1);
		append(text, "%s", first ? "" : set != 0 ? ", " : " and ");
		say(text, from);
		if (to > from)
		{
			append(text, " through ");
			say(text, to);
		}
		first = false;
	}
}

static void
say_number(Text *text, int n)
{
	append(text, "%d", n);
}

static void
say_hour(Text *text, int n)
{
	append(text, "%02d:00", n);
}

static void
say_month(Text *text, int n)
{
	static const char *const names[] = {
		"January", "February", "March", "April", "May", "June",
		"July", "August", "September", "October", "November", "December"
	};

	append(text, "%s", names[n - 1]);
}

static void
say_weekday(Text *text, int n)
{
	static const char *const names[] = {
		"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"
	};

	append(text, "%s", names[n % 7]);
}

/* ---- the time of day ---- */

/* At most MAX_TIMES clock times: all of them. */
static bool
describe_times(Text *text, const UjobsCron *cron)
{
	int			left = pg_popcount64(cron->hour) * pg_popcount64(cron->minute) *
		pg_popcount64(cron->second);
	bool		first = true;

	if (left > MAX_TIMES)
		return false;
	append(text, "At ");
	for (int at = 0; at < 86400; at++)
	{
		int			hour = at / 3600;
		int			minute = at / 60 % 60;
		int			second = at % 60;

		if (!(cron->hour & (1u << hour)) || !(cron->minute & (UINT64CONST(1) << minute)) ||
			!(cron->second & (UINT64CONST(1) << second)))
			continue;
		append(text, "%s%02d:%02d", first ? "" : --left > 1 ? ", " : " and ", hour, minute);
		if (cron->second != 1)
			append(text, ":%02d", second);
		first = false;
	}
	return true;
}

/* "Every second", "Every 20 seconds", "At second 5 and 35"; lower case after another part. */
static void
describe_unit(Text *text, uint64 set, const char *unit, bool begins)
{
	const char *every = begins ? "Every" : "every";
	int			step = even_step(set);

	if (set == ALL_60)
		append(text, "%s %s", every, unit);
	else if (step != 0)
		append(text, "%s %d %ss", every, step, unit);
	else
	{
		append(text, "%s %s ", begins ? "At" : "at", unit);
		append_set(text, set, say_number);
	}
}

static void
describe_hours(Text *text, const UjobsCron *cron, bool continuous)
{
	if (cron->hour == ALL_24)
		append(text, "%s", continuous ? "" : " of every hour");
	else if (pg_popcount64(cron->hour) == highest(cron->hour) - lowest(cron->hour) + 1)
		append(text, " from %02d:00 to %02d:59", lowest(cron->hour), highest(cron->hour));
	else if (step_in(cron->hour, 24) != 0)
		append(text, " of every %d hours", step_in(cron->hour, 24));
	else
	{
		append(text, " in the hours that begin at ");
		append_set(text, cron->hour, say_hour);
	}
}

static void
describe_time(Text *text, const UjobsCron *cron)
{
	bool		continuous = cron->minute == ALL_60 || even_step(cron->minute) != 0;
	bool		begins = true;

	if (describe_times(text, cron))
		return;
	if (cron->second != 1)
	{
		describe_unit(text, cron->second, "second", true);
		begins = false;
		if (cron->minute == ALL_60)
		{
			if (cron->second != ALL_60 && even_step(cron->second) == 0)
				append(text, " of every minute");
			describe_hours(text, cron, true);
			return;
		}
		append(text, " of ");
		if (!continuous)
		{
			append(text, "minute ");
			append_set(text, cron->minute, say_number);
			describe_hours(text, cron, false);
			return;
		}
	}
	describe_unit(text, cron->minute, "minute", begins);
	describe_hours(text, cron, continuous);
}

/* ---- the day ---- */

static void
describe_days_of_month(Text *text, const UjobsCron *cron)
{
	const char *and = "";

	append(text, " on ");
	if (cron->day != 0)
	{
		append(text, "day ");
		append_set(text, cron->day, say_number);
		append(text, " of the month");
		and = " and on ";
	}
	for (int before = 0; before <= 30; before++)
	{
		if (!(cron->day_from_last & (1u << before)))
			continue;
		if (before == 0)
			append(text, "%sthe last day of the month", and);
		else
			append(text, "%sthe day %d day%s before the last of the month", and, before,
				   before == 1 ? "" : "s");
		and = " and on ";
	}
}

static void
describe_weekdays(Text *text, const UjobsCron *cron)
{
	static const char *const nth[] = {NULL, "first", "second", "third", "fourth", "fifth"};
	const char *and = "";

	append(text, " on ");
	if (cron->weekday != 0)
	{
		if (cron->weekday == 0x7f)
			append(text, "every day of the week");
		else if (cron->weekday == 0x41)
			append(text, "Saturday and Sunday");
		else
			append_set(text, cron->weekday, say_weekday);
		and = " and on ";
	}
	for (int weekday = 0; weekday < 7; weekday++)
	{
		for (int n = 1; n <= 5; n++)
		{
			if (!(cron->weekday_nth[weekday] & (1 << n)))
				continue;
			append(text, "%sthe %s ", and, nth[n]);
			say_weekday(text, weekday);
			append(text, " of the month");
			and = " and on ";
		}
		if (cron->weekday_last & (1 << weekday))
		{
			append(text, "%sthe last ", and);
			say_weekday(text, weekday);
			append(text, " of the month");
			and = " and on ";
		}
	}
}

static void
describe_day(Text *text, const UjobsCron *cron)
{
	if (cron->day_any && cron->weekday_any)
		append(text, "%s", cron->month == ALL_MONTHS ? " every day" : " on every day");
	if (!cron->day_any)
		describe_days_of_month(text, cron);
	if (ujobs_cron_either_day(cron))
		append(text, ", and also");
	if (!cron->weekday_any)
		describe_weekdays(text, cron);
}

void
ujobs_cron_describe(const UjobsCron *cron, const char *zone, char *sentence)
{
	Text		text = {sentence, 0};

	sentence[0] = '\0';
	describe_time(&text, cron);
	describe_day(&text, cron);
	if (cron->month != ALL_MONTHS)
	{
		append(&text, " %s ", ujobs_cron_either_day(cron) ? "(both only in" : "in");
		append_set(&text, cron->month, say_month);
		append(&text, "%s", ujobs_cron_either_day(cron) ? ")" : "");
	}
	append(&text, ", in time zone %s.", zone);
}
