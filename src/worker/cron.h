/*
 * cron.h: the part of the scheduler that fires tasks.
 */
#ifndef UJOBS_WORKER_CRON_H
#define UJOBS_WORKER_CRON_H

#include "core/shmem.h"

extern void ujobs_cron_init(void);

/*
 * Fires what is due; returns when to be called next, at most 30 s from now.
 * The extension must be there.  Memory from the current context.
 */
extern TimestampTz ujobs_cron_round(UjobsEngine *engine);

#endif							/* UJOBS_WORKER_CRON_H */
