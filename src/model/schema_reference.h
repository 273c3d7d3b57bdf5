/*
 * schema_reference.h: resolves the references of a schema.  For schema_compile.c alone.
 */
#ifndef UJOBS_MODEL_SCHEMA_REFERENCE_H
#define UJOBS_MODEL_SCHEMA_REFERENCE_H

#include "model/schema_node.h"

/* Resolves all references; raises UJ003 when one leads out of the document or in a cycle. */
extern void ujobs_schema_reference_resolve(UjobsSchemaReader *reader);

#endif							/* UJOBS_MODEL_SCHEMA_REFERENCE_H */
