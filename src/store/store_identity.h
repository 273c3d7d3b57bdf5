/*
 * store_identity.h: is this store still in the database it was made in, and may
 * its engine run?
 */
#ifndef UJOBS_STORE_STORE_IDENTITY_H
#define UJOBS_STORE_STORE_IDENTITY_H

#include "core/identity.h"

typedef enum UjobsStoreIdentity
{
	UJOBS_STORE_OWN,				/* run */
	UJOBS_STORE_NEW,				/* no job is defined here: there is nothing to run */
	UJOBS_STORE_STOPPED,			/* stop_workers was called */
	UJOBS_STORE_STRANGE			/* a restored dump or a copied database */
} UjobsStoreIdentity;

/* Reads the origin row.  The caller holds a transaction. */
extern UjobsStoreIdentity ujobs_store_identity_check(void);

/*
 * Writes the origin row when there is none: with the first definition, in its
 * transaction.  Needs an open identity section.
 */
extern void ujobs_store_identity_settle(void);

/*
 * The name by which brokers know this store (a uuid as text, in the caller's
 * context), NULL before the first definition or sink.  A copy of the store
 * that start_workers accepts gets a new one.
 */
extern char *ujobs_store_identity_uuid(void);

#endif							/* UJOBS_STORE_STORE_IDENTITY_H */
