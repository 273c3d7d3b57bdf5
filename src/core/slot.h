/*
 * slot.h: executors' slots and their rings of admitted jobs.
 *
 * A slot is the lease of a running job: its process cannot be cut off from
 * its database, so nothing is written to claim.  Each function takes the
 * slot's spinlock itself, those that allocate or free a slot slot_lock; none
 * raises or allocates.
 */
#ifndef UJOBS_CORE_SLOT_H
#define UJOBS_CORE_SLOT_H

#include "core/shmem.h"

#define UJOBS_TICKET_PROBATION 1	/* runs alone: it was running when the server crashed */
#define UJOBS_TICKET_GIVE_UP 2	/* its executors were terminated again and again: count it, do not run it */
#define UJOBS_TICKET_WOKEN 4	/* its wait is over: it may run before its row is due */
#define UJOBS_TICKET_RATED 8	/* its tenant has a rate: the ticket is told when its job begins */

/*
 * Dispatcher: take a free slot for a new executor, at most max_workers being
 * in use in the cluster, or as few as ujobs_slot_limit allows.  -1 when there
 * is none.  A slot that is not settled counts as used: the caller has not yet
 * looked at what the executor that left it had done.
 *
 * Of the functions below those with a generation do nothing when the slot is
 * free or another executor's by now.
 */
extern int ujobs_slot_allocate(Oid database, Oid role, int max_workers,
							   bool (*is_settled)(int index), uint32 *generation);

/* For so many microseconds no executor comes to be beyond so many; 1 is always allowed. */
extern void ujobs_slot_limit(int most, int64 us);

/* Slots in use in the cluster; leaving: of those, how many were asked to leave. */
extern int	ujobs_slot_count(int *leaving);

/*
 * Dispatcher, or the executor's own exit: the slot is free again.  died: it
 * did not leave by itself.
 */
extern void ujobs_slot_free(int index, uint32 generation, bool died);

/* Dispatcher: the same for a process that never began; false: it has begun after all. */
extern bool ujobs_slot_free_lost(int index, uint32 generation);

/* Executor: its process begins.  False when the slot was given to another meanwhile. */
extern bool ujobs_slot_attach(int index, uint32 generation);

/* Dispatcher: admit jobs; as many as fit are taken, their number returned. */
extern int ujobs_slot_push(UjobsArea *area, int index, uint32 generation,
						   const UjobsTicket *tickets, int n);

/* Dispatcher: take back up to max jobs that were not begun, from the tail. */
extern int ujobs_slot_reclaim(UjobsArea *area, int index, uint32 generation, UjobsTicket *out,
							  int max);

/* Executor: the next ticket without taking it; false when there is none. */
extern bool ujobs_slot_peek(UjobsArea *area, int index, UjobsTicket *out);

/* Executor: next tickets, all of one definition and of the same flags; 0 when empty (then idle). */
extern int	ujobs_slot_take(UjobsArea *area, int index, UjobsTicket *out, int max);

/* Executor: finished with n of the tickets taken; true when the dispatcher wants to know. */
extern bool ujobs_slot_done(int index, int n, int jobs);

/* Executor: this job begins.  Clears a cancel meant for another. */
extern void ujobs_slot_begin_job(int index, const UjobsTicket *ticket, int32 attempt,
								 TimestampTz at);

/*
 * Executor: the handlers of what was taken, begun at that instant, have
 * returned; a commit follows.
 */
extern void ujobs_slot_worked(int index, TimestampTz began);

/* Executor: it ended; true when a cancel was sent to it. */
extern bool ujobs_slot_end_job(int index);

/* Dispatcher: interrupt this job if it is the one running there. */
extern bool ujobs_slot_cancel(int index, uint32 generation, int64 job_id);

/* Executor, also from a signal handler: the job at hand was told to end, its time being over. */
extern void ujobs_slot_note_timeout(int index);

/* When the job running there was first told to end, by a timeout or a cancel; 0: it was not. */
extern TimestampTz ujobs_slot_interrupted_at(int index);

/*
 * Dispatcher: SIGTERM to an executor whose job was told to end before that
 * instant and goes on; once.  The job's id, or 0: none was sent.
 */
extern int64 ujobs_slot_evict(int index, uint32 generation, TimestampTz interrupted_before);

/* Executor: the job that it was sent for, 0 = none: perhaps not the one at hand any more. */
extern int64 ujobs_slot_evicted_job(int index);

/* Dispatcher: when to be told: at so few tickets left, or after every job. */
extern void ujobs_slot_set_wakeup(int index, uint32 generation, uint32 low_water, bool notify);

/* Dispatcher: have the handlers returned, so that only the commit is waited for? */
extern bool ujobs_slot_is_committing(int index);

/* A consistent copy. */
extern void ujobs_slot_copy(int index, UjobsSlot *copy);

/*
 * The same of this executor, also when another database's dispatcher has taken
 * the slot since: then it is free, and only taken and died count.  False: it
 * was taken more than once, so what its executor left is not known.
 */
extern bool ujobs_slot_copy_of(int index, uint32 generation, UjobsSlot *copy);

/* Where the executor tells how much memory it has allocated. */
extern pg_atomic_uint64 *ujobs_slot_memory(int index);

/* Ask an executor to go (when its job is done), and wake it. */
extern void ujobs_slot_ask_leave(int index, uint32 generation);

/*
 * The same, its slot being kept for this role for a moment: who waits longest
 * would lose the race.
 */
extern void ujobs_slot_ask_leave_for(int index, uint32 generation, Oid database, Oid role);

/* SIGTERM to all executors of a database: their jobs are given back. */
extern void ujobs_slot_terminate_all(Oid database);

/* The slot that runs a job of this database now, copied unless copy is NULL; or -1. */
extern int	ujobs_slot_find_running(int64 job_id, UjobsSlot *copy);

/* Wake an executor. */
extern void ujobs_slot_wake(int index);

#endif							/* UJOBS_CORE_SLOT_H */
