/*
 * cron_wall.h: which readings of a wall clock match a cron expression.  Pure.
 *
 * A reading is counted in seconds as if its clock had started at 1970-01-01
 * 00:00 and had never been put forward or back.
 */
#ifndef UJOBS_MODEL_CRON_WALL_H
#define UJOBS_MODEL_CRON_WALL_H

#include "model/cron_parse.h"

#define UJOBS_WALL_NONE PG_INT64_MAX

/* The least reading in [from, until) that matches, or UJOBS_WALL_NONE. */
extern int64 ujobs_wall_next(const UjobsCron *cron, int64 from, int64 until);

/* How many readings in [from, until) match. */
extern int64 ujobs_wall_count(const UjobsCron *cron, int64 from, int64 until);

#endif							/* UJOBS_MODEL_CRON_WALL_H */
