/*
 * catalogue.h: every SQL statement that the C code runs, by name.
 *
 * Users read them with ujobs.statements(); each starts with a comment that
 * holds its name, so it can be found in pg_stat_statements.
 */
#ifndef UJOBS_STORE_CATALOGUE_H
#define UJOBS_STORE_CATALOGUE_H

#include "core/query.h"
#include "model/ring.h"

typedef enum UjobsStatementId
{
	/* definition_store */
	UJOBS_SQL_DEFINITION_BY_NAME,
	UJOBS_SQL_DEFINITION_BY_ID,
	UJOBS_SQL_DEFINITION_GRANTS,

	/* define_store */
	UJOBS_SQL_DEFINE_LOCK,
	UJOBS_SQL_DEFINE_INSERT,
	UJOBS_SQL_DEFINE_UPDATE,
	UJOBS_SQL_DEFINE_SET_OWNER,
	UJOBS_SQL_DEFINE_AWAKEN,
	UJOBS_SQL_DEFINE_GRANT,
	UJOBS_SQL_DEFINE_REVOKE,
	UJOBS_SQL_DEFINE_DROP,
	UJOBS_SQL_DEFINE_DROP_GRANTS,
	UJOBS_SQL_DEFINE_COUNT_LIVE,
	UJOBS_SQL_DEFINE_CANCEL_ALL,
	UJOBS_SQL_DEFINE_CANCEL_RUNNING,

	/* enqueue_store */
	UJOBS_SQL_ENQUEUE_INSERT,
	UJOBS_SQL_ENQUEUE_INSERT_MANY,
	UJOBS_SQL_ENQUEUE_HOLDER,
	UJOBS_SQL_ENQUEUE_HOLDERS,
	UJOBS_SQL_ENQUEUE_HOLDER_LOCK,
	UJOBS_SQL_ENQUEUE_REPLACE,

	/* control_store */
	UJOBS_SQL_CONTROL_LIVE,
	UJOBS_SQL_CONTROL_HISTORY,	/* by partition */
	UJOBS_SQL_CONTROL_LOCK,
	UJOBS_SQL_CONTROL_CANCEL,	/* by partition */
	UJOBS_SQL_CONTROL_FORGET,	/* by partition */
	UJOBS_SQL_CONTROL_RESTART,
	UJOBS_SQL_CONTROL_REVIVE,	/* by partition */
	UJOBS_SQL_CONTROL_DROP_STEPS,
	UJOBS_SQL_CONTROL_EVENTS_SINCE,
	UJOBS_SQL_CONTROL_KEY_HOLDER,
	UJOBS_SQL_CONTROL_PAUSE_QUEUE,
	UJOBS_SQL_CONTROL_RESUME_QUEUE,
	UJOBS_SQL_CONTROL_PURGE,
	UJOBS_SQL_CONTROL_ORIGIN,
	UJOBS_SQL_CONTROL_WRITE_HOME,
	UJOBS_SQL_CONTROL_STOP_STRANGE,
	UJOBS_SQL_CONTROL_RESOLVE_OWNERS,
	UJOBS_SQL_CONTROL_RESOLVE_GRANTS,

	/* job_store */
	UJOBS_SQL_JOB_RETRY,
	UJOBS_SQL_JOB_END,			/* by partition */
	UJOBS_SQL_JOB_FORGET_STEPS,

	/* dispatch_store */
	UJOBS_SQL_DISPATCH_NEXT_LANE,
	UJOBS_SQL_DISPATCH_NEXT_PRIORITY,
	UJOBS_SQL_DISPATCH_DUE,
	UJOBS_SQL_DISPATCH_FUTURE,
	UJOBS_SQL_DISPATCH_PAUSED,

	/* drain_store */
	UJOBS_SQL_DRAIN_DUE,
	UJOBS_SQL_DRAIN_LOCK,
	UJOBS_SQL_DRAIN_LEFTOVERS,

	/* history_store */
	UJOBS_SQL_HISTORY_FIND,		/* by partition */
	UJOBS_SQL_INSPECT_LIVE,
	UJOBS_SQL_INSPECT_HISTORY,	/* by partition */
	UJOBS_SQL_WHY_LIVE,
	UJOBS_SQL_WHY_HISTORY,		/* by partition */

	/* home_store */
	UJOBS_SQL_HOME_READ,
	UJOBS_SQL_HOME_WRITE,

	/* keeping_store */
	UJOBS_SQL_KEEPING_OLDEST,	/* by partition */
	UJOBS_SQL_KEEPING_RENEW,	/* by partition */
	UJOBS_SQL_KEEPING_EXPIRE,	/* by partition */
	UJOBS_SQL_KEEPING_EMPTY,	/* by partition */
	UJOBS_SQL_KEEPING_LEFT_STEPS,
	UJOBS_SQL_KEEPING_OWNER_NAMES,
	UJOBS_SQL_KEEPING_GRANT_NAMES,

	UJOBS_SQL_COUNT
} UjobsStatementId;

extern UjobsStatement *ujobs_statement(UjobsStatementId id);

/*
 * The statement for one partition of the history (0..31): written once with
 * the parent's name, run against job_history_N, because routing a row
 * through the parent opens it anew in every statement.
 */
extern UjobsStatement *ujobs_statement_for_slot(UjobsStatementId id, int slot);

#endif							/* UJOBS_STORE_CATALOGUE_H */
