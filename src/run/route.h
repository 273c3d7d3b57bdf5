/*
 * route.h: where an enqueued job goes: into the live table here, or by the
 * outbox to the broker that its queue lives on.
 */
#ifndef UJOBS_RUN_ROUTE_H
#define UJOBS_RUN_ROUTE_H

#include "store/enqueue_store.h"

/*
 * As ujobs_enqueue_one and ujobs_enqueue_many (enqueue_store.h).  Of a queue on
 * a broker the results have a run_id and no id.  Raises UJ003 when on_conflict
 * is not dedupe there, and 54000 when the message is too large.
 */
extern void ujobs_route_one(const UjobsEnqueueOptions *options, UjobsEnqueueItem *item);
extern void ujobs_route_many(const UjobsEnqueueOptions *options, UjobsEnqueueItem *items, int n);

/* Raises 54000 when the JSON text of a payload has more bytes than the sink takes. */
extern void ujobs_route_check_size(Jsonb *payload, const char *sink, int64 max);

#endif							/* UJOBS_RUN_ROUTE_H */
