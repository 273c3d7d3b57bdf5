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
 * and nobody but the dispatcher once it is ENDED.  All under its mutex.
 */
#ifndef UJOBS_CORE_CLAIM_H
#define UJOBS_CORE_CLAIM_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/latch.h"
#include "storage/spin.h"

#define UJOBS_MAX_CLAIMS 256	/* transactions with a claim at a time */
#define UJOBS_CLAIM_GRANTS 64	/* jobs of one place; a larger claim takes more places */
#define UJOBS_CLAIM_QUEUES 64

typedef enum UjobsClaimState
{
	UJOBS_CLAIM_FREE,
	UJOBS_CLAIM_OPEN,			/* its session's */
	UJOBS_CLAIM_ASKED,			/* the dispatcher is to answer, then it is OPEN again */
	UJOBS_CLAIM_ENDED			/* the transaction has ended: the dispatcher takes note and frees it */
} UjobsClaimState;

typedef enum UjobsFate
{
	UJOBS_FATE_OPEN,			/* granted, its transaction runs */
	UJOBS_FATE_BACK,			/* as if it had never been granted */
	UJOBS_FATE_LATER,			/* the same, but it cannot be claimed now: try again in a moment */
	UJOBS_FATE_GONE,			/* there is no such job to claim any more */
	UJOBS_FATE_LEASED			/* committed */
} UjobsFate;

typedef struct UjobsGrant
{
	int64		id;
	bool		woken;			/* its wait is over, though its row is not due */
	int8		fate;			/* UjobsFate */
} UjobsGrant;

/* What is asked for. */
typedef struct UjobsClaimAsk
{
	Oid			role;			/* who asks */
	int			max;			/* jobs; 0: only whether there is one */
	bool		wait;			/* answer when there is one */
	int			n_queues;
	uint64		queue[UJOBS_CLAIM_QUEUES];	/* ujobs_claim_hash() of their names */
} UjobsClaimAsk;

typedef struct UjobsClaim
{
	slock_t		mutex;
	UjobsClaimState state;
	Latch	   *latch;
	UjobsClaimAsk ask;
	TimestampTz asked_at;
	uint64		turn;			/* who asked first has the least */
	bool		found;			/* the answer when max is 0 */
	int			n_grants;		/* they only grow while the place is taken */
	UjobsGrant	grant[UJOBS_CLAIM_GRANTS];
} UjobsClaim;

typedef struct UjobsClaims
{
	pg_atomic_uint32 taken;		/* places in use */
	pg_atomic_uint64 next_turn;
	pg_atomic_uint64 lease_end; /* when the scheduler looks for leases that ran out */
	UjobsClaim	claim[UJOBS_MAX_CLAIMS];
} UjobsClaims;

struct UjobsArea;

extern void ujobs_claim_init(UjobsClaims *claims);

/* Of a queue's name. */
extern uint64 ujobs_claim_hash(const char *queue);

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
extern bool ujobs_claim_read(struct UjobsArea *area, int place, UjobsClaim *copy);

/* Adds grants to one that is ASKED and wakes its session; false when it does not ask any more. */
extern bool ujobs_claim_answer(struct UjobsArea *area, int place, const UjobsGrant *grants, int n, bool found);

/* Everything of an ENDED one has been taken note of. */
extern void ujobs_claim_release(struct UjobsArea *area, int place);

/* Wakes all sessions that ask: the engine stops. */
extern void ujobs_claim_wake_all(struct UjobsArea *area);

/* ---- the scheduler's side ---- */

/* Before it reads the rows: from now on earlier ends ring it. */
extern void ujobs_claim_expect_end(struct UjobsArea *area, TimestampTz then);

/* The earliest that was noted since. */
extern TimestampTz ujobs_claim_next_end(struct UjobsArea *area);

#endif							/* UJOBS_CORE_CLAIM_H */
