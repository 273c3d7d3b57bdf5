/*
 * rate.h: at most so many starts within any window of time.
 *
 * A start counts from the instant at which the job began, which the executor
 * writes into its ticket; from handing out until then it is `pending` and
 * counts in any case.  Up to UJOBS_RATE_EXACT starts each has its instant;
 * beyond, starts within a hundredth of the window are remembered with the
 * last one's, so memory is bounded and the rate is never exceeded.
 */
#ifndef UJOBS_WORKER_DISPATCH_RATE_H
#define UJOBS_WORKER_DISPATCH_RATE_H

#include "postgres.h"

#include "datatype/timestamp.h"

#define UJOBS_RATE_EXACT 128

typedef struct UjobsRateLimit
{
	int			starts;			/* 0 = no rate */
	int64		window;			/* us */
} UjobsRateLimit;

typedef struct UjobsRateMark
{
	TimestampTz first;
	TimestampTz last;
	int			n;
} UjobsRateMark;

/* All zero: nothing started. */
typedef struct UjobsRate
{
	int			pending;
	int			started;		/* sum of the marks */
	int			n;				/* marks, a ring from `head` on */
	int			head;
	int			capacity;
	UjobsRateMark *mark;
} UjobsRate;

extern bool ujobs_rate_allows(UjobsRate *rate, const UjobsRateLimit *limit, TimestampTz now);

/* A start, at that instant; memory comes from the context. */
extern void ujobs_rate_start(UjobsRate *rate, const UjobsRateLimit *limit, TimestampTz at,
							 MemoryContext context);

/*
 * When the first of the starts counts no more, DT_NOEND for never; without
 * one, a window from now.
 */
extern TimestampTz ujobs_rate_next(const UjobsRate *rate, const UjobsRateLimit *limit,
								   TimestampTz now);

/* Nothing is remembered, once what is past is forgotten. */
extern bool ujobs_rate_is_empty(UjobsRate *rate, const UjobsRateLimit *limit, TimestampTz now);

extern void ujobs_rate_forget(UjobsRate *rate);

#endif							/* UJOBS_WORKER_DISPATCH_RATE_H */
