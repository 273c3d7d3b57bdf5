/*
 * cron_parse.h: a cron expression as sets of numbers.  Pure; no memory is
 * allocated and nothing is raised, so that it can be fuzzed on its own.
 */
#ifndef UJOBS_MODEL_CRON_PARSE_H
#define UJOBS_MODEL_CRON_PARSE_H

#include "postgres.h"

#define UJOBS_CRON_MAX_BYTES 256

/* Bit n is the value n. */
typedef struct UjobsCron
{
	uint64		second;			/* 0..59 */
	uint64		minute;			/* 0..59 */
	uint32		hour;			/* 0..23 */
	uint32		month;			/* 1..12 */
	uint32		day;			/* days of the month, 1..31 */
	uint32		day_from_last;	/* bit n: n days before the month's last, 0..30 */
	uint8		weekday;		/* 0 (Sunday) .. 6, every one of the month */
	uint8		weekday_last;	/* its last of the month */
	uint8		weekday_nth[7];	/* by weekday: bits 1..5, its nth of the month */
	bool		day_any;		/* the field restricts nothing */
	bool		weekday_any;
} UjobsCron;

/* Why an expression was refused. */
typedef struct UjobsCronError
{
	char		detail[2 * UJOBS_CRON_MAX_BYTES];
	const char *hint;			/* a whole sentence, never NULL */
} UjobsCronError;

/*
 * False: not a cron expression, or one that can never fire; error says why.
 * length: bytes of expr, which need not be ended by a NUL.
 */
extern bool ujobs_cron_parse(const char *expr, size_t length, UjobsCron *cron,
							 UjobsCronError *error);

/* All 24 hours: it fires in both passes of a repeated hour. */
static inline bool
ujobs_cron_every_hour(const UjobsCron *cron)
{
	return cron->hour == (1 << 24) - 1;
}

/* Both day fields restrict: a day that matches either one runs. */
static inline bool
ujobs_cron_either_day(const UjobsCron *cron)
{
	return !cron->day_any && !cron->weekday_any;
}

#endif							/* UJOBS_MODEL_CRON_PARSE_H */
