/*
 * store_identity.c: the origin row.
 *
 * It holds the database's oid and the transaction that inserted it.  Restored
 * from a dump it has another xmin; a database made by CREATE DATABASE
 * TEMPLATE has another oid; pg_upgrade keeps both.  In another database the
 * jobs are those of another database: nothing starts until start_workers accepts.
 *
 * The row is written with the first job definition, not by the engine: in a
 * database that is being restored an engine may be up before the rows are
 * there, and must not take the place for its own.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/xid8.h"

#include "store/catalogue.h"
#include "store/store_identity.h"

static UjobsStoreIdentity
decode(const UjobsResult *result)
{
	if (DatumGetObjectId(ujobs_query_result_datum(result, 0, 0)) != MyDatabaseId ||
		!DatumGetBool(ujobs_query_result_datum(result, 0, 1)))
		return UJOBS_STORE_STRANGE;
	return DatumGetBool(ujobs_query_result_datum(result, 0, 2)) ? UJOBS_STORE_STOPPED :
																  UJOBS_STORE_OWN;
}

UjobsStoreIdentity
ujobs_store_identity_check(void)
{
	UjobsIdentity identity;
	UjobsResult result;
	UjobsStoreIdentity found;

	ujobs_identity_enter(&identity);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_STORE_IDENTITY_READ), NULL);
	found = result.rows > 0 ? decode(&result) : UJOBS_STORE_NEW;
	ujobs_identity_leave(&identity);
	return found;
}

/*
 * The row's xmin is that of the subtransaction at hand, which is not what
 * pg_current_xact_id() says inside an EXCEPTION block.
 */
void
ujobs_store_identity_settle(void)
{
	UjobsArgs	args = {0};

	ujobs_query_bind(&args, ObjectIdGetDatum(MyDatabaseId));
	ujobs_query_bind(&args, FullTransactionIdGetDatum(GetCurrentFullTransactionId()));
	(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_STORE_IDENTITY_WRITE), &args);
}

char *
ujobs_store_identity_uuid(void)
{
	UjobsIdentity identity;
	UjobsResult result;
	char	   *uuid = NULL;

	ujobs_identity_enter(&identity);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_STORE_IDENTITY_UUID), NULL);
	if (result.rows > 0)
		uuid = ujobs_query_result_text(&result, 0, 0, identity.caller);
	ujobs_identity_leave(&identity);
	return uuid;
}
