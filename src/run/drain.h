/*
 * drain.h: run what is due in this session, inside the caller's transaction.
 */
#ifndef UJOBS_RUN_DRAIN_H
#define UJOBS_RUN_DRAIN_H

#include "model/job.h"

/* One attempt that drain made. */
typedef struct UjobsDrained
{
	int64		id;
	const char *name;
	UjobsOutcomeKind outcome;	/* DONE, RETRY, SUSPENDED, DEAD or CANCELLED */
	const char *error;			/* NULL = none */
} UjobsDrained;

typedef void (*UjobsDrainReceiver) (const UjobsDrained *drained, void *arg);

/*
 * At most max_jobs attempts, of one queue or (NULL) all, in the order of
 * dispatch, until nothing is due.  Needs a transaction that may write.
 */
extern void ujobs_drain(const char *queue, int max_jobs, UjobsDrainReceiver receive, void *arg);

#endif							/* UJOBS_RUN_DRAIN_H */
