/*
 * entry.h: tenant, key and input of a job that a task enqueues.
 */
#ifndef UJOBS_RUN_ENTRY_H
#define UJOBS_RUN_ENTRY_H

#include "model/job.h"

/* Rendered over the input; "" is none.  Raises UJ002, UJ003. */
extern char *ujobs_entry_tenant(const UjobsDefinition *definition, Jsonb *input);
extern char *ujobs_entry_key(const UjobsDefinition *definition, Jsonb *input);

/* Raises UJ004 when the input does not satisfy the definition's schema. */
extern void ujobs_entry_check(const UjobsDefinition *definition, Jsonb *input);

/* The input of the job that calls a task's enqueue_fn: {task, occurrence, epochMs}. */
extern Jsonb *ujobs_entry_of_occurrence(const char *task, TimestampTz occurrence);

#endif							/* UJOBS_RUN_ENTRY_H */
