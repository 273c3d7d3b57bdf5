/*
 * driver_store.h: which queues live on a broker; through a cache per session
 * that other sessions' changes invalidate at their commit, as definitions are.
 */
#ifndef UJOBS_STORE_DRIVER_STORE_H
#define UJOBS_STORE_DRIVER_STORE_H

#include "postgres.h"

typedef struct UjobsDriver
{
	char	   *queue;
	char	   *driver;			/* nats or redis */
	int32		sink_id;
	char	   *sink;
	int64		max_payload;	/* bytes */
	bytea	   *key;			/* that signs its messages; NULL: they are not signed */
} UjobsDriver;

/*
 * NULL: the queue's jobs are rows here, as nearly all are.  The pointer is
 * valid until the next call.  Opens its own identity section only when the
 * cache is stale.
 */
extern const UjobsDriver *ujobs_driver_of_queue(const char *queue);

#endif							/* UJOBS_STORE_DRIVER_STORE_H */
