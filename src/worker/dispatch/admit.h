/*
 * admit.h: handing out work.
 */
#ifndef UJOBS_WORKER_DISPATCH_ADMIT_H
#define UJOBS_WORKER_DISPATCH_ADMIT_H

#include "core/shmem.h"
#include "worker/dispatch/hand.h"
#include "worker/dispatch/lane.h"

extern void ujobs_admit_init(UjobsArea *area);

/* Hands out as much as limits and rings allow, and starts executors where work waits. */
extern void ujobs_admit_assign(TimestampTz now);

/* When to look again, or DT_NOEND. */
extern TimestampTz ujobs_admit_next(void);

/*
 * May one more of the party start, by all limits but ujobs.max_running: with
 * this executor, or (NULL) with one that has nothing, or outside?
 */
extern bool ujobs_admit_allows(const UjobsHand *hand, UjobsParty *party, TimestampTz now);

/* Busy executors and jobs of programs outside: what ujobs.max_running limits. */
extern int	ujobs_admit_running(void);

/* For suspect.c: one ticket to one executor; false when its ring is full. */
extern bool ujobs_admit_push(int index, const UjobsTicket *ticket, UjobsParty *party, UjobsHeapItem item);

/* Executors of the role that are alive. */
extern int	ujobs_admit_hands_of(Oid role);

/* ---- jobs that programs outside claim ---- */

typedef bool (*UjobsLaneFilter) (const UjobsLane *lane, void *arg);

/*
 * The party whose first job is next in the lanes that programs claim and
 * `accepts` says yes to, if all limits allow one more: by priority, turn and
 * age, as for executors.  NULL when there is none.
 */
extern UjobsParty *ujobs_admit_best_outside(UjobsLaneFilter accepts, void *arg, TimestampTz now);

/*
 * Takes that job out.  The caller counts its units (limit.h); with
 * UJOBS_TICKET_RATED it also says when the job began, or that it did not.
 */
extern UjobsHeapItem ujobs_admit_pop_outside(UjobsParty *party, UjobsTicket *ticket);

#endif							/* UJOBS_WORKER_DISPATCH_ADMIT_H */
