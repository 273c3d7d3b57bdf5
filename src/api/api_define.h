/*
 * api_define.h: definitions by name, stored and dropped.
 *
 * define_options.c reads and checks the options of a definition,
 * define_handler.c its handler, api_owner.c changes its owner and its grants.
 */
#ifndef UJOBS_API_API_DEFINE_H
#define UJOBS_API_API_DEFINE_H

#include "postgres.h"

#include "store/define_store.h"

/* The live definition of that name, or UJ011. */
extern const UjobsDefinition *ujobs_define_find(const char *name);

/* The same for its owner alone: members of the owning role and superusers; 42501. */
extern const UjobsDefinition *ujobs_define_find_own(const char *name);

/*
 * Its row, locked; returns the id.  Asked again, because it may have another
 * owner, or be another of that name, since the cache was read.  Inside an
 * identity section; raises UJ011 and 42501.
 */
extern int32 ujobs_define_lock_own(UjobsIdentity *identity, const char *name);

/*
 * Stores a checked draft: new, the same, or with replace another; UJ005
 * otherwise.  Returns whether anything changed.
 */
extern bool ujobs_define_store(UjobsDraft *draft, bool replace);

/* Drops the definition and cancels its live jobs; nothing when there is none of that name. */
extern void ujobs_define_drop_forced(const char *name);

#endif							/* UJOBS_API_API_DEFINE_H */
