/*
 * launcher.h: keeps one engine in each database that has the extension.
 */
#ifndef UJOBS_WORKER_LAUNCHER_H
#define UJOBS_WORKER_LAUNCHER_H

#include "postgres.h"

/* From _PG_init when preloaded: registers the launcher and the utility hook. */
extern void ujobs_launcher_register(void);

/* The process. */
extern PGDLLEXPORT void ujobs_launcher_main(Datum arg);

#endif							/* UJOBS_WORKER_LAUNCHER_H */
