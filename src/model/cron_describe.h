/*
 * cron_describe.h: a cron expression as a sentence.  Pure.
 */
#ifndef UJOBS_MODEL_CRON_DESCRIBE_H
#define UJOBS_MODEL_CRON_DESCRIBE_H

#include "model/cron_parse.h"

#define UJOBS_CRON_SENTENCE 2048

/*
 * "At 09:00 on Monday through Friday, in time zone Europe/Berlin."  zone: its
 * name.  Writes at most UJOBS_CRON_SENTENCE bytes, the last a NUL.
 */
extern void ujobs_cron_describe(const UjobsCron *cron, const char *zone, char *sentence);

#endif							/* UJOBS_MODEL_CRON_DESCRIBE_H */
