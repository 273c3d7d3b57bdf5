/*
 * clock.h: the one clock seam.
 *
 * A client session may set ujobs.clock to try things out; engine processes,
 * leases and purge always use the real clock.
 */
#ifndef UJOBS_CORE_CLOCK_H
#define UJOBS_CORE_CLOCK_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "utils/timestamp.h"

/* 100 years: an interval that a caller gives is at most so long. */
#define UJOBS_MAX_INTERVAL_US (INT64CONST(36525) * USECS_PER_DAY)

/* The session's virtual instant when set, else the real time (microseconds). */
extern TimestampTz ujobs_clock_now(void);

/* An engine process calls this once at birth: ujobs.clock is ignored from then on. */
extern void ujobs_clock_use_real(void);

/* Is a virtual instant in force? */
extern bool ujobs_clock_is_virtual(void);

/* An interval as microseconds, a month being 30 days and a day 24 hours; saturates. */
extern int64 ujobs_clock_interval_us(const Interval *interval);

/* t + us without overflow: ends at infinity. */
extern TimestampTz ujobs_clock_add(TimestampTz t, int64 us);

#endif							/* UJOBS_CORE_CLOCK_H */
