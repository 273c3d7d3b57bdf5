/*
 * interrupt.h: what may stop an attempt from outside: its clock, the clock of
 * a step, a cancel.
 *
 * Each is a flag that stays set until the next attempt, so that a handler
 * that catches the error they raise is stopped at the next place that asks.
 */
#ifndef UJOBS_RUN_INTERRUPT_H
#define UJOBS_RUN_INTERRUPT_H

#include "postgres.h"

/*
 * An executor, once: clocks run in its process.  In drain none does.
 * on_passed is called in a signal handler when one has run out.
 */
extern void ujobs_interrupt_init(void (*on_passed)(void));

/* An attempt begins: nothing has happened yet. */
extern void ujobs_interrupt_reset(void);

/* Its clock, and that of a step, run for so long (ms; 0: none). */
extern void ujobs_interrupt_time_job(int64 ms);
extern void ujobs_interrupt_time_step(int64 ms);
extern void ujobs_interrupt_stop_step(void);

/* The handler returned: no clock runs any more. */
extern void ujobs_interrupt_stop(void);

/* From a signal handler: the statement was cancelled. */
extern void ujobs_interrupt_note_cancel(void);
extern bool ujobs_interrupt_was_cancelled(void);

/*
 * In drain: has SIGINT, which cancels and statement timeouts send, come since
 * the watch began?  A watch that an error ended does no harm.
 */
extern void ujobs_interrupt_watch(void);
extern void ujobs_interrupt_unwatch(void);
extern bool ujobs_interrupt_was_signalled(void);

/* Did a clock run out? */
extern bool ujobs_interrupt_timed_out(void);

/* Raises what happened: UJ014, or 57014 for a cancel where cancels count. */
extern void ujobs_interrupt_check(void);

/* UJ014 in words; in the current context. */
extern ErrorData *ujobs_interrupt_timeout_error(void);

#endif							/* UJOBS_RUN_INTERRUPT_H */
