/*
 * relay.h: the process that carries messages between this store and other systems.
 */
#ifndef UJOBS_WORKER_RELAY_RELAY_H
#define UJOBS_WORKER_RELAY_RELAY_H

#include "datatype/timestamp.h"

#include "core/shmem.h"

/* The process.  arg: the database's oid. */
extern PGDLLEXPORT void ujobs_relay_main(Datum arg);

/*
 * The dispatcher, outside a transaction: start it when it is not there and
 * there is a sink and a free process for it (core/capacity.h).  Returns when to call it again
 * at the latest.
 */
extern TimestampTz ujobs_relay_ensure(UjobsEngine *engine);

/* The dispatcher: end it. */
extern void ujobs_relay_stop(UjobsEngine *engine);

#endif							/* UJOBS_WORKER_RELAY_RELAY_H */
