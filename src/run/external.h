/*
 * external.h: how an attempt ends that a program outside makes.
 *
 * In every function the job is held by ujobs_lease_hold in this transaction
 * (its row is locked, the lease is the caller's); there is no open identity
 * section.  They write what the end of an attempt of an executor writes.
 */
#ifndef UJOBS_RUN_EXTERNAL_H
#define UJOBS_RUN_EXTERNAL_H

#include "store/job_store.h"
#include "store/lease_store.h"

/* Done, with this result (NULL: SQL NULL). */
extern void ujobs_external_done(UjobsJob *job, int64 lease, Jsonb *result);

typedef enum UjobsDeadLetter
{
	UJOBS_DEAD_LETTER_BY_POLICY,
	UJOBS_DEAD_LETTER_NOW,
	UJOBS_DEAD_LETTER_NEVER		/* an exhausted job ends cancelled, as with deadLetter false */
} UjobsDeadLetter;

typedef struct UjobsNack
{
	const char *error;			/* NULL: none was given */
	int64		delay;			/* us; -1: by the policy */
	bool		counts;			/* the attempt was one */
	bool		park;			/* until delay is over, or the job is retried */
	UjobsDeadLetter dead_letter;
} UjobsNack;

/* Failed or given back: the new state, as users read it. */
extern const char *ujobs_external_nack(UjobsJob *job, const UjobsNack *nack);

/* The lease ran out: the attempt has failed. */
extern void ujobs_external_expire(UjobsJob *job, const UjobsLease *lease);

#endif							/* UJOBS_RUN_EXTERNAL_H */
