/*
 * catalogue.c: the statements, in the order of catalogue.h.
 *
 * Schema-qualified, lower-case keywords, one clause a line.  They run as the
 * extension's owner with search_path pinned to pg_catalog.
 */
#include "postgres.h"

#include "catalog/pg_type.h"

#include "store/catalogue.h"

#define DEFINITION_COLUMNS \
	"select id, name, kind, handler, owner, owner_name, idempotency_key, tenant, input_schema, retry,\n" \
	"       queue, priority, concurrency, timeout, step_timeout, batch, retention, dropped_at is not null\n" \
	"  from ujobs_internal.definition\n"

static UjobsStatement statements[UJOBS_SQL_COUNT] = {
	/* definition_store */
	[UJOBS_SQL_DEFINITION_BY_NAME] = {
		"definition_by_name",
		"/* ujobs:definition_by_name */\n"
		DEFINITION_COLUMNS
		" where name = $1\n"
		"   and dropped_at is null",
		1, {TEXTOID}
	},
	[UJOBS_SQL_DEFINITION_BY_ID] = {
		"definition_by_id",
		"/* ujobs:definition_by_id */\n"
		DEFINITION_COLUMNS
		" where id = $1",
		1, {INT4OID}
	},
	[UJOBS_SQL_DEFINITION_GRANTS] = {
		"definition_grants",
		"/* ujobs:definition_grants */\n"
		"select privilege, role\n"
		"  from ujobs_internal.definition_grant\n"
		" where definition_id = $1",
		1, {INT4OID}
	},

	/* enqueue_store */

	/* control_store */

	/* job_store */

	/* dispatch_store */

	/* home_store */
};

UjobsStatement *
ujobs_statement(UjobsStatementId id)
{
	Assert(id >= 0 && id < UJOBS_SQL_COUNT);
	return &statements[id];
}
