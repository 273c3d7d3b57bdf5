/*
 * current.h: the job that this session runs right now, for the functions that
 * a handler may call about itself.
 */
#ifndef UJOBS_RUN_CURRENT_H
#define UJOBS_RUN_CURRENT_H

#include "model/job.h"

/* A run of the job begins.  The struct must live as long as its handler runs. */
extern void ujobs_current_begin(const UjobsJob *job);

/* Around its handler, also one that an error unwound: by executors and drain. */
extern void ujobs_current_enter(void);
extern void ujobs_current_leave(void);

/* Does this session run a handler right now? */
extern bool ujobs_current_in_handler(void);

/* The job whose handler is running, or NULL outside one. */
extern const UjobsJob *ujobs_current_job(void);

/* The handler asks to be tried again after exactly this delay (us), by UJ021. */
extern void ujobs_current_ask_delay(int64 delay);

/*
 * What is about to be raised would be raised by every other attempt too: this
 * run's error is terminal.
 */
extern void ujobs_current_give_up(void);
extern bool ujobs_current_gave_up(void);

/* What this run asked for with the error that ended it; -1 = nothing. */
extern int64 ujobs_current_asked_delay(int sqlerrcode);

#endif							/* UJOBS_RUN_CURRENT_H */
