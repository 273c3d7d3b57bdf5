/*
 * session_stats.c: wait events, activity, memory.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "utils/backend_status.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "core/compat.h"
#include "core/session_stats.h"

void
ujobs_session_stats_wait(long timeout_ms)
{
	static uint32 event = 0;
	int			wake = WL_LATCH_SET | WL_EXIT_ON_PM_DEATH;

	if (event == 0)
		event = UJOBS_COMPAT_WAIT_EVENT("UjobsMain");
	if (timeout_ms >= 0)
		wake |= WL_TIMEOUT;
	(void) WaitLatch(MyLatch, wake, timeout_ms, event);
	ResetLatch(MyLatch);
}

void
ujobs_session_stats_activity(const char *text)
{
	pgstat_report_activity(text ? STATE_RUNNING : STATE_IDLE, text);
}

void
ujobs_session_stats_memory(TimestampTz now, pg_atomic_uint64 *bytes)
{
	static TimestampTz told_at = 0;

	if (now - told_at < USECS_PER_SEC)
		return;
	told_at = now;
	pg_atomic_write_u64(bytes, MemoryContextMemAllocated(TopMemoryContext, true));
}

void
ujobs_session_stats_report(bool force)
{
	(void) pgstat_report_stat(force);
}
