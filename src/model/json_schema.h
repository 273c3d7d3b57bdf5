/*
 * json_schema.h: JSON Schema draft 2020-12 over jsonb.  Pure.
 *
 * A schema is compiled once, when it is first needed, and then checks any
 * number of inputs.  What it cannot check is refused when it is compiled and
 * never ignored: references to other documents, unknown keywords (but those
 * that begin with "x-"), patterns that mean something else to PostgreSQL.
 */
#ifndef UJOBS_MODEL_JSON_SCHEMA_H
#define UJOBS_MODEL_JSON_SCHEMA_H

#include "postgres.h"

#include "utils/jsonb.h"

typedef struct UjobsSchema UjobsSchema;

/*
 * Compiles into the current memory context.  The result points into `schema`,
 * which must live as long.  Raises UJ003 with the place and the keyword.
 */
extern UjobsSchema *ujobs_schema_compile(Jsonb *schema);

/*
 * NULL when the input fits; otherwise the first place that does not and the
 * rule it breaks, such as: at "/items/0/qty": must be >= 1 (minimum)
 */
extern char *ujobs_schema_check(const UjobsSchema *schema, Jsonb *input);

/*
 * Raises UJ004 when an input for the job does not fit.  number: which input of
 * a call it is, counted from 1; 0 when the call has one.
 */
extern void ujobs_schema_require(const UjobsSchema *schema, const char *job, Jsonb *input, int number);

#endif							/* UJOBS_MODEL_JSON_SCHEMA_H */
