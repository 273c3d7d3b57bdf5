/*
 * identity.c: the one place that switches users.
 *
 * The search_path must be pinned as well as the user: a handler may leave a
 * path with operators of its own in front, and plans are analysed again when
 * the path changes, so cached plans would not protect.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_namespace.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/syscache.h"

#include "core/identity.h"

Oid
ujobs_identity_extension_owner(void)
{
	HeapTuple	tuple = SearchSysCache1(NAMESPACENAME, CStringGetDatum("ujobs_internal"));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	owner = ((Form_pg_namespace) GETSTRUCT(tuple))->nspowner;
	ReleaseSysCache(tuple);
	return owner;
}

void
ujobs_identity_enter(UjobsIdentity *identity)
{
	Oid			owner = ujobs_identity_extension_owner();

	Assert(IsTransactionState());
	if (!OidIsValid(owner))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("extension \"ujobs\" is not installed in this database"),
				 errhint("Run CREATE EXTENSION ujobs.")));
	identity->caller = CurrentMemoryContext;
	GetUserIdAndSecContext(&identity->user, &identity->security_context);
	SetUserIdAndSecContext(owner, identity->security_context | SECURITY_LOCAL_USERID_CHANGE);
	identity->guc_level = NewGUCNestLevel();
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	SPI_connect();
}

void
ujobs_identity_leave(UjobsIdentity *identity)
{
	SPI_finish();
	AtEOXact_GUC(true, identity->guc_level);
	SetUserIdAndSecContext(identity->user, identity->security_context);
	MemoryContextSwitchTo(identity->caller);
}
