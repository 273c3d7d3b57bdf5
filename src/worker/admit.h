/*
 * admit.h: handing out work.
 */
#ifndef UJOBS_WORKER_ADMIT_H
#define UJOBS_WORKER_ADMIT_H

#include "core/shmem.h"
#include "worker/lane.h"

extern void ujobs_admit_init(UjobsArea *area);

/* Hands out as much as limits and rings allow, and starts executors where work waits. */
extern void ujobs_admit_assign(TimestampTz now);

/* When to look again, or DT_NOEND. */
extern TimestampTz ujobs_admit_next(void);

/* For suspect.c: one ticket to one executor; false when its ring is full. */
extern bool ujobs_admit_push(int index, const UjobsTicket *ticket, UjobsLane *lane, UjobsHeapItem item);

/* Executors that have a job. */
extern int	ujobs_admit_busy(void);

/* Executors of the role that are alive. */
extern int	ujobs_admit_hands_of(Oid role);

#endif							/* UJOBS_WORKER_ADMIT_H */
