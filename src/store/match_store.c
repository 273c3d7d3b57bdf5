/*
 * match_store.c: the looks of match_store.h as statements.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/memutils.h"

#include "core/hash.h"
#include "core/identity.h"
#include "core/shmem.h"
#include "store/catalogue.h"
#include "store/match_store.h"

static void
bind_ids(UjobsArgs *args, const int64 *ids, int n)
{
	Datum	   *values = palloc((n + 1) * sizeof(Datum));

	for (int i = 0; i < n; i++)
		values[i] = Int64GetDatum(ids[i]);
	ujobs_query_bind_array(args, INT8OID, values, NULL, n);
	pfree(values);
}

static UjobsMatches
decode(const UjobsResult *result, MemoryContext into)
{
	UjobsMatches matches = {.n = (int64) result->rows};

	matches.job = MemoryContextAllocHuge(into, (matches.n + 1) * sizeof(UjobsMatched));
	for (int64 row = 0; row < matches.n; row++)
	{
		UjobsMatched *job = &matches.job[row];
		char	   *queue = ujobs_query_result_text(result, row, 2, CurrentMemoryContext);

		job->id = DatumGetInt64(ujobs_query_result_datum(result, row, 0));
		job->definition_id = DatumGetInt32(ujobs_query_result_datum(result, row, 1));
		strlcpy(job->queue, queue, NAMEDATALEN);
		job->priority = DatumGetInt16(ujobs_query_result_datum(result, row, 3));
		job->writer = DatumGetTransactionId(ujobs_query_result_datum(result, row, 4));
		job->tenant_hash = ujobs_hash_tenant(
			ujobs_query_result_text(result, row, 5, CurrentMemoryContext));
		pfree(queue);
	}
	return matches;
}

static UjobsMatches
match(UjobsStatementId id, UjobsIdentity *identity, UjobsArgs *args)
{
	UjobsResult result = ujobs_query_run(ujobs_catalogue_statement(id), args);
	UjobsMatches matches = decode(&result, identity->caller);

	ujobs_identity_leave(identity);
	return matches;
}

UjobsMatches
ujobs_match_events(const int64 *event_ids, int n, TimestampTz now)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};

	ujobs_identity_enter(&identity);
	bind_ids(&args, event_ids, n);
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	return match(UJOBS_SQL_MATCH_EVENTS, &identity, &args);
}

UjobsMatches
ujobs_match_waits(const int64 *job_ids, int n, TimestampTz now)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};

	ujobs_identity_enter(&identity);
	bind_ids(&args, job_ids, n);
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	return match(UJOBS_SQL_MATCH_WAITS, &identity, &args);
}

UjobsMatches
ujobs_match_ended(const int64 *child_ids, int n)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};

	ujobs_identity_enter(&identity);
	bind_ids(&args, child_ids, n);
	return match(UJOBS_SQL_MATCH_ENDED, &identity, &args);
}

UjobsMatches
ujobs_match_all(TimestampTz now, TransactionId writer)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};

	ujobs_identity_enter(&identity);
	ujobs_query_bind(&args, TimestampTzGetDatum(now));
	ujobs_query_bind_maybe(&args, TransactionIdGetDatum(writer));
	return match(UJOBS_SQL_MATCH_ALL, &identity, &args);
}

int64 *
ujobs_match_children(const int64 *job_ids, int n, int *n_children)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult result;
	int64	   *children;

	ujobs_identity_enter(&identity);
	if (job_ids == NULL)
		result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_MATCH_ALL_CHILDREN), NULL);
	else
	{
		bind_ids(&args, job_ids, n);
		result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_MATCH_CHILDREN), &args);
	}
	*n_children = (int) result.rows;
	children = MemoryContextAllocHuge(identity.caller, (result.rows + 1) * sizeof(int64));
	for (uint64 row = 0; row < result.rows; row++)
		children[row] = DatumGetInt64(ujobs_query_result_datum(&result, row, 0));
	ujobs_identity_leave(&identity);
	return children;
}
