/*
 * retry.h: whether and when a failed attempt is tried again.  Pure.
 */
#ifndef UJOBS_MODEL_RETRY_H
#define UJOBS_MODEL_RETRY_H

#include "model/job.h"

typedef struct UjobsRetryDecision
{
	UjobsOutcomeKind outcome;	/* RETRY, DEAD or CANCELLED */
	int64		delay;			/* us, for RETRY */
	bool		exhausted;		/* the attempts ran out (UJ022), not a terminal error */
} UjobsRetryDecision;

/* What an error was, as far as the decision needs it. */
typedef struct UjobsFailure
{
	int			sqlerrcode;		/* packed SQLSTATE */
	int64		retry_after;	/* us asked for by UJ021, -1 = not asked */
	bool		hopeless;		/* terminal, whatever its code */
	double		random;			/* in [0, 1), for the jitter */
} UjobsFailure;

/* The defaults: 3 attempts, exponential from 1 s up to 1 h, jitter. */
extern void ujobs_retry_default(UjobsRetry *policy);

/*
 * Decodes a policy given by a user (NULL: the defaults).  Unknown keys, wrong
 * types, attempts < 1, negative or infinite delays raise UJ003 with the option
 * in DETAIL.  Memory from the current context.
 */
extern void ujobs_retry_parse(Jsonb *given, UjobsRetry *policy);

/* The normal form that is stored and shown: every key, durations in ms. */
extern Jsonb *ujobs_retry_to_jsonb(const UjobsRetry *policy);

/* exponential, linear or fixed. */
extern const char *ujobs_retry_backoff_name(UjobsBackoff backoff);

/* Delay after failed attempt n (from 1), us, jitter off; never overflows. */
extern int64 ujobs_retry_delay(const UjobsRetry *policy, int32 attempt);

/* attempt: the one that just failed; max_attempts: the job's own. */
extern UjobsRetryDecision ujobs_retry_decide(const UjobsRetry *policy, int32 attempt,
											 int32 max_attempts, const UjobsFailure *failure);

#endif							/* UJOBS_MODEL_RETRY_H */
