/*
 * state.h: the states of a job and which may follow which.  Pure.
 *
 * "ready", "delayed" and "running" are not stored: a pending row is ready or
 * delayed by its due_at, and it runs while an executor's slot holds its id.
 */
#ifndef UJOBS_MODEL_STATE_H
#define UJOBS_MODEL_STATE_H

#include "model/job.h"

/* Where a job comes from that has no row yet. */
#define UJOBS_STATE_NONE ((UjobsState) 0)

/* May a row in state `from` be written as `to`?  The one table of transitions. */
extern bool ujobs_state_allows(UjobsState from, UjobsState to);

/* The same as an assertion: raises UJ099 naming the job when it may not. */
extern void ujobs_state_check(int64 job_id, UjobsState from, UjobsState to);

/* Done, dead or cancelled. */
extern bool ujobs_state_is_terminal(UjobsState state);

/* What users read: ready, delayed, running, suspended, done, dead or cancelled. */
extern const char *ujobs_state_shown(UjobsState state, TimestampTz due_at, TimestampTz now,
									 bool running);

#endif							/* UJOBS_MODEL_STATE_H */
