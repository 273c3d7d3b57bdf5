/*
 * rate_test.c: rates against a list of all starts.
 *
 * sources: src/worker/dispatch/rate.c src/core/clock.c
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "unit.h"
#include "core/guc.h"
#include "worker/dispatch/rate.h"

#define MOST 4000

/* The settings that the clock reads. */
bool		ujobs_guc_clock_set = false;
TimestampTz ujobs_guc_clock_instant = 0;

static TimestampTz starts[MOST];
static int	n_starts;

/* How many of the starts are within the window that ends now. */
static int
recent(TimestampTz now, int64 window)
{
	int			n = 0;

	for (int i = 0; i < n_starts; i++)
		n += starts[i] > now - window;
	return n;
}

typedef struct Outcome
{
	int			most;			/* starts within any window */
	int			refused_early;	/* refused although fewer than allowed were within the window */
	int			not_then;		/* refused at the instant that ujobs_rate_next named */
} Outcome;

/* A job starts whenever one may. */
static Outcome
simulate(const UjobsRateLimit *limit, int rounds)
{
	UjobsRate	rate = {0};
	Outcome		outcome = {0};
	TimestampTz now = 1000000;

	n_starts = 0;
	for (int i = 0; i < rounds && n_starts < MOST; i++)
	{
		now += unit_random(limit->window / 3 + 2);
		if (ujobs_rate_allows(&rate, limit, now))
		{
			ujobs_rate_start(&rate, limit, now, CurrentMemoryContext);
			starts[n_starts++] = now;
			outcome.most = Max(outcome.most, recent(now, limit->window));
			continue;
		}
		outcome.refused_early += recent(now, limit->window) < limit->starts;
		now = ujobs_rate_next(&rate, limit, now);
		outcome.not_then += !ujobs_rate_allows(&rate, limit, now);
	}
	ujobs_rate_forget(&rate);
	return outcome;
}

static void
exact_rates(void)
{
	for (int i = 1; i <= UJOBS_RATE_EXACT; i *= 2)
	{
		UjobsRateLimit limit = {.starts = i, .window = 1 + unit_random(5000)};
		Outcome		outcome = simulate(&limit, 3000);

		unit_ok(outcome.most <= i, "never more than %d starts within a window", i);
		unit_ok(outcome.refused_early == 0, "%d starts are always allowed", i);
		unit_ok(outcome.not_then == 0, "the next instant after %d starts allows one", i);
	}
}

/* Beyond the exact number, starts are remembered in groups: never too many, perhaps too few. */
static void
grouped_rates(void)
{
	UjobsRateLimit limit = {.starts = 1000, .window = 100000};
	UjobsRate	rate = {0};
	TimestampTz now = 0;
	int			most = 0;

	n_starts = 0;
	for (int i = 0; i < 20000 && n_starts < MOST; i++)
	{
		now += unit_random(60);
		if (!ujobs_rate_allows(&rate, &limit, now))
			continue;
		ujobs_rate_start(&rate, &limit, now, CurrentMemoryContext);
		starts[n_starts++] = now;
		most = Max(most, recent(now, limit.window));
	}
	unit_ok(most <= 1000, "a large rate is never exceeded");
	unit_ok(most > 900, "and is nearly reached: %d", most);
	unit_ok(rate.capacity <= 256, "its memory is bounded: %d marks", rate.capacity);
}

static void
pending(void)
{
	UjobsRateLimit limit = {.starts = 2, .window = 10};
	UjobsRate	rate = {.pending = 2};

	unit_ok(!ujobs_rate_allows(&rate, &limit, 5), "what is handed out counts before it begins");
	rate.pending = 1;
	unit_ok(ujobs_rate_allows(&rate, &limit, 5), "and no more once it came back");
	unit_ok(!ujobs_rate_is_empty(&rate, &limit, 5), "a pending start is remembered");
	rate.pending = 0;
	ujobs_rate_start(&rate, &limit, 5, CurrentMemoryContext);
	unit_ok(!ujobs_rate_is_empty(&rate, &limit, 14), "so is a start within the window");
	unit_ok(ujobs_rate_is_empty(&rate, &limit, 15), "and none after it");
	limit.starts = 0;
	unit_ok(ujobs_rate_allows(&rate, &limit, 5), "no limit allows all");
}

void
unit_main(void)
{
	exact_rates();
	grouped_rates();
	pending();
}
