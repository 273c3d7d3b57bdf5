/*
 * rate.c: starts within a sliding window.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "core/clock.h"
#include "worker/dispatch/rate.h"

static inline UjobsRateMark *
mark_at(const UjobsRate *rate, int i)
{
	return &rate->mark[(rate->head + i) % rate->capacity];
}

static void
drop_past(UjobsRate *rate, const UjobsRateLimit *limit, TimestampTz now)
{
	while (rate->n > 0 && mark_at(rate, 0)->last <= now - limit->window)
	{
		rate->started -= mark_at(rate, 0)->n;
		rate->head = (rate->head + 1) % rate->capacity;
		rate->n--;
	}
}

bool
ujobs_rate_allows(UjobsRate *rate, const UjobsRateLimit *limit, TimestampTz now)
{
	if (limit->starts == 0)
		return true;
	drop_past(rate, limit, now);
	return rate->started + rate->pending < limit->starts;
}

static void
grow(UjobsRate *rate, MemoryContext context)
{
	int			capacity = rate->capacity == 0 ? 8 : 2 * rate->capacity;
	UjobsRateMark *mark = MemoryContextAlloc(context, capacity * sizeof(UjobsRateMark));

	for (int i = 0; i < rate->n; i++)
		mark[i] = *mark_at(rate, i);
	if (rate->mark != NULL)
		pfree(rate->mark);
	rate->mark = mark;
	rate->capacity = capacity;
	rate->head = 0;
}

void
ujobs_rate_start(UjobsRate *rate, const UjobsRateLimit *limit, TimestampTz at,
				 MemoryContext context)
{
	UjobsRateMark *last = rate->n > 0 ? mark_at(rate, rate->n - 1) : NULL;

	/* Executors' reports come in an order of their own; later is on the safe side. */
	if (last != NULL)
		at = Max(at, last->last);
	rate->started++;
	if (last != NULL && limit->starts > UJOBS_RATE_EXACT && at - last->first < limit->window / 100)
	{
		last->last = at;
		last->n++;
		return;
	}
	if (rate->n == rate->capacity)
		grow(rate, context);
	rate->n++;
	*mark_at(rate, rate->n - 1) = (UjobsRateMark) {at, at, 1};
}

TimestampTz
ujobs_rate_next(const UjobsRate *rate, const UjobsRateLimit *limit, TimestampTz now)
{
	return ujobs_clock_add(rate->n > 0 ? mark_at(rate, 0)->last : now, limit->window);
}

bool
ujobs_rate_is_empty(UjobsRate *rate, const UjobsRateLimit *limit, TimestampTz now)
{
	drop_past(rate, limit, now);
	return rate->n == 0 && rate->pending == 0;
}

void
ujobs_rate_forget(UjobsRate *rate)
{
	if (rate->mark != NULL)
		pfree(rate->mark);
	rate->mark = NULL;
	rate->n = rate->started = rate->head = rate->capacity = 0;
}
