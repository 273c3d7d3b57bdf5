/*
 * catalogue.h: every SQL statement that the C code runs, by name.
 *
 * Users read them with ujobs.statements(); each starts with a comment that
 * holds its name, so it can be found in pg_stat_statements.
 */
#ifndef UJOBS_STORE_CATALOGUE_H
#define UJOBS_STORE_CATALOGUE_H

#include "core/query.h"

typedef enum UjobsStatementId
{
	/* definition_store */
	UJOBS_SQL_DEFINITION_BY_NAME,
	UJOBS_SQL_DEFINITION_BY_ID,
	UJOBS_SQL_DEFINITION_GRANTS,

	/* enqueue_store */

	/* control_store */

	/* job_store */

	/* dispatch_store */

	/* home_store */

	UJOBS_SQL_COUNT
} UjobsStatementId;

extern UjobsStatement *ujobs_statement(UjobsStatementId id);

#endif							/* UJOBS_STORE_CATALOGUE_H */
