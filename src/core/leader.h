/*
 * leader.h: one process of many does a thing, because it would be wasted on two.
 */
#ifndef UJOBS_CORE_LEADER_H
#define UJOBS_CORE_LEADER_H

#include "postgres.h"

/*
 * Tries to be the one for this schema, until the process ends.  Only saves
 * work: correctness must not rely on being alone.  The lock cannot be taken
 * it away with SQL.  Needs a transaction.
 */
extern bool ujobs_leader_try(Oid schema);

#endif							/* UJOBS_CORE_LEADER_H */
