/*
 * timed_call.h: a call that may block for longer than its caller may wait.
 */
#ifndef UJOBS_SINK_TIMED_CALL_H
#define UJOBS_SINK_TIMED_CALL_H

#include "core/sink.h"

/*
 * Exactly one of release and interrupt is set.
 *
 * release: a call that takes too long is abandoned.  Its thread goes on by itself and
 * then calls release(argument); it must use nothing but the argument's own memory.
 *
 * interrupt: a call that takes too long is ended by interrupt(argument), called by the
 * waiting thread; work then returns soon, and is waited for.
 */
typedef struct UjobsTimedCall
{
	void		(*work) (void *argument);
	void		(*release) (void *argument);
	void		(*interrupt) (void *argument);
	void	   *argument;
} UjobsTimedCall;

typedef enum UjobsTimedCallEnd
{
	UJOBS_TIMED_CALL_DONE,
	UJOBS_TIMED_CALL_LATE,		/* stopped, or past the deadline */
	UJOBS_TIMED_CALL_NOT_STARTED	/* no memory, or no thread */
} UjobsTimedCallEnd;

/*
 * Runs work(argument) in a thread of its own and waits for it until the deadline, in ms
 * of ujobs_option_now, or the stop.  Unless it is DONE, error is set and the argument is
 * released, or will be by the thread that has it.
 */
extern UjobsTimedCallEnd ujobs_timed_call_run(const UjobsSinkOptions *options, int64_t deadline,
											  const UjobsTimedCall *call, UjobsSinkError *error);

/* Is the deadline past, or the process stopped?  Then error says which. */
extern bool ujobs_timed_call_is_late(const UjobsSinkOptions *options, int64_t deadline,
									 UjobsSinkError *error);

#endif							/* UJOBS_SINK_TIMED_CALL_H */
