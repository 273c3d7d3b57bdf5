/*
 * claim.h: how a program's session asks the dispatcher for jobs, and tells it
 * what became of them.
 *
 * Work starts only through the dispatcher, so a claim is a request in shared
 * memory, and its answer is a list of ids that count as given to that session
 * (a grant).  The session then writes the leases in its own transaction.  The
 * fate of each grant is told when it is known: given back at once when a
 * savepoint or the transaction is rolled back, leased when it commits.
 *
 * A request has a place from the first claim to the end of the transaction.
 * The session writes it while it is OPEN, the dispatcher while it is ASKED,
 * and the dispatcher alone once it is ENDED.  All under its lock.
 */
#ifndef UJOBS_CORE_CLAIM_H
#define UJOBS_CORE_CLAIM_H

#include "postgres.h"

#include "core/area.h"

/* ---- the session's side; needs a transaction ---- */

/* A grant of this session: its place, and its number there. */
typedef struct UjobsGranted
{
	int64		id;
	bool		woken;
	int			place;
	int			number;
} UjobsGranted;

/*
 * Asks for up to ask->max jobs (which is lowered to what can be given at a
 * time) and waits for the answer, with ask->wait until the deadline.  Returns
 * how many; with max 0 whether there is one.  Ends when the client goes away.
 * Raises UJ023 when the engine stops meanwhile, 53400 when all places are
 * taken.
 */
extern int	ujobs_claim_ask(UjobsClaimAsk *ask, TimestampTz deadline, UjobsGranted *out);

/* This job was not claimed: BACK, LATER or GONE.  All others are, if the transaction commits. */
extern void ujobs_claim_decline(const UjobsGranted *granted, UjobsFate fate);

/* A lease written by this transaction ends then: at commit the scheduler is told. */
extern void ujobs_claim_note_end(TimestampTz visible_at);

/* ---- the dispatcher's side ---- */

/* A copy of a place that is not free; false when it is. */
extern bool ujobs_claim_read(UjobsArea *area, int place, UjobsClaim *copy);

/* Adds grants to one that is ASKED and wakes its session; false when it does not ask any more. */
extern bool ujobs_claim_answer(UjobsArea *area, int place, const UjobsGrant *grants, int n,
							   bool found);

/* Everything of an ENDED one has been taken note of. */
extern void ujobs_claim_release(UjobsArea *area, int place);

/* Wakes all sessions that ask: the engine stops. */
extern void ujobs_claim_wake_all(UjobsArea *area);

/* ---- the scheduler's side ---- */

/* Before it reads the rows: from now on earlier ends ring it. */
extern void ujobs_claim_expect_end(UjobsArea *area, TimestampTz then);

/* The earliest that was noted since. */
extern TimestampTz ujobs_claim_next_end(UjobsArea *area);

/* Dispatcher: does the claim wait for an answer?  Then *number is its question's. */
extern bool ujobs_claim_asks(UjobsArea *area, int place, uint64 *number);

#endif							/* UJOBS_CORE_CLAIM_H */
