/*
 * announce.h: what every store that makes a job start tells the dispatcher.
 */
#ifndef UJOBS_STORE_ANNOUNCE_H
#define UJOBS_STORE_ANNOUNCE_H

#include "model/job.h"

/* Note that the row may start at due_at: reads id, definition_id, queue, tenant and priority of the job. */
extern void ujobs_job_announce(const UjobsJob *job, TimestampTz due_at);

#endif							/* UJOBS_STORE_ANNOUNCE_H */
