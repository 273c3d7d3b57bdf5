/*
 * schema_check.h: inputs against a compiled JSON schema.  Pure.
 */
#ifndef UJOBS_MODEL_SCHEMA_CHECK_H
#define UJOBS_MODEL_SCHEMA_CHECK_H

#include "model/schema_compile.h"

/*
 * NULL when the input fits; otherwise the first place that does not and the
 * rule it breaks, such as: at "/items/0/qty": must be >= 1 (minimum)
 */
extern char *ujobs_schema_check(const UjobsSchema *schema, Jsonb *input);

/*
 * Raises UJ004 when an input for the job does not fit.  number: which input of
 * a call it is, counted from 1; 0 when the call has one.
 */
extern void ujobs_schema_check_or_raise(const UjobsSchema *schema, const char *job, Jsonb *input,
										int number);

#endif							/* UJOBS_MODEL_SCHEMA_CHECK_H */
