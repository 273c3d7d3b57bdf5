/*
 * catch_up.c: one policy per task for the time that nobody was there.
 */
#include "postgres.h"

#include "model/catch_up.h"

static void
one(UjobsDue *due, int64 occurrence)
{
	due->n = 1;
	due->occurrence = palloc(sizeof(int64));
	due->occurrence[0] = occurrence;
}

/* The newest of them, found backwards. */
static void
newest(const UjobsCatchUpRule *rule, int64 watermark, int64 now, UjobsDue *due)
{
	int64		all = ujobs_cron_count(&rule->cron, rule->zone, watermark, now);
	int64		until = now;

	due->n = (int) Min(all, rule->most);
	due->dropped = all - due->n;
	due->occurrence = MemoryContextAllocHuge(CurrentMemoryContext, Max(due->n, 1) * sizeof(int64));
	for (int i = due->n - 1; i >= 0; i--)
	{
		if (!ujobs_cron_previous(&rule->cron, rule->zone, until, &due->occurrence[i]))
			due->occurrence[i] = until;
		until = due->occurrence[i] - 1;
	}
}

void
ujobs_catch_up_decide(const UjobsCatchUpRule *rule, int64 watermark, int64 now, UjobsDue *due)
{
	int64		first;
	int64		second;
	int64		last;

	memset(due, 0, sizeof(*due));
	if (!ujobs_cron_next(&rule->cron, rule->zone, watermark, &first) || first > now)
		return;
	if (rule->policy == UJOBS_CATCH_UP_RUN_ONCE ||
		!ujobs_cron_next(&rule->cron, rule->zone, first, &second) || second > now)
		one(due, first);
	else if (rule->policy == UJOBS_CATCH_UP_RUN_ALL)
		newest(rule, watermark, now, due);
	else if (ujobs_cron_previous(&rule->cron, rule->zone, now, &last))
		one(due, last);
}
