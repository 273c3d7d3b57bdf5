/*
 * expiry.h: leases that ran out: the scheduler ends their attempts.
 */
#ifndef UJOBS_WORKER_EXPIRY_H
#define UJOBS_WORKER_EXPIRY_H

#include "postgres.h"

#include "datatype/timestamp.h"

/*
 * Ends what ran out, when it is time to look; returns when it will be again.
 * Makes its own transactions, and never waits for a lock.
 */
extern TimestampTz ujobs_expiry_round(void);

#endif							/* UJOBS_WORKER_EXPIRY_H */
