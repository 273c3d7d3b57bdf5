/*
 * identity.h: the engine's own statements run as the extension's owner with a
 * pinned search_path, whatever role called; user code never does.
 *
 * Enter, run statements, leave, before any commit or user code.  An error in
 * between needs no clean-up: the (sub)transaction's abort restores the user,
 * the settings and SPI.
 */
#ifndef UJOBS_CORE_IDENTITY_H
#define UJOBS_CORE_IDENTITY_H

#include "postgres.h"

typedef struct UjobsIdentity
{
	Oid			user;			/* who called: use it for permission checks */
	int			security_context;
	int			guc_level;
	MemoryContext caller;		/* results that outlive the section go here */
} UjobsIdentity;

/* Also connects SPI.  Raises 42704 when the extension is not in this database. */
extern void ujobs_identity_enter(UjobsIdentity *identity);
extern void ujobs_identity_leave(UjobsIdentity *identity);

/* Owner of the extension's schema, or InvalidOid when it is not installed. */
extern Oid	ujobs_identity_extension_owner(void);

#endif							/* UJOBS_CORE_IDENTITY_H */
