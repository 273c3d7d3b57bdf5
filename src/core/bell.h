/*
 * bell.h: how a thread wakes the process's one wait.
 *
 * A latch may only be set by PostgreSQL's own code, and a thread never calls
 * that; so it writes a byte into a pipe.
 */
#ifndef UJOBS_CORE_BELL_H
#define UJOBS_CORE_BELL_H

#include "postgres.h"

typedef struct UjobsBell
{
	int			read_end;
	int			write_end;
} UjobsBell;

/* Raises when the process has no files left. */
extern void ujobs_bell_open(UjobsBell *bell);
extern void ujobs_bell_close(UjobsBell *bell);

/* By a thread; write_end is all that it knows. */
extern void ujobs_bell_ring(int write_end);

/*
 * Waits for the bell, this process's latch, or timeout_ms (-1: for ever), and
 * resets what came; the caller checks for interrupts.  Under the name
 * UjobsSink where the server has named wait events.
 */
extern void ujobs_bell_wait(UjobsBell *bell, long timeout_ms);

#endif							/* UJOBS_CORE_BELL_H */
