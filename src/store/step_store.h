/*
 * step_store.h: the steps of live jobs, as rows, and archived in history.
 *
 * A finished job keeps its steps as one jsonb array in its history row: an
 * object for each, with the columns of job_step but job_id as keys; what is
 * absent is NULL.  to_jsonb(job_step row) and jsonb_populate_recordset speak
 * the same form, so SQL and C can both archive and restore them.
 *
 * All functions need a transaction with an active snapshot and no identity
 * section.
 */
#ifndef UJOBS_STORE_STEP_STORE_H
#define UJOBS_STORE_STEP_STORE_H

#include "nodes/pg_list.h"
#include "utils/jsonb.h"

#include "model/step.h"

/* UjobsStep * in the order of seq, in the current context; outputs stay toasted. */
extern List *ujobs_step_load(int64 job_id);

/* The output of one of them, toasted still. */
extern struct varlena *ujobs_step_load_output(int64 job_id, int32 seq);

extern void ujobs_step_insert(int64 job_id, const UjobsStep *step);

/* Replaces the row with this seq.  False when there is none. */
extern bool ujobs_step_update(int64 job_id, const UjobsStep *step);

/* The steps as a finished job keeps them; NULL when there are none. */
extern Jsonb *ujobs_step_archive(const List *steps);

/* Removes one of them. */
extern void ujobs_step_delete(int64 job_id, int32 seq);

/* Removes the rows of a job. */
extern void ujobs_step_forget(int64 job_id);

#endif							/* UJOBS_STORE_STEP_STORE_H */
