/*
 * admitted.h: an executor's tickets as jobs.
 *
 * Both functions need a transaction with an active snapshot and no identity
 * section, and allocate in the current context.
 */
#ifndef UJOBS_WORKER_ADMITTED_H
#define UJOBS_WORKER_ADMITTED_H

#include "core/slot.h"
#include "run/execution_plan.h"

/* UjobsJob * of those that may run now, their attempt counted; the others were changed since. */
extern List *ujobs_admitted_fetch(const UjobsTicket *tickets, int n);

/* Can these jobs, all of one definition, run here?  If not they are dealt with. */
extern bool ujobs_admitted_plan(List *jobs, UjobsExecutionPlan *plan);

#endif							/* UJOBS_WORKER_ADMITTED_H */
