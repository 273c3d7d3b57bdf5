/*
 * execution_plan.h: can this job run, and what does its run need of the definition?
 */
#ifndef UJOBS_RUN_EXECUTION_PLAN_H
#define UJOBS_RUN_EXECUTION_PLAN_H

#include "run/handler.h"
#include "store/job_store.h"

/* A copy of what is read during the run, once user code may have changed the cache. */
typedef struct UjobsExecutionPlan
{
	UjobsHandler handler;
	int64		retention;		/* of done, us */
	int64		timeout_ms;		/* 0 = none */
	int64		step_timeout_ms;
	char		name[NAMEDATALEN * 2];
} UjobsExecutionPlan;

typedef enum UjobsExecutionVerdict
{
	UJOBS_EXECUTION_RUN,
	UJOBS_EXECUTION_SETTLE,		/* it cannot: the verdict says what becomes of it */
	UJOBS_EXECUTION_FOREIGN		/* its owner is another role than the current user */
} UjobsExecutionVerdict;

/*
 * Why the owner's jobs cannot run, here or (needs_session) in a session to be
 * made; NULL when they can.
 */
extern char *ujobs_execution_plan_missing_owner(const UjobsDefinition *definition,
												bool needs_session);

/*
 * The caller holds a transaction with an active snapshot.  Memory from the
 * current context.  Raises 42501 when the owner may not execute the handler,
 * which is a failure of the attempt.
 */
extern UjobsExecutionVerdict ujobs_execution_plan_make(const UjobsJob *job,
														UjobsExecutionPlan *plan,
														UjobsVerdict *verdict);

#endif							/* UJOBS_RUN_EXECUTION_PLAN_H */
