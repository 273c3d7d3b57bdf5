/*
 * invalidation.c: whether what a session has cached of the extension's tables is still good.
 *
 * Registered once for each cache and never removed, as PostgreSQL has no way
 * to; the callbacks do no more than set a flag.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "core/invalidation.h"

/* InvalidOid: messages were lost, or it is not known yet which table counts. */
static void
at_relation_change(Datum arg, Oid relid)
{
	UjobsInvalidation *cache = (UjobsInvalidation *) DatumGetPointer(arg);

	if (!OidIsValid(relid) || !OidIsValid(cache->relid) || relid == cache->relid)
		cache->fresh = false;
}

static void
at_role_change(Datum arg, int cacheid, uint32 hashvalue)
{
	((UjobsInvalidation *) DatumGetPointer(arg))->fresh = false;
}

Oid
ujobs_invalidation_table(const char *table)
{
	Oid			schema = get_namespace_oid("ujobs_internal", true);

	return OidIsValid(schema) ? get_relname_relid(table, schema) : InvalidOid;
}

void
ujobs_invalidation_begin(UjobsInvalidation *cache)
{
	Assert(IsTransactionState());
	if (!cache->registered)
	{
		CacheRegisterRelcacheCallback(at_relation_change, PointerGetDatum(cache));
		if (cache->roles)
			CacheRegisterSyscacheCallback(AUTHOID, at_role_change, PointerGetDatum(cache));
		cache->registered = true;
	}
	cache->relid = InvalidOid;
	cache->fresh = true;
	cache->relid = ujobs_invalidation_table(cache->table);
	if (!OidIsValid(cache->relid))
		cache->fresh = false;
}

void
ujobs_invalidation_send(const char *table)
{
	Oid			relid = ujobs_invalidation_table(table);

	if (OidIsValid(relid))
		CacheInvalidateRelcacheByRelid(relid);
}
