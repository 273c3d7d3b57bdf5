/*
 * limit.h: limits, and who takes up their units.
 *
 * Four kinds: the database (ujobs.max_running), a definition, a queue, a
 * tenant in a queue; the last may also have a rate.  An executor runs its
 * tickets one after another, so it takes one unit of each limit that any of
 * its tickets is under, however many they are: running jobs are never more
 * than units.  A job that a program outside holds takes one unit of each.
 *
 * The dispatcher alone counts, so the numbers are exact at every moment.
 * Executors' units are counted for what has a limit only and are counted
 * anew from their tickets when limits change; units of jobs outside are
 * counted always.
 */
#ifndef UJOBS_WORKER_DISPATCH_LIMIT_H
#define UJOBS_WORKER_DISPATCH_LIMIT_H

#include "lib/ilist.h"
#include "lib/pairingheap.h"

#include "core/shmem.h"
#include "store/dispatch_store.h"
#include "worker/dispatch/rate.h"

typedef enum UjobsCapKind
{
	UJOBS_CAP_DEFINITION,
	UJOBS_CAP_QUEUE,
	UJOBS_CAP_TENANT,
	UJOBS_CAP_KINDS
} UjobsCapKind;

typedef struct UjobsCapKey
{
	uint32		kind;			/* UjobsCapKind */
	uint32		of;				/* definition id, or the queue's hash */
	uint64		tenant;			/* its hash; 0 but for UJOBS_CAP_TENANT */
} UjobsCapKey;

typedef struct UjobsCap
{
	UjobsCapKey key;
	int			limit;			/* 0 = none */
	int			executors;			/* executors that hold tickets of it; counted only with a limit */
	int			outside;		/* jobs that programs outside hold */
	int			users;			/* tenant queues and lanes that point here */

	/* Queues: what each tenant there may. */
	int			per_tenant;
	UjobsRateLimit rate_limit;

	/* Tenants. */
	struct UjobsCap *queue;
	uint64		served;			/* the number of the last time it was served */
	UjobsRate	rate;
	dlist_head	waiting;		/* its tenant queues that are over it */
	dlist_node	freed_node;
	bool		freed;			/* they may try again */
	pairingheap_node watch_node;
	bool		watched;		/* they try again at `watch_at` */
	TimestampTz watch_at;

	int			shown;			/* its place in UjobsArea.caps, or -1 */
} UjobsCap;

extern void ujobs_limit_init(UjobsArea *area);

/* Made when it is not known.  A caller that keeps the pointer counts in `users`. */
extern UjobsCap *ujobs_limit_cap(UjobsCapKind kind, uint32 of, uint64 tenant);

static inline int
ujobs_limit_used(const UjobsCap *cap)
{
	return cap->executors + cap->outside;
}

/* Has it a unit to give? */
static inline bool
ujobs_limit_is_free(const UjobsCap *cap)
{
	return cap->limit == 0 || ujobs_limit_used(cap) < cap->limit;
}

/* Is it within its limit, so that who holds a unit already may take more jobs under it? */
static inline bool
ujobs_limit_is_kept(const UjobsCap *cap)
{
	return cap->limit == 0 || ujobs_limit_used(cap) <= cap->limit;
}

/* A tenant's, without regard to units: may one more start by its rate? */
extern bool ujobs_limit_rate_allows(UjobsCap *cap, TimestampTz now);
static inline bool
ujobs_limit_has_rate(const UjobsCap *cap)
{
	return cap->queue != NULL && cap->queue->rate_limit.starts > 0;
}

/* ---- changes ---- */

extern void ujobs_limit_set_definition(UjobsCap *cap, int limit);

/* All queues that have a row; the others have no limits. */
extern void ujobs_limit_set_queues(const List *queues);

/* Did any limit change since the last call?  Then units are to be counted anew. */
extern bool ujobs_limit_take_change(void);

/* Does anything have a limit that executors' units are counted for? */
extern bool ujobs_limit_any(void);

/* Forgets executors' units: the caller counts them again. */
extern void ujobs_limit_forget_executors(void);

/*
 * The caps with a limit that a ticket is under, at most UJOBS_CAP_KINDS;
 * returns their number.
 */
extern int	ujobs_limit_of(const UjobsTicket *ticket, UjobsCap **caps);

/* An executor's first ticket under it, its last one finished or taken back. */
extern void ujobs_limit_take_executor(UjobsCap *cap);
extern void ujobs_limit_return_executor(UjobsCap *cap);

/*
 * A job goes to a program outside, or one that was there already is found at
 * the start; it comes back or ends.  Of the ticket only definition_id,
 * queue_hash and tenant_hash are read.
 */
extern void ujobs_limit_take_outside(const UjobsTicket *ticket);
extern void ujobs_limit_return_outside(const UjobsTicket *ticket);

/* Something under the tenant's rate is handed out; it began; it did not begin. */
extern void ujobs_limit_rate_give(UjobsCap *cap);
extern void ujobs_limit_rate_began(const UjobsTicket *ticket, TimestampTz at);
extern void ujobs_limit_rate_back(const UjobsTicket *ticket);

/* ---- who waits for a tenant's unit or rate ---- */

/* Its tenant queues wait: tell when its rate allows more. */
extern void ujobs_limit_watch_rate(UjobsCap *cap, TimestampTz now);

/* The next tenant below its limit again whose tenant queues wait, or NULL. */
extern UjobsCap *ujobs_limit_next_freed(TimestampTz now);

/* When a rate allows more, or DT_NOEND. */
extern TimestampTz ujobs_limit_next(void);

/* For those who ask why: its state, in shared memory. */
extern void ujobs_limit_show(UjobsCap *cap);

/* Forgets tenants of whom nothing is known but their name. */
extern void ujobs_limit_sweep(TimestampTz now);

#endif							/* UJOBS_WORKER_DISPATCH_LIMIT_H */
