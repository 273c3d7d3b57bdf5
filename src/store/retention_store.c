/*
 * retention_store.c: retention and names.
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "model/history.h"
#include "store/catalogue.h"
#include "store/retention_store.h"

/* The expiry of a partition's first row; false when it is empty. */
static bool
oldest_of(int slot, TimestampTz *expires_at)
{
	UjobsResult result = ujobs_query_run(
		ujobs_catalogue_statement_for_slot(UJOBS_SQL_RETENTION_OLDEST, slot), NULL);

	if (result.rows == 0)
		return false;
	*expires_at = DatumGetTimestampTz(ujobs_query_result_datum(&result, 0, 0));
	return true;
}

bool
ujobs_retention_rotate(TimestampTz now)
{
	int			slot = ujobs_history_slot(now - USECS_PER_DAY);
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	TimestampTz oldest;
	bool		any;

	ujobs_identity_enter(&identity);
	any = oldest_of(slot, &oldest);
	if (any)
	{
		ujobs_query_bind(&args, TimestampTzGetDatum(now));
		(void) ujobs_query_run(ujobs_catalogue_statement_for_slot(UJOBS_SQL_RETENTION_RENEW, slot),
							   &args);
		(void) ujobs_query_run(ujobs_catalogue_statement_for_slot(UJOBS_SQL_RETENTION_EMPTY, slot),
							   NULL);
	}
	ujobs_identity_leave(&identity);
	return any;
}

void
ujobs_retention_expire(int slot, TimestampTz now)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	TimestampTz oldest;

	ujobs_identity_enter(&identity);
	if (oldest_of(slot, &oldest) && oldest < now - USECS_PER_DAY)
	{
		ujobs_query_bind(&args, TimestampTzGetDatum(now));
		(void) ujobs_query_run(ujobs_catalogue_statement_for_slot(UJOBS_SQL_RETENTION_EXPIRE, slot),
							   &args);
	}
	ujobs_identity_leave(&identity);
}

int64
ujobs_retention_delete_batch(UjobsKept what, TimestampTz until, int max)
{
	static const UjobsStatementId statements[] = {
		[UJOBS_KEPT_EVENTS] = UJOBS_SQL_RETENTION_EVENTS,
		[UJOBS_KEPT_PUBLISHED] = UJOBS_SQL_RETENTION_PUBLISHED,
		[UJOBS_KEPT_TAKEN] = UJOBS_SQL_RETENTION_TAKEN,
	};
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, TimestampTzGetDatum(until));
	ujobs_query_bind(&args, Int64GetDatum(max));
	return (int64) ujobs_catalogue_execute(statements[what], &args);
}

void
ujobs_retention_names(void)
{
	UjobsIdentity identity;

	ujobs_identity_enter(&identity);
	(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_RETENTION_OWNER_NAMES), NULL);
	(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_RETENTION_GRANT_NAMES), NULL);
	(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_RETENTION_TASK_NAMES), NULL);
	ujobs_identity_leave(&identity);
}

void
ujobs_retention_left_steps(void)
{
	(void) ujobs_catalogue_execute(UJOBS_SQL_RETENTION_LEFT_STEPS, NULL);
}
