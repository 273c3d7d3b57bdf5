/*
 * history.h: which partition of the history a row belongs to.
 *
 * The partitions are used in turn, one for each day of expiry, and the oldest
 * is emptied as a whole.
 */
#ifndef UJOBS_MODEL_HISTORY_H
#define UJOBS_MODEL_HISTORY_H

#include "postgres.h"

#include "core/clock.h"
#include "core/guc.h"

#define UJOBS_HISTORY_SLOTS 32

/* A row is at most so many days ahead: the partitions of today and yesterday are being emptied. */
#define UJOBS_HISTORY_DAYS (UJOBS_HISTORY_SLOTS - 2)

/* The partition (0..31) of a row that expires then: its day, counted from 1970. */
static inline int16
ujobs_history_slot(TimestampTz expires_at)
{
	int64		days = expires_at < 0 ? 0 : expires_at / USECS_PER_DAY;

	/* From 2000-01-01 (PostgreSQL's epoch) to 1970-01-01. */
	return (int16) ((days + POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) % UJOBS_HISTORY_SLOTS);
}

/*
 * The partition for a row that is written now.  One that is kept for longer
 * goes to the partition of the last day there is, and is renewed when that
 * partition is emptied.
 */
static inline int16
ujobs_history_slot_for(TimestampTz now, TimestampTz expires_at)
{
	TimestampTz farthest = ujobs_clock_add(now, UJOBS_HISTORY_DAYS * USECS_PER_DAY);

	return ujobs_history_slot(Min(expires_at, farthest));
}

/* Partitions by how many days ago their rows finished, with the usual retention: age 0 is now. */
static inline int16
ujobs_history_slot_of_age(int age)
{
	int64		retention = (int64) ujobs_guc_retention * USECS_PER_SEC;
	int			newest = ujobs_history_slot(ujobs_clock_add(ujobs_clock_now(), retention));

	Assert(age >= 0 && age < UJOBS_HISTORY_SLOTS);
	return (int16) ((newest - age + UJOBS_HISTORY_SLOTS) % UJOBS_HISTORY_SLOTS);
}

#endif							/* UJOBS_MODEL_HISTORY_H */
