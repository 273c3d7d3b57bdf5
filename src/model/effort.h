/*
 * effort.h: how much work the evaluation of something that a user made may take.
 *
 * Schemas, patterns and lists are evaluated in processes that serve all
 * roles, too: the scheduler and the relay.  Work is counted in steps, about
 * a tenth of a microsecond each; ujobs.max_validation_steps is the bound.
 */
#ifndef UJOBS_MODEL_EFFORT_H
#define UJOBS_MODEL_EFFORT_H

#include "postgres.h"

/* An evaluation begins; it has all steps, unless several share them. */
extern void ujobs_effort_begin(void);

/* From now on all evaluations have the steps of one together, or each has its own again. */
extern void ujobs_effort_share(bool share);

/* Counts, and serves interrupts.  Raises UJ027. */
extern void ujobs_effort_spend(int64 steps);

#endif							/* UJOBS_MODEL_EFFORT_H */
