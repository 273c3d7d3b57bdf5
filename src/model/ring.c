/*
 * ring.c: the history as a ring of days.
 */
#include "postgres.h"

#include "model/ring.h"

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
