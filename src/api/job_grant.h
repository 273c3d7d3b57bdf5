/*
 * job_grant.h: functions that every running job may call, and others only
 * whom an administrator lets.
 */
#ifndef UJOBS_API_JOB_GRANT_H
#define UJOBS_API_JOB_GRANT_H

#include "fmgr.h"

/* Raises 42501.  function: its name without schema, for the message. */
extern void ujobs_job_grant_required(FunctionCallInfo fcinfo, const char *function);

#endif							/* UJOBS_API_JOB_GRANT_H */
