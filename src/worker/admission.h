/*
 * admission.h: an engine begins to work when there are processes for it.
 */
#ifndef UJOBS_WORKER_ADMISSION_H
#define UJOBS_WORKER_ADMISSION_H

#include "core/shmem.h"

/*
 * The dispatcher, its engine being prepared: sets the state to RUNNING, if
 * need be after executors elsewhere have left.  False when the server has too
 * few processes; then the log and engine->no_worker say so.
 */
extern bool ujobs_admission_await(UjobsEngine *engine, const char *database_name);

#endif							/* UJOBS_WORKER_ADMISSION_H */
