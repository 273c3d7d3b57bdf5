/*
 * api_inspect.h: what other functions of the API show of a job.
 */
#ifndef UJOBS_API_API_INSPECT_H
#define UJOBS_API_API_INSPECT_H

#include "postgres.h"

#include "utils/jsonb.h"

#include "store/history_store.h"

/*
 * The one rule of who sees what: how much the role may see of something of that
 * owner (by oid and stored name; the name may be NULL: none) that enqueued_role
 * made (InvalidOid: none).
 */
extern UjobsAccess ujobs_inspect_access(Oid role, Oid owner, const char *owner_name,
										Oid enqueued_role);

/*
 * The trace of a job as ujobs.inspect_job(id) gives it to the current user,
 * or NULL.  Opens its own identity section; sees what this transaction wrote.
 */
extern Jsonb *ujobs_inspect_job(int64 id);

#endif							/* UJOBS_API_API_INSPECT_H */
