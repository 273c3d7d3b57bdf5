/*
 * scheduler.h: the housekeeper of a database.
 */
#ifndef UJOBS_WORKER_SCHEDULER_H
#define UJOBS_WORKER_SCHEDULER_H

#include "core/shmem.h"

/* The process.  arg: the database's oid. */
extern PGDLLEXPORT void ujobs_scheduler_main(Datum arg);

/* The dispatcher: start it when it is not there (with a pause between tries). */
extern TimestampTz ujobs_scheduler_ensure(UjobsEngine *engine);

/* The dispatcher: end it. */
extern void ujobs_scheduler_stop(UjobsEngine *engine);

/* The dispatcher: tasks, or what they enqueue, may have changed. */
extern void ujobs_scheduler_tell(UjobsEngine *engine);

#endif							/* UJOBS_WORKER_SCHEDULER_H */
