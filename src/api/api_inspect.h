/*
 * api_inspect.h: what other functions of the API show of a job.
 */
#ifndef UJOBS_API_API_INSPECT_H
#define UJOBS_API_API_INSPECT_H

#include "postgres.h"

#include "utils/jsonb.h"

/*
 * The trace of a job as ujobs.inspect_job(id) gives it to the current user,
 * or NULL.  Opens its own identity section; sees what this transaction wrote.
 */
extern Jsonb *ujobs_inspect_job(int64 id);

#endif							/* UJOBS_API_API_INSPECT_H */
