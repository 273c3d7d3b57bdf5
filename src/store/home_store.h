/*
 * home_store.h: is this store still in the database it was made in, and may
 * its engine run?
 */
#ifndef UJOBS_STORE_HOME_STORE_H
#define UJOBS_STORE_HOME_STORE_H

#include "core/identity.h"

typedef enum UjobsHome
{
	UJOBS_HOME_OWN,				/* run */
	UJOBS_HOME_NEW,				/* nobody has defined a job here: there is nothing to run */
	UJOBS_HOME_STOPPED,			/* stop_workers was called */
	UJOBS_HOME_STRANGE			/* a restored dump or a copied database */
} UjobsHome;

/* Reads the origin row.  The caller holds a transaction. */
extern UjobsHome ujobs_home_check(void);

/*
 * Writes the origin row when there is none: with the first definition, in its
 * transaction.  Needs an open identity section.
 */
extern void ujobs_home_settle(void);

/*
 * The name by which brokers know this store (a uuid as text, in the caller's
 * context), NULL before the first definition or sink.  A copy of the store
 * that start_workers accepts gets a new one.
 */
extern char *ujobs_home_uuid(void);

#endif							/* UJOBS_STORE_HOME_STORE_H */
