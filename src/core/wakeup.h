/*
 * wakeup.h: what a transaction tells the engine when, and only when, it commits.
 *
 * A change of rows that may start, stop or redirect work is noted during the
 * transaction and published right after commit, when every other session can
 * see the rows.  A savepoint rolled back leaves a false note, which costs one
 * look-up.  Notes are bounded; beyond the bound the engine rescans.
 */
#ifndef UJOBS_CORE_WAKEUP_H
#define UJOBS_CORE_WAKEUP_H

#include "core/shmem.h"

/* Publish this hint at commit.  May allocate and attach; call inside a transaction. */
extern void ujobs_wakeup_note(const UjobsHint *hint);

/* How many hints this session has noted, ever: a change means that rows changed. */
extern uint64 ujobs_wakeup_noted(void);

/* The job ends in this transaction: wake sessions and jobs that wait for it at commit. */
extern void ujobs_wakeup_note_finished(int64 job_id);

/*
 * The job is suspended in this transaction, at a wait for an event or a job.
 * At commit the dispatcher looks whether the wait is over already.
 */
extern void ujobs_wakeup_note_wait(int64 job_id);

/* This transaction publishes the event: at commit those who wait for it are woken. */
extern void ujobs_wakeup_note_event(int64 event_id);

/* This transaction writes the outbox row: at commit the relay looks from it on. */
extern void ujobs_wakeup_note_outbox(int64 outbox_id);

/*
 * Sinks, consumers or definitions change in this transaction: at commit the
 * relay reads them again.
 */
extern void ujobs_wakeup_note_relay(void);

/*
 * The relay's side: the least outbox id that committed since the last call,
 * PG_INT64_MAX = none; 0 = all.
 */
extern int64 ujobs_wakeup_take_outbox(UjobsEngine *engine);

/* The relay's side: did sinks, consumers or definitions change since the last call? */
extern bool ujobs_wakeup_take_relay(UjobsEngine *engine);

/* At commit make the dispatcher rescan: rows changed that no hint describes. */
extern void ujobs_wakeup_note_rescan(void);

/* At commit make the launcher look at this database (CREATE EXTENSION, start_workers). */
extern void ujobs_wakeup_note_launcher(void);

/* Rescan now, outside any transaction's fate: COMMIT PREPARED, bulk loads. */
extern void ujobs_wakeup_rescan_now(void);

/* Set the dispatcher's latch now; safe anywhere. */
extern void ujobs_wakeup_dispatcher(void);

/*
 * Wait for the end of a job, registered before the caller looks at its row:
 * returns an index for ujobs_wakeup_unwait, or -1 when the list is full (poll).
 */
extern int	ujobs_wakeup_wait(int64 job_id);
extern void ujobs_wakeup_unwait(int index);

/* The dispatcher's side: take up to max hints; returns their number. */
extern int	ujobs_wakeup_take(UjobsHint *hints, int max);

/* The dispatcher's side: were hints lost since the last call? */
extern bool ujobs_wakeup_take_dirty(UjobsEngine *engine);

#endif							/* UJOBS_CORE_WAKEUP_H */
