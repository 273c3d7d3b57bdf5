/*
 * defaults.h: what ALTER DATABASE and ALTER ROLE ... SET say to an engine's session.
 */
#ifndef UJOBS_RUN_DEFAULTS_H
#define UJOBS_RUN_DEFAULTS_H

#include "postgres.h"

/* After login: one of those settings may be a role; this session is `role` all the same, or ends. */
extern void ujobs_defaults_become(Oid role);

/*
 * Takes over what was SET since login, in a transaction of its own.  What was
 * RESET since then stays until the process ends.
 */
extern void ujobs_defaults_follow(Oid role);

#endif							/* UJOBS_RUN_DEFAULTS_H */
