/*
 * argument.h: refusals of arguments and options that the functions behind SQL share.
 */
#ifndef UJOBS_API_ARGUMENT_H
#define UJOBS_API_ARGUMENT_H

#include "postgres.h"

#include "fmgr.h"

#include "core/noreturn.h"

/* Raises UJ003 for this option; the hint is a sentence. */
pg_noreturn extern void ujobs_argument_refuse(const char *option, const char *detail,
											  const char *hint);

/* Raises UJ005: a job, task or sink of that name is defined otherwise; the detail is a sentence. */
pg_noreturn extern void ujobs_argument_refuse_conflict(const char *what, const char *name,
													   const char *detail);

/* Raises 22004 for an argument, or what it is, that is NULL. */
pg_noreturn extern void ujobs_argument_refuse_null(const char *what, const char *hint);

/* Raises 22004, naming the argument, when it is NULL. */
extern void ujobs_argument_check_null(FunctionCallInfo fcinfo, int argument, const char *name);

/* A required text argument: 22004 when it is NULL. */
extern char *ujobs_argument_required(FunctionCallInfo fcinfo, int argument, const char *name);

/* Raises UJ003 unless it is a possible name of a job or a queue. */
extern void ujobs_argument_check_name(const char *option, const char *name);

#endif							/* UJOBS_API_ARGUMENT_H */
