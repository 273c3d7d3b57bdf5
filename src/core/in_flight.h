/*
 * in_flight.h: which messages of the outbox are on their way right now.
 *
 * The relay of a database alone writes, in its area; readers take no lock and
 * may see a part of a change.
 */
#ifndef UJOBS_CORE_IN_FLIGHT_H
#define UJOBS_CORE_IN_FLIGHT_H

#include "postgres.h"

#include "core/area.h"

/* All that is on its way to a sink; n = 0: nothing is. */
extern void ujobs_in_flight_set(int32 sink_id, const int64 *ids, int n);

/* A relay begins or ends: nothing is on its way. */
extern void ujobs_in_flight_clear(void);

/* The ids of this database, palloc'd; their number. */
extern int	ujobs_in_flight_read(int64 **ids);

#endif							/* UJOBS_CORE_IN_FLIGHT_H */
