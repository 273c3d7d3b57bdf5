/*
 * session_stats.h: what a DBA sees of an engine process: activity and wait events.
 */
#ifndef UJOBS_CORE_SESSION_STATS_H
#define UJOBS_CORE_SESSION_STATS_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "port/atomics.h"

/* Waits on this process's latch, under the name UjobsMain where the server has named events. */
extern void ujobs_session_stats_wait(long timeout_ms);

/* pg_stat_activity: running this text, or idle (NULL). */
extern void ujobs_session_stats_activity(const char *text);

/*
 * Puts there how much memory this process has allocated, at most once a
 * second: it visits all contexts.
 */
extern void ujobs_session_stats_memory(TimestampTz now, pg_atomic_uint64 *bytes);

/* Sends statistics; force before going idle or away. */
extern void ujobs_session_stats_report(bool force);

#endif							/* UJOBS_CORE_SESSION_STATS_H */
