/*
 * clock.c: real and virtual time.
 */
#include "postgres.h"

#include "common/int.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/timestamp.h"

#include "core/clock.h"
#include "core/guc.h"

static bool real_only = false;

void
ujobs_clock_use_real(void)
{
	real_only = true;
}

bool
ujobs_clock_is_virtual(void)
{
	return !real_only && ujobs_guc_clock_set;
}

TimestampTz
ujobs_clock_now(void)
{
	return ujobs_clock_is_virtual() ? ujobs_guc_clock_instant : GetCurrentTimestamp();
}

int64
ujobs_clock_interval_us(const Interval *interval)
{
	int64		days = (int64) interval->month * DAYS_PER_MONTH + interval->day;
	int64		us;

	if (pg_mul_s64_overflow(days, USECS_PER_DAY, &us) ||
		pg_add_s64_overflow(us, interval->time, &us))
		return days < 0 ? PG_INT64_MIN : PG_INT64_MAX;
	return us;
}

TimestampTz
ujobs_clock_add(TimestampTz t, int64 us)
{
	TimestampTz sum;

	if (TIMESTAMP_NOT_FINITE(t))
		return t;
	if (pg_add_s64_overflow(t, us, &sum) || !IS_VALID_TIMESTAMP(sum))
		return us < 0 ? DT_NOBEGIN : DT_NOEND;
	return sum;
}
