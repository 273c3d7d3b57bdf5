/*
 * in_job.h: is this session running a handler right now?
 *
 * Set by executors and drain around a handler; asked by functions that are
 * allowed, or only make sense, inside a job.
 */
#ifndef UJOBS_CORE_IN_JOB_H
#define UJOBS_CORE_IN_JOB_H

#include "postgres.h"

extern void ujobs_in_job_enter(void);

/* After the handler, also one that an error unwound. */
extern void ujobs_in_job_leave(void);

extern bool ujobs_in_job_job(void);

#endif							/* UJOBS_CORE_IN_JOB_H */
