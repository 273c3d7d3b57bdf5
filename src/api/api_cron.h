/*
 * api_cron.h: cron expressions and time zones as SQL gives them.
 */
#ifndef UJOBS_API_API_CRON_H
#define UJOBS_API_API_CRON_H

#include "model/cron_occurrence.h"

/* Raises UJ007 with the reason in DETAIL. */
extern void ujobs_cron_read(const char *expr, UjobsCron *cron);

/* Raises UJ008. */
extern const UjobsZone *ujobs_cron_zone(const char *name);

#endif							/* UJOBS_API_API_CRON_H */
