/*
 * api_install.c: CREATE EXTENSION tells the launcher when it commits.
 */
#include "postgres.h"

#include "fmgr.h"

#include "core/wakeup.h"

PG_FUNCTION_INFO_V1(ujobs_sql_installed);

/* ujobs_internal.installed(): an engine may start in this database. */
Datum
ujobs_sql_installed(PG_FUNCTION_ARGS)
{
	UjobsHint	hint = {.kind = UJOBS_HINT_CONFIG};

	ujobs_wakeup_note(&hint);
	ujobs_wakeup_note_launcher();
	PG_RETURN_VOID();
}
