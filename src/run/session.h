/*
 * session.h: what a handler finds when it starts, and leaves nothing of.
 */
#ifndef UJOBS_RUN_SESSION_H
#define UJOBS_RUN_SESSION_H

#include "model/job.h"

/* Around one atomic handler inside a transaction: its settings are undone at the end. */
typedef struct UjobsSession
{
	int			guc_level;		/* 0: the handler may commit, reset afterwards instead */
} UjobsSession;

/*
 * Sets tenant and trace for the run.  may_commit: a procedure or command at
 * top level, whose commits would end a nested settings level.
 */
extern void ujobs_session_begin(UjobsSession *session, const UjobsJob *job, bool may_commit);

/* After a handler that returned, still in its transaction. */
extern void ujobs_session_end(UjobsSession *session);

/* The same in a client's session, where only settings are the handler's for sure. */
extern void ujobs_session_end_settings(UjobsSession *session);

/* Between transactions: what outlives even an aborted one (advisory locks, prepared statements). */
extern void ujobs_session_reset(void);

/* In a transaction of its own: what a handler that commits may have left as well. */
extern void ujobs_session_reset_settings(void);

/* ---- what ALTER DATABASE and ALTER ROLE ... SET say ---- */

/*
 * After login: one of those settings may be a role; this session is `role` all
 * the same, or ends.
 */
extern void ujobs_session_become(Oid role);

/*
 * Takes over what was SET since login, in a transaction of its own.  What was
 * RESET since then stays until the process ends.
 */
extern void ujobs_session_follow_defaults(Oid role);

#endif							/* UJOBS_RUN_SESSION_H */
