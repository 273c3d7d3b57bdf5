/*
 * area.h: what the memory of one database holds, UjobsArea.
 *
 * A pinned dynamic segment that the database's dispatcher makes.  Layout only:
 * each part has a file of functions (wakeup, claim, queue_counters, waited_for, in_flight,
 * slot for the rings), which alone takes the part's lock.
 *
 * Everything here is a hint or a process's own state: after a crash it is
 * zero, and rows say what is true.
 */
#ifndef UJOBS_CORE_AREA_H
#define UJOBS_CORE_AREA_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/spin.h"

#define UJOBS_MAX_SLOTS 64
#define UJOBS_RING_SIZE 256		/* tickets of one executor; power of two */
#define UJOBS_HINT_RING_SIZE 8192	/* power of two */
#define UJOBS_MAX_WAITERS 128

/* ---- hints and tickets ---- */

/* What a commit tells the dispatcher. */
typedef enum UjobsHintKind
{
	UJOBS_HINT_JOB,				/* a row may start at due_at */
	UJOBS_HINT_RANGE,			/* many rows of a lane and priority, from (due_at, id) on */
	UJOBS_HINT_GONE,			/* the job left the live table: interrupt its run */
	UJOBS_HINT_DEFINITIONS,		/* definitions, grants or queues changed */
	UJOBS_HINT_TASKS,			/* tasks changed: passed on to the scheduler */
	UJOBS_HINT_CONFIG,			/* start_workers, stop_workers */
	UJOBS_HINT_EVENT,			/* an event was published: id is the event's */
	UJOBS_HINT_WAIT,			/* the job is suspended at a wait */
	UJOBS_HINT_ENDED			/* the job ended, and may be waited for */
} UjobsHintKind;

typedef struct UjobsHint
{
	int64		id;
	TimestampTz due_at;
	int32		definition_id;
	uint32		queue_hash;		/* ujobs_hash_queue() of the queue's name */
	uint64		tenant_hash;	/* ujobs_hash_tenant(); 0 = none */
	int16		priority;
	uint8		kind;			/* UjobsHintKind */
} UjobsHint;

/* One ticket: a job that was handed to an executor, in that executor's ring. */
typedef struct UjobsTicket
{
	int64		id;
	int32		definition_id;
	int16		flags;
	int16		batch;			/* how many of its definition may share a transaction */
	uint64		tenant_hash;	/* with queue_hash: whose units of limits it takes */
	uint32		queue_hash;
	TimestampTz begun;			/* UJOBS_TICKET_RATED only: when its job began, 0 = not yet */
} UjobsTicket;

/* ---- queue counters (queue_counters.h) ---- */

#define UJOBS_COUNTER_QUEUES 64
#define UJOBS_COUNTER_NAME 64		/* bytes, with the end */
#define UJOBS_COUNTER_BUCKETS 18	/* the last is for everything above the bounds */
#define UJOBS_COUNTER_OTHERS "(other)"	/* the name under which the queues without an entry are shown */

typedef enum UjobsQueueCounterOutcome
{
	UJOBS_COUNTER_DONE,
	UJOBS_COUNTER_RETRY,			/* an attempt failed, another one will follow */
	UJOBS_COUNTER_DEAD,
	UJOBS_COUNTER_CANCELLED
} UjobsQueueCounterOutcome;

#define UJOBS_COUNTER_OUTCOMES 4

typedef struct UjobsQueueCounterHistogram
{
	pg_atomic_uint64 bucket[UJOBS_COUNTER_BUCKETS];	/* not cumulative */
	pg_atomic_uint64 sum;		/* us */
} UjobsQueueCounterHistogram;

typedef struct UjobsQueueCounter
{
	char		queue[UJOBS_COUNTER_NAME];
	pg_atomic_uint64 outcome[UJOBS_COUNTER_OUTCOMES];
	UjobsQueueCounterHistogram wait;	/* due to started */
	UjobsQueueCounterHistogram run;	/* started to ended */
} UjobsQueueCounter;

/* The table, part of a database's area.  An entry below n never changes its name. */
typedef struct UjobsQueueCounterTable
{
	LWLock		lock;			/* to make an entry */
	pg_atomic_uint32 n;
	uint32		hash[UJOBS_COUNTER_QUEUES];
	UjobsQueueCounter	entry[UJOBS_COUNTER_QUEUES + 1];	/* the last: all other queues */
} UjobsQueueCounterTable;

