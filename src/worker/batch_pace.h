/*
 * batch_pace.h: what an executor remembers of runs that did not go well.
 */
#ifndef UJOBS_WORKER_BATCH_PACE_H
#define UJOBS_WORKER_BATCH_PACE_H

#include "core/slot.h"

/* How many jobs to run in one transaction, beginning with this one. */
extern int	ujobs_batch_pace_batch_size(const UjobsTicket *ticket);

/*
 * A batch of so many ended: after a failed one the size is halved, after good
 * ones it grows back.
 */
extern void ujobs_batch_pace_batch_ended(const UjobsTicket *ticket, bool good, int tried);

/*
 * The job's statement was cancelled by pg_cancel_backend.  True while that
 * costs no attempt: a handler may cancel itself, for ever.
 */
extern bool ujobs_batch_pace_forgive_cancel(int64 job_id);

#endif							/* UJOBS_WORKER_BATCH_PACE_H */
