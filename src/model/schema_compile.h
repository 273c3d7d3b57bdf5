/*
 * schema_compile.h: JSON Schema draft 2020-12 over jsonb.  Pure.
 *
 * A schema is compiled once, when it is first needed, and then checks any
 * number of inputs.  What it cannot check is refused when it is compiled and
 * never ignored: references to other documents, unknown keywords (but those
 * that begin with "x-"), patterns that mean something else to PostgreSQL.
 */
#ifndef UJOBS_MODEL_SCHEMA_COMPILE_H
#define UJOBS_MODEL_SCHEMA_COMPILE_H

#include "postgres.h"

#include "utils/jsonb.h"

typedef struct UjobsSchema UjobsSchema;

/*
 * Compiles into the current memory context.  The result points into `schema`,
 * which must live as long.  Raises UJ003 with the place and the keyword.
 */
extern UjobsSchema *ujobs_schema_compile(Jsonb *schema);

#endif							/* UJOBS_MODEL_SCHEMA_COMPILE_H */
