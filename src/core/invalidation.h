/*
 * invalidation.h: whether what a session has cached of the extension's tables is still good.
 *
 * A cache lives outside transactions, so it is read with the latest snapshot.
 * PostgreSQL delivers invalidations at a transaction's start, at a lock and
 * after the session's own changes; one that arrives marks the cache stale, and
 * its owner empties it at the next look-up.
 */
#ifndef UJOBS_CORE_INVALIDATION_H
#define UJOBS_CORE_INVALIDATION_H

#include "postgres.h"

/* A cache's state, static for the life of the process; zero is a stale one. */
typedef struct UjobsInvalidation
{
	const char *table;			/* in schema ujobs_internal */
	bool		roles;			/* also when a role is made, renamed or dropped */
	bool		registered;
	bool		fresh;
	Oid			relid;
} UjobsInvalidation;

/*
 * Marks the cache fresh, before it is loaded: what arrives while it loads
 * makes it stale again.  It stays stale if the table is not there.  In a transaction.
 */
extern void ujobs_invalidation_begin(UjobsInvalidation *cache);

/* The table's Oid, InvalidOid without an extension.  In a transaction. */
extern Oid	ujobs_invalidation_table(const char *table);

/* Makes every session's caches of the table stale, from this transaction's commit on. */
extern void ujobs_invalidation_send(const char *table);

#endif							/* UJOBS_CORE_INVALIDATION_H */
