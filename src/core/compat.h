/*
 * compat.h: the one place that knows server versions.
 *
 * Code elsewhere is written for the newest form and finds the older ones
 * here.
 */
#ifndef UJOBS_CORE_COMPAT_H
#define UJOBS_CORE_COMPAT_H

#include "postgres.h"

#include "access/genam.h"
#include "access/tableam.h"
#include "catalog/pg_database.h"
#include "catalog/pg_proc.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "tcop/pquery.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/regproc.h"
#include "utils/wait_event.h"

#if PG_VERSION_NUM < 150000
#error "ujobs needs PostgreSQL 15 or newer"
#endif

#if PG_VERSION_NUM < 160000
/* object_aclcheck: one function for every catalog, since 16. */
static inline AclResult
object_aclcheck(Oid classid, Oid objectid, Oid roleid, AclMode mode)
{
	Assert(classid == ProcedureRelationId || classid == DatabaseRelationId);
	if (classid == DatabaseRelationId)
		return pg_database_aclcheck(objectid, roleid, mode);
	return pg_proc_aclcheck(objectid, roleid, mode);
}
#endif

/* Memory of a setting's check hook, which the server frees: with free() before 16. */
static inline void *
ujobs_compat_guc_malloc(size_t size)
{
#if PG_VERSION_NUM >= 160000
	return guc_malloc(LOG, size);
#else
	return malloc(size);
#endif
}

/* A dotted name as a list; 16 added a place for soft errors. */
static inline List *
ujobs_compat_name_list(const char *name)
{
#if PG_VERSION_NUM >= 160000
	return stringToQualifiedNameList(name, NULL);
#else
	return stringToQualifiedNameList(name);
#endif
}

/* May this role drop, copy or alter the database? */
static inline bool
ujobs_compat_may_drop_database(Oid database, Oid role)
{
#if PG_VERSION_NUM >= 160000
	return object_ownercheck(DatabaseRelationId, database, role);
#else
	return pg_database_ownercheck(database, role);
#endif
}

/* Whether this backend owns a temporary schema. */
static inline bool
ujobs_compat_has_temp_schema(void)
{
	return OidIsValid(MyProc->tempNamespaceId);
}

/* Session-level advisory locks; transaction-level ones end with their transaction. */
static inline void
ujobs_compat_release_advisory_locks(void)
{
	LockReleaseAll(USER_LOCKMETHOD, true);
}

/* Flags for BackgroundWorkerInitializeConnectionByOid: 17 can skip rolcanlogin. */
#if PG_VERSION_NUM >= 170000
#define UJOBS_COMPAT_CONNECT_FLAGS BGWORKER_BYPASS_ROLELOGINCHECK
#define UJOBS_COMPAT_OWNER_NEEDS_LOGIN false
#else
#define UJOBS_COMPAT_CONNECT_FLAGS 0
#define UJOBS_COMPAT_OWNER_NEEDS_LOGIN true
#endif

/* PortalRun lost its run_once argument in 18. */
static inline bool
ujobs_compat_portal_run(Portal portal, long count, bool top_level, DestReceiver *dest)
{
#if PG_VERSION_NUM >= 180000
	return PortalRun(portal, count, top_level, dest, dest, NULL);
#else
	return PortalRun(portal, count, top_level, true, dest, dest, NULL);
#endif
}

/* Named wait events for extensions exist since 17. */
#if PG_VERSION_NUM >= 170000
#define UJOBS_COMPAT_WAIT_EVENT(name) WaitEventExtensionNew(name)
#else
#define UJOBS_COMPAT_WAIT_EVENT(name) PG_WAIT_EXTENSION
#endif

/*
 * The server's own set of the client's socket (its first event), the latch
 * and the postmaster; NULL without a client.  Declared here because
 * libpq/libpq.h needs headers of GSSAPI, which a server's package may lack.
 */
struct WaitEventSet;
extern PGDLLIMPORT struct WaitEventSet *FeBeWaitSet;
#define UJOBS_COMPAT_CLIENT_SOCKET 0

/* Membership can come without SET since 16; giving something to a role needs it. */
static inline bool
ujobs_compat_may_become(Oid member, Oid role)
{
#if PG_VERSION_NUM >= 160000
	return member_can_set_role(member, role);
#else
	return is_member_of_role(member, role);
#endif
}

/* 18 takes a place for instrumentation. */
static inline IndexScanDesc
ujobs_compat_index_beginscan(Relation table, Relation index, Snapshot snapshot, int nkeys)
{
#if PG_VERSION_NUM >= 180000
	return index_beginscan(table, index, snapshot, NULL, nkeys, 0);
#else
	return index_beginscan(table, index, snapshot, nkeys, 0);
#endif
}

/*
 * Index entries of a new row.  only_summarizing (16): of indexes that know
 * pages, not rows, alone.
 */
static inline void
ujobs_compat_insert_index_tuples(ResultRelInfo *info, TupleTableSlot *slot, EState *estate,
								 bool only_summarizing)
{
#if PG_VERSION_NUM >= 160000
	list_free(ExecInsertIndexTuples(info, slot, estate, only_summarizing, false, NULL, NIL,
									only_summarizing));
#else
	list_free(ExecInsertIndexTuples(info, slot, estate, false, false, NULL, NIL));
#endif
}

/*
 * Which indexes need an entry of an updated row; before 16 summarizing ones
 * prevent a HOT update.
 */
typedef enum UjobsIndexesNeeded
{
	UJOBS_INDEXES_NONE,
	UJOBS_INDEXES_ALL,
	UJOBS_INDEXES_SUMMARIZING
} UjobsIndexesNeeded;

static inline TM_Result
ujobs_compat_tuple_update(Relation table, ItemPointer tid, TupleTableSlot *slot, CommandId cid,
						  Snapshot snapshot, TM_FailureData *failure, LockTupleMode *mode,
						  UjobsIndexesNeeded *needed)
{
#if PG_VERSION_NUM >= 160000
	TU_UpdateIndexes which = TU_None;
	TM_Result	result = table_tuple_update(table, tid, slot, cid, snapshot, InvalidSnapshot, true, failure, mode,
											&which);

	*needed = which == TU_None ? UJOBS_INDEXES_NONE :
		which == TU_All ? UJOBS_INDEXES_ALL : UJOBS_INDEXES_SUMMARIZING;
#else
	bool		all = false;
	TM_Result	result = table_tuple_update(table, tid, slot, cid, snapshot, InvalidSnapshot, true, failure, mode,
											&all);

	*needed = all ? UJOBS_INDEXES_ALL : UJOBS_INDEXES_NONE;
#endif
	return result;
}

#endif							/* UJOBS_CORE_COMPAT_H */
