/*
 * hash.h: names as numbers, where hints and shared memory have space for those only.
 */
#ifndef UJOBS_CORE_HASH_H
#define UJOBS_CORE_HASH_H

#include "postgres.h"

/* Of a queue's name, in hints and tickets. */
extern uint32 ujobs_hash_queue(const char *queue);

/* Of a queue's name, in claims, which have no other means to tell two queues apart. */
extern uint64 ujobs_hash_claimed_queue(const char *queue);

/* Of a tenant, so long that it replaces the name; 0 for "" (none). */
extern uint64 ujobs_hash_tenant(const char *tenant);

#endif							/* UJOBS_CORE_HASH_H */
