/*
 * leader.c: a session's lock on a part of the schema that no statement locks.
 */
#include "postgres.h"

#include "catalog/pg_namespace.h"
#include "miscadmin.h"
#include "storage/lock.h"

#include "core/leader.h"

#define SCHEDULER 0x756a			/* an object's "column": statements lock 0 */

bool
ujobs_leader_try(Oid schema)
{
	static bool leader = false;
	LOCKTAG		tag;

	if (leader)
		return true;
	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, NamespaceRelationId, schema, SCHEDULER);
	leader = LockAcquire(&tag, ExclusiveLock, true, true) != LOCKACQUIRE_NOT_AVAIL;
	return leader;
}
