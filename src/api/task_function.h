/*
 * task_function.h: what an enqueue_fn is.
 */
#ifndef UJOBS_API_TASK_FUNCTION_H
#define UJOBS_API_TASK_FUNCTION_H

#include "model/task.h"

/*
 * Finds the function with the caller's search_path and checks that it can be
 * an enqueue_fn and that the caller may execute it.  Returns its qualified,
 * quoted name.
 */
extern char *ujobs_task_function_resolve(const char *name);

/* Calls it as the current user; NULL: it returned NULL.  UJ025 when it is gone. */
extern Jsonb *ujobs_task_function_call(const char *name, TimestampTz occurrence);

#endif							/* UJOBS_API_TASK_FUNCTION_H */