/* ---- jobs that others wait for (waited_for.h) ---- */

#define UJOBS_WAITED_FOR_BITS 65536
#define UJOBS_WAITED_FOR_WORDS (UJOBS_WAITED_FOR_BITS / 32)

typedef struct UjobsWaitedFor
{
	pg_atomic_uint32 word[UJOBS_WAITED_FOR_WORDS];
} UjobsWaitedFor;

/* ---- claims (claim.h) ---- */

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
	uint64		queue[UJOBS_CLAIM_QUEUES];	/* ujobs_hash_claimed_queue() of their names */
} UjobsClaimAsk;

typedef struct UjobsClaim
{
	LWLock		lock;
	UjobsClaimState state;
	Latch	   *latch;
	UjobsClaimAsk ask;
	TimestampTz asked_at;
	uint64		number;			/* grows with each question */
	bool		found;			/* the answer when max is 0 */
	int			n_grants;		/* they only grow while the place is taken */
	UjobsGrant	grant[UJOBS_CLAIM_GRANTS];
} UjobsClaim;

typedef struct UjobsClaims
{
	pg_atomic_uint32 taken;		/* places in use */
	pg_atomic_uint64 next_number;
	pg_atomic_uint64 lease_end; /* when the scheduler looks for leases that ran out */
	UjobsClaim	claim[UJOBS_MAX_CLAIMS];
} UjobsClaims;

/* ---- messages on their way (in_flight.h) ---- */

#define UJOBS_IN_FLIGHT_SINKS 16		/* sinks that are shown */
#define UJOBS_IN_FLIGHT_MESSAGES 1024	/* of each */

typedef struct UjobsInFlight
{
	int32		sink_id;
	int32		n;
	int64		id[UJOBS_IN_FLIGHT_MESSAGES];
} UjobsInFlight;

/* ---- all of it ---- */

/* A session in wait_for_job. */
typedef struct UjobsWaiter
{
	int64		job_id;			/* 0 = free */
	Latch	   *latch;
} UjobsWaiter;

/*
 * The state of a limit of which units are held, for ujobs.why: why a job
 * waits: as many as tenants whose jobs the dispatcher knows.  The dispatcher
 * alone writes; readers take a glance without a lock.
 */
#define UJOBS_CAPS_SHOWN 20480

typedef struct UjobsCapShown
{
	uint32		kind;			/* UjobsCapShownKind */
	uint32		of;				/* definition id, or the queue's hash */
	uint64		tenant_hash;
	int32		used;			/* units */
	TimestampTz until;			/* its rate allows nothing more before; 0 = not at its rate */
} UjobsCapShown;

typedef enum UjobsCapShownKind
{
	UJOBS_SHOWN_NOTHING,
	UJOBS_SHOWN_DEFINITION,
	UJOBS_SHOWN_QUEUE,
	UJOBS_SHOWN_TENANT
} UjobsCapShownKind;

/* Per-database memory. */
typedef struct UjobsArea
{
	slock_t		hint_lock;
	uint32		hint_head;
	uint32		hint_tail;
	slock_t		waiter_lock;
	pg_atomic_uint32 waiters;	/* in use; 0 lets a finish skip the list */
	UjobsWaiter waiter[UJOBS_MAX_WAITERS];
	UjobsQueueCounterTable counters;
	UjobsWaitedFor waited_for;
	UjobsClaims claims;
	UjobsCapShown caps[UJOBS_CAPS_SHOWN];
	UjobsInFlight in_flight[UJOBS_IN_FLIGHT_SINKS];	/* of the outbox (core/in_flight.h) */
	int32		running;		/* inside and outside, when ujobs.max_running was last looked at */
	UjobsHint	hint[UJOBS_HINT_RING_SIZE];
	UjobsTicket ring[UJOBS_MAX_SLOTS][UJOBS_RING_SIZE];
} UjobsArea;

/* Initializes a fresh, zero-filled segment; its LWLocks belong to the tranche. */
extern void ujobs_area_init(UjobsArea *area, int tranche);

#endif							/* UJOBS_CORE_AREA_H */
