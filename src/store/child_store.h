/*
 * child_store.h: the job that another one waits for.
 *
 * Each function opens its own identity section, needs a transaction, and sees
 * what is committed by now.
 */
#ifndef UJOBS_STORE_CHILD_STORE_H
#define UJOBS_STORE_CHILD_STORE_H

#include "postgres.h"

#include "utils/jsonb.h"

#include "model/job.h"

typedef enum UjobsChildFate
{
	UJOBS_CHILD_UNKNOWN,		/* there is no such job any more, or not for this role */
	UJOBS_CHILD_LIVE,
	UJOBS_CHILD_ENDED
} UjobsChildFate;

/* How it ended; jsonb in the caller's context, NULL where there is none. */
typedef struct UjobsChildOutcome
{
	UjobsState	state;			/* DONE, DEAD or CANCELLED */
	Jsonb	   *result;
	Jsonb	   *error;			/* its last error */
} UjobsChildOutcome;

/* out is filled when it ended.  What this role may not see is unknown to it. */
extern UjobsChildFate ujobs_child_outcome(int64 child_id, Oid role, UjobsChildOutcome *out);

/*
 * To be called by the transaction that writes the waiting row.  Live: until
 * this transaction ends the child cannot end, and the session that ends it finds the
 * wait, so its outcome is kept for the waiting job however short its
 * retention is.  False: it ended already.  May wait for who is ending it.
 */
extern bool ujobs_child_hold(int64 child_id);

#endif							/* UJOBS_STORE_CHILD_STORE_H */
