/*
 * connection.h: one connection to another system, in a thread of its own.
 *
 * A sink module's functions block: name look-up, TLS, a system that does not
 * answer.  The thread calls them and nothing else; the process (relay, or a
 * session that tries a sink) gives it batches, gets them back with fates, and
 * waits for all its threads with one pipe (wake_pipe.h).  The thread never calls
 * PostgreSQL and blocks every signal.
 *
 * Once it is broken, its owner stops it and starts another one, now or later.
 *
 * Every function here is the owner's; none of them blocks but stop and try.
 */
#ifndef UJOBS_CORE_CONNECTION_H
#define UJOBS_CORE_CONNECTION_H

#include "postgres.h"

#include "core/wake_pipe.h"
#include "core/sink_batch.h"
#include "core/sink.h"

typedef struct UjobsConnection UjobsConnection;

typedef enum UjobsConnectionState
{
	UJOBS_CONNECTION_CONNECTING,
	UJOBS_CONNECTION_READY,
	UJOBS_CONNECTION_BROKEN		/* nothing will come of it any more */
} UjobsConnectionState;

typedef struct UjobsConnectionPlan
{
	const UjobsSinkModule *module;
	const UjobsSinkOptions *options;	/* copied; `stop` is the connection's own */
	const char *queue;			/* whose jobs it takes; NULL: it publishes */
	int			wake_end;		/* of a pipe; written to when something is new */
} UjobsConnectionPlan;

/* NULL with errno when there is no memory or no thread to be had. */
extern UjobsConnection *ujobs_connection_start(const UjobsConnectionPlan *plan);

/* error is set with BROKEN; may be NULL. */
extern UjobsConnectionState ujobs_connection_state(UjobsConnection *connection,
												   UjobsSinkError *error);

/* ---- publishing ---- */

/* Takes the batch over; sent after those before it. */
extern void ujobs_connection_send(UjobsConnection *connection, UjobsSinkBatch *batch);

/*
 * A batch that came back, in the order of sending, or NULL.  It is the
 * owner's again.  A broken connection gives all of them back, the unsent ones
 * untried.
 */
extern UjobsSinkBatch *ujobs_connection_collect(UjobsConnection *connection);

/* ---- taking ---- */

/* At most so many at once from now on, 0: none. */
extern void ujobs_connection_allow(UjobsConnection *connection, int max);

/*
 * What was taken and waits for its verdicts (LEAVE until changed); 0: nothing.
 * The deliveries are the owner's until settle or stop.
 */
extern int	ujobs_connection_taken(UjobsConnection *connection, UjobsSinkDelivery **deliveries);
extern void ujobs_connection_settle(UjobsConnection *connection);

/* ---- the end ---- */

/*
 * Ends it, with what it still has.  Waits half a second for the thread;
 * one that hangs longer is left alone and ends by itself, or with the process.
 * NULL is allowed.
 */
extern void ujobs_connection_stop(UjobsConnection *connection);

/*
 * Can a connection be made with these options?  For a session: waits at most
 * timeout_ms, ends on cancel.  The plan's wake_end is ignored.
 */
extern bool ujobs_connection_try(const UjobsConnectionPlan *plan, int timeout_ms,
								 UjobsSinkError *error);

#endif							/* UJOBS_CORE_CONNECTION_H */
