/*
 * ring.c: the history as a ring of days.
 */
#include "postgres.h"

#include "core/clock.h"
#include "core/guc.h"
#include "model/ring.h"

#define RING_DAYS 30			/* a row sits at most so far ahead; today's partition and yesterday's are being emptied */

int16
ujobs_history_slot(TimestampTz expires_at)
{
	int64		days = expires_at / USECS_PER_DAY;

	if (expires_at < 0)
		days = 0;
	/* From 2000-01-01 (PostgreSQL's epoch) to 1970-01-01. */
	days += POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE;
	return (int16) (days % UJOBS_HISTORY_SLOTS);
}

int16
ujobs_history_slot_for(TimestampTz now, TimestampTz expires_at)
{
	TimestampTz farthest = ujobs_clock_add(now, RING_DAYS * USECS_PER_DAY);

	return ujobs_history_slot(Min(expires_at, farthest));
}

int16
ujobs_history_slot_of_age(int age)
{
	int64		retention = (int64) ujobs_guc_retention * USECS_PER_SEC;
	int			newest = ujobs_history_slot(ujobs_clock_add(ujobs_clock_now(), retention));

	return (int16) ((newest - age + UJOBS_HISTORY_SLOTS) % UJOBS_HISTORY_SLOTS);
}
