/*
 * ring.h: which partition of the history a row belongs to.  Pure.
 */
#ifndef UJOBS_MODEL_RING_H
#define UJOBS_MODEL_RING_H

#include "postgres.h"

#include "datatype/timestamp.h"

#define UJOBS_HISTORY_SLOTS 32

/* The partition (0..31) of a row that expires then: its day, counted from 1970. */
extern int16 ujobs_history_slot(TimestampTz expires_at);

#endif							/* UJOBS_MODEL_RING_H */
