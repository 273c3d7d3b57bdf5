/*
 * definition_store.h: job definitions and their grants; read through a cache
 * per session that other sessions' changes invalidate at their commit.
 *
 * A change calls ujobs_definition_invalidate, which sends a relcache
 * invalidation of the definition table (PostgreSQL's own, transactional) and
 * notes a hint for the dispatcher.
 */
#ifndef UJOBS_STORE_DEFINITION_STORE_H
#define UJOBS_STORE_DEFINITION_STORE_H

#include "core/identity.h"
#include "model/job.h"

/* A job's name, and a queue's, is as long as an identifier may be. */
#define UJOBS_MAX_NAME_BYTES 63

/*
 * The live definition of that name, or NULL.  The pointer is valid until the
 * next call into this store that may load (copy what you keep over user
 * code).  Opens its own identity section only on a cache miss.
 */
extern const UjobsDefinition *ujobs_definition_by_name(const char *name);

/* The same by id; finds dropped definitions too (dropped is set). NULL: no row at all. */
extern const UjobsDefinition *ujobs_definition_by_id(int32 id);

/*
 * The definition's input schema, compiled at its first use; NULL when it has
 * none.  Valid as long as the definition.  May raise UJ003.
 */
extern const struct UjobsSchema *ujobs_definition_schema(const UjobsDefinition *definition);

/* To be called in the transaction that changed a definition, grant or queue. */
extern void ujobs_definition_invalidate(void);

/*
 * The dispatcher, told by a hint that definitions changed: reads them anew.
 * The hint is sent before PostgreSQL's invalidation, which may not be here yet.
 */
extern void ujobs_definition_forget(void);

/*
 * The role that a stored (oid, name) means here: the oid, so that a role that
 * comes to bear the name of one that was dropped gets nothing of it.  Only in a
 * store that was restored and is not accepted yet the name wins where they
 * disagree, if there is such a role.  In a transaction.
 */
extern Oid	ujobs_definition_role(Oid oid, const char *name);

/* atomic, durable, external or command. */
extern const char *ujobs_definition_kind_name(UjobsKind kind);

/* May the role enqueue (or work) it: its owner's members, superusers, grantees. */
extern bool ujobs_definition_may_enqueue(const UjobsDefinition *definition, Oid role);
extern bool ujobs_definition_may_work(const UjobsDefinition *definition, Oid role);

/* Is the role the owner, a member of it, or a superuser? */
extern bool ujobs_definition_may_control(const UjobsDefinition *definition, Oid role);

#endif							/* UJOBS_STORE_DEFINITION_STORE_H */
