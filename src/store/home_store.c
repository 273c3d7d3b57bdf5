/*
 * home_store.c: the origin row.
 *
 * It holds the database's oid and the transaction that inserted it.  Restored
 * from a dump it has another xmin; a database made by CREATE DATABASE
 * TEMPLATE has another oid; pg_upgrade keeps both.  In a strange home the
 * jobs are somebody else's past: nothing starts until start_workers accepts.
 */
#include "postgres.h"

#include "miscadmin.h"

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
	UjobsArgs	args = {0};
	UjobsHome	home = UJOBS_HOME_OWN;

	ujobs_identity_enter(&identity);
	result = ujobs_query_run(ujobs_statement(UJOBS_SQL_HOME_READ), NULL);
	if (result.rows > 0)
		home = decode(&result);
	else
	{
		ujobs_bind(&args, ObjectIdGetDatum(MyDatabaseId));
		(void) ujobs_query_run(ujobs_statement(UJOBS_SQL_HOME_WRITE), &args);
	}
	ujobs_identity_leave(&identity);
	return home;
}
