/*
 * relay_outbox.h: the way of committed messages to one sink.
 */
#ifndef UJOBS_WORKER_RELAY_RELAY_OUTBOX_H
#define UJOBS_WORKER_RELAY_RELAY_OUTBOX_H

#include "worker/relay/relay_link.h"

typedef struct UjobsOutlet UjobsOutlet;

/* Its memory is that of the sink. */
extern UjobsOutlet *ujobs_outlet_open(const UjobsRelaySink *sink);

/* Rows from this id on were committed or changed. */
extern void ujobs_outlet_hint(UjobsOutlet *outlet, int64 id);

/*
 * Records what came back, reads and sends what is next.  Outside a
 * transaction.  Returns when it wants to be called again, though nothing
 * rings.
 */
extern TimestampTz ujobs_outlet_round(UjobsOutlet *outlet, TimestampTz now);

/* Sends nothing more.  True once all that was sent is recorded. */
extern bool ujobs_outlet_retire(UjobsOutlet *outlet);

/* What is still on its way will be sent again by whoever comes next. */
extern void ujobs_outlet_close(UjobsOutlet *outlet);

#endif							/* UJOBS_WORKER_RELAY_RELAY_OUTBOX_H */
