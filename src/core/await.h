/*
 * await.h: a session waits until a job has ended.
 */
#ifndef UJOBS_CORE_AWAIT_H
#define UJOBS_CORE_AWAIT_H

#include "postgres.h"

#include "datatype/timestamp.h"

/* True when the wait is over.  Called at least once; it may raise. */
typedef bool (*UjobsAwaitLook) (void *arg);

/*
 * Looks, then sleeps until a commit that ends the job (or a second, in case
 * no hint came), and looks again, until the deadline.  Returns what the
 * last look said.  Ends on cancel and termination like any wait.
 */
extern bool ujobs_await_job(int64 job_id, TimestampTz deadline, UjobsAwaitLook look, void *arg);

/*
 * Does an engine serve this database?  One that is just being started, as
 * after CREATE EXTENSION or start_workers, is given a few seconds.
 */
extern bool ujobs_await_engine(void);

#endif							/* UJOBS_CORE_AWAIT_H */
