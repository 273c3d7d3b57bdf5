/*
 * leader.c: an advisory lock of a kind that the SQL functions cannot take.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/lock.h"

#include "core/leader.h"

#define KIND 3					/* pg_advisory_lock takes kinds 1 and 2 */
#define SCHEDULER 1

bool
ujobs_leader_try(Oid schema)
{
	static bool leader = false;
	LOCKTAG		tag;

	if (leader)
		return true;
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, schema, SCHEDULER, KIND);
	leader = LockAcquire(&tag, ExclusiveLock, true, true) != LOCKACQUIRE_NOT_AVAIL;
	return leader;
}
