/*
 * dispatcher.h: the one process of a database that decides what runs.
 */
#ifndef UJOBS_WORKER_DISPATCH_DISPATCHER_H
#define UJOBS_WORKER_DISPATCH_DISPATCHER_H

#include "postgres.h"

/* arg: the database's oid; bgw_extra: see core/spawn.h. */
extern PGDLLEXPORT void ujobs_dispatcher_main(Datum arg);

#endif							/* UJOBS_WORKER_DISPATCH_DISPATCHER_H */
