/*
 * api_lease.h: what the calls of a program outside have in common.
 */
#ifndef UJOBS_API_API_LEASE_H
#define UJOBS_API_API_LEASE_H

#include "postgres.h"

#include "fmgr.h"

#include "store/lease_store.h"

/* An interval, not NULL, finite and not negative, in microseconds: 22004, UJ003. */
extern int64 ujobs_lease_interval(FunctionCallInfo fcinfo, int number, const char *name);

/* The argument visibility_timeout: as above, and more than 0. */
extern int64 ujobs_lease_visibility(FunctionCallInfo fcinfo, int number);

/*
 * The job that arguments 0 and 1 (id, lease) hold, locked; NULL when they do
 * not.  42501 when the caller may not work on it.
 */
extern UjobsJob *ujobs_lease_mine(FunctionCallInfo fcinfo, const char *function, UjobsLease *lease);

/* The same, but UJ019 instead of NULL. */
extern UjobsJob *ujobs_lease_require_mine(FunctionCallInfo fcinfo, const char *function,
										  UjobsLease *lease);

#endif							/* UJOBS_API_API_LEASE_H */
