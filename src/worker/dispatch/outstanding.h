/*
 * outstanding.h: the jobs that executors have, by id, and what is known of
 * jobs that come back.
 *
 * While a job is with an executor its hints are kept here; when it comes back
 * the dispatcher is told all that happened meanwhile (UjobsReturned).
 */
#ifndef UJOBS_WORKER_DISPATCH_OUTSTANDING_H
#define UJOBS_WORKER_DISPATCH_OUTSTANDING_H

#include "core/slot.h"
#include "worker/dispatch/tenant_queue.h"

/* A job that an executor or a program outside does not have any more. */
typedef struct UjobsReturned
{
	int64		id;
	bool		unrun;			/* it goes back to where it came from; else its run or lease is over */
	UjobsTenantQueue *tq;		/* where it came from; NULL: taken over from a former dispatcher */
	UjobsHeapItem item;
	TimestampTz not_before;		/* unrun: it may not start before */
	bool		crash_probation;	/* unrun: it was in flight when the server crashed */
	UjobsTicket ticket;			/* with crash_probation */
	bool		hinted;			/* `hint` came meanwhile */
	bool		wait_is_over;	/* what it waits for is to be looked at again */
	UjobsHint	hint;
} UjobsReturned;

/* Those of one look, in order.  Its memory is kept for the next. */
typedef struct UjobsReturns
{
	UjobsReturned *job;
	int			n;
	int			capacity;
} UjobsReturns;

/* One more, all zero but for its id. */
extern UjobsReturned *ujobs_outstanding_append(UjobsReturns *returns, int64 id);

extern void ujobs_outstanding_init(void);

/* A ticket goes to an executor.  tq NULL: taken over, its tenant queue is not known. */
extern void ujobs_outstanding_add(int64 id, UjobsTenantQueue *tq, UjobsHeapItem item);

/* Its ticket is finished with, or not run: appended to returns, if the job is known. */
extern void ujobs_outstanding_finish(int64 id, UjobsReturns *returns);
extern void ujobs_outstanding_put_back(const UjobsTicket *ticket, TimestampTz not_before,
									   UjobsReturns *returns);

/*
 * Is the job with an executor?  Then its hints, and a wait that is over, are
 * kept until it comes back.
 */
extern bool ujobs_outstanding_has(int64 id);
extern void ujobs_outstanding_hint(const UjobsHint *hint);
extern void ujobs_outstanding_wait_is_over(int64 id);

/*
 * It was cancelled; false when no executor has it.  Then all that were and are
 * still there: palloc'd, *n of them.
 */
extern bool ujobs_outstanding_cancel(int64 id);
extern int64 *ujobs_outstanding_cancelled(int *n);

/* All that executors have: palloc'd, *n of them. */
extern int64 *ujobs_outstanding_all(int *n);

/*
 * How often an executor ended with the job at hand; count one more, and return
 * the sum; forget it.
 */
extern int	ujobs_outstanding_deaths(int64 id);
extern int	ujobs_outstanding_count_death(int64 id);
extern void ujobs_outstanding_clear_deaths(int64 id);

#endif							/* UJOBS_WORKER_DISPATCH_OUTSTANDING_H */
