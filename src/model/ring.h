/*
 * ring.h: which partition of the history a row belongs to.
 */
#ifndef UJOBS_MODEL_RING_H
#define UJOBS_MODEL_RING_H

#include "postgres.h"

#include "datatype/timestamp.h"

#define UJOBS_HISTORY_SLOTS 32

/* The partition (0..31) of a row that expires then: its day, counted from 1970. */
extern int16 ujobs_history_slot(TimestampTz expires_at);

/*
 * The partition for a row that is written now.  One kept longer than the ring
 * has days sits in that of its 30th day, and is renewed when that comes round.
 */
extern int16 ujobs_history_slot_for(TimestampTz now, TimestampTz expires_at);

/* Partitions by how long ago what lies in them finished, with the usual retention: age 0 is now. */
extern int16 ujobs_history_slot_of_age(int age);

#endif							/* UJOBS_MODEL_RING_H */
