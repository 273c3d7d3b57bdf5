/*
 * relay_intake.h: the way of one queue's messages from a broker into this store.
 */
#ifndef UJOBS_WORKER_RELAY_RELAY_INTAKE_H
#define UJOBS_WORKER_RELAY_RELAY_INTAKE_H

#include "worker/relay/relay_link.h"

typedef struct UjobsInlet UjobsInlet;

/* Its memory is that of the sink. */
extern UjobsInlet *ujobs_inlet_open(const UjobsRelaySink *sink, const char *queue);

extern const char *ujobs_inlet_queue(const UjobsInlet *inlet);

/* The queue may have been paused or resumed. */
extern void ujobs_inlet_hint(UjobsInlet *inlet);

/*
 * Stores what was taken, and says how much more may be.  Outside a
 * transaction.  Returns when it wants to be called again, though nothing
 * rings.
 */
extern TimestampTz ujobs_inlet_round(UjobsInlet *inlet, TimestampTz now);

/* What it has taken and not stored is left to the broker. */
extern void ujobs_inlet_close(UjobsInlet *inlet);

/* Parked messages whose job is defined here by now become jobs. */
extern void ujobs_inlet_retry_parked(void);

#endif							/* UJOBS_WORKER_RELAY_RELAY_INTAKE_H */
