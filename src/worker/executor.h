/*
 * executor.h: the process that runs jobs of one owner in one database.
 */
#ifndef UJOBS_WORKER_EXECUTOR_H
#define UJOBS_WORKER_EXECUTOR_H

#include "postgres.h"

/* arg: the slot's index; bgw_extra: UjobsExecutorSpec. */
extern PGDLLEXPORT void ujobs_executor_main(Datum arg);

#endif							/* UJOBS_WORKER_EXECUTOR_H */
