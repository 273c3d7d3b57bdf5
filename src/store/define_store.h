/*
 * define_store.h: changing job definitions and their grants.
 *
 * Every function needs an open identity section.  Who changed something
 * calls ujobs_definition_invalidate afterwards.
 */
#ifndef UJOBS_STORE_DEFINE_STORE_H
#define UJOBS_STORE_DEFINE_STORE_H

#include "core/identity.h"
#include "model/job.h"

/* A definition as its columns hold it: what a user asks for, or a row read back. */
typedef struct UjobsDraft
{
	int32		id;				/* of the row; 0 when not yet stored */
	char	   *name;
	char	   *kind;			/* as stored */
	char	   *handler;		/* NULL if external */
	Oid			owner;
	char	   *owner_name;
	char	   *key;
	char	   *tenant;			/* NULL = none */
	Jsonb	   *input_schema;
	Jsonb	   *retry;			/* the normal form */
	char	   *queue;
	int32		priority;
	int32		concurrency;	/* 0 = no limit */
	Interval   *timeout;		/* NULL = by setting */
	Interval   *step_timeout;
	int32		batch;
	Interval   *retention;		/* NULL = by setting */
	char	   *description;
} UjobsDraft;

/*
 * Locks the live definition of that name and reads it into *stored (memory of
 * identity->caller); false when there is none.
 */
extern bool ujobs_define_lock(UjobsIdentity *identity, const char *name, UjobsDraft *stored);

/* Inserts; false when another transaction defined the name meanwhile. */
extern bool ujobs_define_insert(const UjobsDraft *draft);

/* Gives the row `id` the options of the draft; name and owner stay. */
extern void ujobs_define_update(int32 id, const UjobsDraft *draft);

extern void ujobs_define_set_owner(int32 id, Oid owner, const char *owner_name);

/* Jobs that wait for a missing handler or owner look again now: it may be another. */
extern void ujobs_define_awaken(int32 id, TimestampTz now);

/* privilege 'e' or 'w'; role InvalidOid is PUBLIC.  Granting twice is no error. */
extern void ujobs_define_grant(int32 id, char privilege, Oid role, const char *role_name);
extern void ujobs_define_revoke(int32 id, char privilege, Oid role, const char *role_name);

/* Makes the row a tombstone and removes its grants. */
extern void ujobs_define_drop(int32 id, TimestampTz now);

extern int64 ujobs_define_count_live(int32 id);

/* How the jobs of a dropped definition end. */
typedef struct UjobsCancelAll
{
	int32		definition_id;
	const char *reason;
	TimestampTz now;
	TimestampTz expires_at;
	int16		slot;			/* of the history */
	bool		keep;			/* false: no history row, but for those that are waited for */
} UjobsCancelAll;

/*
 * Moves all live jobs to history as cancelled and notes the hints that
 * interrupt running ones and wake waiters.
 */
extern void ujobs_define_cancel_all(UjobsIdentity *identity, const UjobsCancelAll *cancel);

#endif							/* UJOBS_STORE_DEFINE_STORE_H */
