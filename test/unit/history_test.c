/*
 * history_test.c: the partitions of the history, by the day.
 *
 * sources: src/core/clock.c
 */
#include "postgres.h"

#include "unit.h"
#include "model/history.h"

/* In place of core/guc.c. */
bool		ujobs_guc_clock_set = true;
TimestampTz ujobs_guc_clock_instant = 0;
int			ujobs_guc_retention = 0;

/* Day by day from 1970-01-01 on, which has partition 0. */
static void
test_days(void)
{
	TimestampTz day = 0;		/* 2000-01-01 */
	int			slot = 10957 % 32;	/* days from 1970 */
	int			wrong = 0;

	for (int i = 0; i < 20000; i++, day += USECS_PER_DAY, slot = (slot + 1) % 32)
	{
		wrong += ujobs_history_slot(day) != slot ||
			ujobs_history_slot(day + USECS_PER_DAY - 1) != slot;
		wrong += ujobs_history_slot(day + unit_random(86400) * USECS_PER_SEC) != slot;
	}
	unit_ok(wrong == 0, "history: each day of 20000 has the partition after the one before");
	unit_ok(ujobs_history_slot(-1) == 13 && ujobs_history_slot(DT_NOBEGIN) == 13,
			"history: before 2000 is 2000");
}

static void
test_farthest(void)
{
	TimestampTz now = INT64CONST(9000) * USECS_PER_DAY + 12345;
	int16		today = ujobs_history_slot(now);
	int			wrong = 0;

	for (int day = 0; day < 100; day++)
	{
		int16		slot = ujobs_history_slot_for(now, now + day * USECS_PER_DAY);

		wrong += slot != (today + Min(day, 30)) % 32;
		wrong += slot == (today + 31) % 32;
	}
	wrong += ujobs_history_slot_for(now, DT_NOEND) != (today + 30) % 32;
	wrong += ujobs_history_slot_for(END_TIMESTAMP - 1, DT_NOEND) < 0;
	unit_ok(wrong == 0,
			"history: no row is more than 30 days ahead, none in yesterday's partition");
}

static void
test_ages(void)
{
	uint32		found = 0;
	int			wrong = 0;

	ujobs_guc_clock_instant = INT64CONST(9000) * USECS_PER_DAY;
	ujobs_guc_retention = 7 * SECS_PER_DAY;
	for (int age = 0; age < UJOBS_HISTORY_SLOTS; age++)
	{
		int16		slot = ujobs_history_slot_of_age(age);

		wrong += slot != ujobs_history_slot(ujobs_guc_clock_instant + (7 - age) * USECS_PER_DAY);
		found |= UINT32_C(1) << slot;
	}
	unit_ok(wrong == 0 && found == PG_UINT32_MAX, "history: by age, each partition once");
}

void
unit_main(void)
{
	test_days();
	test_farthest();
	test_ages();
}
