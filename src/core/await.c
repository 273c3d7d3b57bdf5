/*
 * await.c: wait_for_job's sleep.
 *
 * The waiter is registered before it looks for the first time: a job that
 * ends after the look sets its latch.  An error, a cancel and the end of the
 * session all take the registration back, or the list would fill up with the
 * latches of strangers.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/timestamp.h"

#include "core/await.h"
#include "core/compat.h"
#include "core/engine.h"
#include "core/shmem.h"
#include "core/wakeup.h"
#include "core/guc.h"

#define LOOK_MS 1000			/* a lost wake-up costs this much at most */
#define POLL_MS 50				/* the list of waiters is full */
#define ENGINE_PATIENCE_US (INT64CONST(3) * USECS_PER_SEC)
#define ENGINE_LOOK_MS 10

static void
unwait(int code, Datum index)
{
	ujobs_wakeup_unwait(DatumGetInt32(index));
}

static void
sleep_until(TimestampTz deadline, long longest_ms)
{
	long		ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);

	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 Min(ms, longest_ms), UJOBS_COMPAT_WAIT_EVENT("UjobsWaitForJob"));
	CHECK_FOR_INTERRUPTS();
}

static bool
await(TimestampTz deadline, long longest_ms, UjobsAwaitLook look, void *arg)
{
	for (;;)
	{
		ResetLatch(MyLatch);
		if (look(arg))
			return true;
		if (GetCurrentTimestamp() >= deadline)
			return false;
		sleep_until(deadline, longest_ms);
	}
}

bool
ujobs_await_job(int64 job_id, TimestampTz deadline, UjobsAwaitLook look, void *arg)
{
	int			index = ujobs_wakeup_wait(job_id);
	bool		ended;

	if (index < 0)
		return await(deadline, POLL_MS, look, arg);
	PG_ENSURE_ERROR_CLEANUP(unwait, Int32GetDatum(index));
	{
		ended = await(deadline, LOOK_MS, look, arg);
	}
	PG_END_ENSURE_ERROR_CLEANUP(unwait, Int32GetDatum(index));
	ujobs_wakeup_unwait(index);
	return ended;
}

bool
ujobs_await_engine(void)
{
	TimestampTz deadline = GetCurrentTimestamp() + ENGINE_PATIENCE_US;

	while (!ujobs_engine_serves())
	{
		if (!ujobs_guc_serves_this_database() || !ujobs_engine_is_coming() ||
			GetCurrentTimestamp() >= deadline)
			return false;
		ResetLatch(MyLatch);
		sleep_until(deadline, ENGINE_LOOK_MS);
	}
	return true;
}
