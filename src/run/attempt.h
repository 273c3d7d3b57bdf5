/*
 * attempt.h: one call of a handler, wherever it runs.
 *
 * The caller holds a transaction and, for atomic handlers, an active
 * snapshot; it is the definition's owner.  Errors of the handler pass
 * through: catching them is the caller's part, because only it knows what
 * kind of transaction to abort.
 */
#ifndef UJOBS_RUN_ATTEMPT_H
#define UJOBS_RUN_ATTEMPT_H

#include "run/handler.h"

/* Who provides the transaction around the call. */
typedef enum UjobsCallLevel
{
	UJOBS_CALL_TOP,				/* an executor: the handler may commit, VACUUM works */
	UJOBS_CALL_NESTED			/* drain: inside a client's transaction */
} UjobsCallLevel;

/*
 * Calls it; the result (NULL: none) is copied into `into`.  A procedure or
 * command called at the top may end the transaction it began in and leave
 * another one open.
 */
extern Jsonb *ujobs_attempt_call(UjobsHandler *handler, Jsonb *input, UjobsCallLevel level,
								 MemoryContext into);

#endif							/* UJOBS_RUN_ATTEMPT_H */
