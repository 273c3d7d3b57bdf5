/*
 * drain_store.h: what drain asks beyond what executors ask.
 *
 * Every function needs an open identity section and an active snapshot that
 * sees what this transaction wrote.
 */
#ifndef UJOBS_STORE_DRAIN_STORE_H
#define UJOBS_STORE_DRAIN_STORE_H

#include "core/identity.h"
#include "model/heap.h"

typedef struct UjobsDrainLane
{
	int32		definition_id;
	const char *queue;
	TimestampTz now;
	bool		own_only;		/* only rows that this transaction wrote */
	int			max;
} UjobsDrainLane;

/* Pushes the lane's first due rows; true when there may be more than max. */
extern bool ujobs_drain_due(const UjobsDrainLane *lane, UjobsHeap *heap);

/*
 * Locks the row until the end of the transaction.  False when it is gone or
 * another session holds it; never waits.
 */
extern bool ujobs_drain_lock(int64 id);

typedef enum UjobsLeftoverKind
{
	UJOBS_LEFTOVER_CURSOR = 'c',
	UJOBS_LEFTOVER_PREPARED = 'p',
	UJOBS_LEFTOVER_TEMPORARY = 't'
} UjobsLeftoverKind;

/* Something a session holds that a handler may have left in it. */
typedef struct UjobsLeftover
{
	UjobsLeftoverKind kind;
	char	   *name;			/* cursor, prepared statement */
	Oid			class_id;		/* temporary object */
	Oid			object_id;
} UjobsLeftover;

/* All there is now: a list of UjobsLeftover * in identity->caller. */
extern List *ujobs_drain_leftovers(const UjobsIdentity *identity);

#endif							/* UJOBS_STORE_DRAIN_STORE_H */
