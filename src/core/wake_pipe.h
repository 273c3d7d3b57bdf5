/*
 * wake_pipe.h: how a thread wakes the process's one wait.
 *
 * A latch may only be set by PostgreSQL's own code, and a thread never calls
 * that; so it writes a byte into a pipe.
 */
#ifndef UJOBS_CORE_WAKE_PIPE_H
#define UJOBS_CORE_WAKE_PIPE_H

#include "postgres.h"

typedef struct UjobsWakePipe
{
	int			read_end;
	int			write_end;
} UjobsWakePipe;

/* Raises when the process has no files left. */
extern void ujobs_wake_pipe_open(UjobsWakePipe *wake_pipe);
extern void ujobs_wake_pipe_close(UjobsWakePipe *wake_pipe);

/* By a thread; write_end is all that it knows. */
extern void ujobs_wake_pipe_write(int write_end);

/*
 * Waits for the pipe, this process's latch, or timeout_ms (-1: for ever), and
 * resets what came; the caller checks for interrupts.  Under the name
 * UjobsSink where the server has named wait events.
 */
extern void ujobs_wake_pipe_wait(UjobsWakePipe *wake_pipe, long timeout_ms);

#endif							/* UJOBS_CORE_WAKE_PIPE_H */
