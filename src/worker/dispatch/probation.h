/*
 * probation.h: runs of jobs that were in flight when the server crashed.
 */
#ifndef UJOBS_WORKER_DISPATCH_PROBATION_H
#define UJOBS_WORKER_DISPATCH_PROBATION_H

#include "postgres.h"

#include "datatype/timestamp.h"

/* Starts the next one when it may start.  True: nothing else is to be started now. */
extern bool ujobs_probation_serve(TimestampTz now);

#endif							/* UJOBS_WORKER_DISPATCH_PROBATION_H */
