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
	UJOBS_HOME_STOPPED,			/* stop_workers was called */
	UJOBS_HOME_STRANGE			/* a restored dump or a copied database */
} UjobsHome;

/*
 * Reads the origin row; writes it when the store never had an engine.  The
 * caller holds a transaction and commits it.
 */
extern UjobsHome ujobs_home_check(void);

#endif							/* UJOBS_STORE_HOME_STORE_H */
