/*
 * relay_record.h: what became of a parcel, into rows.
 */
#ifndef UJOBS_WORKER_RELAY_RELAY_RECORD_H
#define UJOBS_WORKER_RELAY_RELAY_RECORD_H

#include "worker/relay/relay_link.h"

/*
 * In the caller's transaction and memory.  What is unknown stays as it is, and
 * is sent again.  Returns when the first of those that failed is due again.
 */
extern TimestampTz ujobs_relay_record(const UjobsRelaySink *sink, const UjobsParcel *parcel, TimestampTz now);

#endif							/* UJOBS_WORKER_RELAY_RELAY_RECORD_H */
