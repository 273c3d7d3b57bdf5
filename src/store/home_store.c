/*
 * home_store.c: the origin row.
 *
 * It holds the database's oid and the transaction that inserted it.  Restored
 * from a dump it has another xmin; a database made by CREATE DATABASE
 * TEMPLATE has another oid; pg_upgrade keeps both.  In a strange home the
 * jobs are somebody else's past: nothing starts until start_workers accepts.
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
#include "store/home_store.h"

static UjobsHome
decode(const UjobsResult *result)
{
	if (DatumGetObjectId(ujobs_result_datum(result, 0, 0)) != MyDatabaseId ||
		!DatumGetBool(ujobs_result_datum(result, 0, 1)))
		return UJOBS_HOME_STRANGE;
	return DatumGetBool(ujobs_result_datum(result, 0, 2)) ? UJOBS_HOME_STOPPED : UJOBS_HOME_OWN;
}

UjobsHome
ujobs_home_check(void)
{
	UjobsIdentity identity;
	UjobsResult result;
	UjobsHome	home;

	ujobs_identity_enter(&identity);
	result = ujobs_query_run(ujobs_statement(UJOBS_SQL_HOME_READ), NULL);
	home = result.rows > 0 ? decode(&result) : UJOBS_HOME_NEW;
	ujobs_identity_leave(&identity);
	return home;
}

/*
 * The row's xmin is that of the subtransaction at hand, which is not what
 * pg_current_xact_id() says inside an EXCEPTION block.
 */
void
ujobs_home_settle(void)
{
	UjobsArgs	args = {0};

	ujobs_bind(&args, ObjectIdGetDatum(MyDatabaseId));
	ujobs_bind(&args, FullTransactionIdGetDatum(GetCurrentFullTransactionId()));
	(void) ujobs_query_run(ujobs_statement(UJOBS_SQL_HOME_WRITE), &args);
}

char *
ujobs_home_uuid(void)
{
	UjobsIdentity identity;
	UjobsResult result;
	char	   *uuid = NULL;

	ujobs_identity_enter(&identity);
	result = ujobs_query_run(ujobs_statement(UJOBS_SQL_HOME_UUID), NULL);
	if (result.rows > 0)
		uuid = ujobs_result_text(&result, 0, 0, identity.caller);
	ujobs_identity_leave(&identity);
	return uuid;
}
