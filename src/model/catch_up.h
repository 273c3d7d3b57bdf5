/*
 * catch_up.h: which of the occurrences that came due fire.  Pure.
 */
#ifndef UJOBS_MODEL_CATCH_UP_H
#define UJOBS_MODEL_CATCH_UP_H

#include "model/cron_next.h"
#include "model/task.h"

typedef struct UjobsCatchUpRule
{
	UjobsCron	cron;
	const UjobsZone *zone;
	UjobsCatchUp policy;
	int32		most;			/* for run-all */
} UjobsCatchUpRule;

/* Those that fire, the earliest first. */
typedef struct UjobsDue
{
	int			n;
	int64	   *occurrence;		/* seconds since 1970, palloc'd */
	int64		dropped;		/* more than run-all may fire */
} UjobsDue;

/*
 * Decides about the occurrences in (watermark, now], both in seconds since
 * 1970.  Costs the same after a minute and after years, but for run-all,
 * which is asked for its newest ones.
 */
extern void ujobs_catch_up_decide(const UjobsCatchUpRule *rule, int64 watermark, int64 now, UjobsDue *due);

#endif							/* UJOBS_MODEL_CATCH_UP_H */
