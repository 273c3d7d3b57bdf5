/*
 * admit.h: handing out work.
 */
#ifndef UJOBS_WORKER_ADMIT_H
#define UJOBS_WORKER_ADMIT_H

#include "core/shmem.h"

extern void ujobs_admit_init(UjobsArea *area);

/* Hands out as much as limits and rings allow, and starts executors where work waits. */
extern void ujobs_admit_assign(TimestampTz now);

/* When to look again, or DT_NOEND. */
extern TimestampTz ujobs_admit_next(void);

/* A job that was running when the server crashed: it runs alone before anything else. */
extern void ujobs_admit_suspect(int64 id, int32 definition_id);

/* From the crew: the suspect's executor is finished with it (definition 0), or died with it. */
extern void ujobs_admit_suspect_back(int64 id, int32 definition_id);

#endif							/* UJOBS_WORKER_ADMIT_H */
