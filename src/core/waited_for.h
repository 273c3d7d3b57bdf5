/*
 * waited_for.h: which jobs does a suspended job wait for?  A bitmap of ids.
 *
 * A job's end pays one look at a bit; only where it is set the end becomes a
 * hint.  Bits are shared by ids that differ by a multiple of the size, so a
 * set one may be a false alarm, which costs one look-up.
 *
 * The dispatcher alone writes.  It sets the bit of a child and then looks at
 * the child's row with a new snapshot; who ends a job makes its end visible
 * and then looks at the bit.  So one of the two always sees the other.
 */
#ifndef UJOBS_CORE_WAITED_FOR_H
#define UJOBS_CORE_WAITED_FOR_H

#include "postgres.h"

#include "core/area.h"

/* The dispatcher: these are waited for, too.  A memory barrier follows. */
extern void ujobs_waited_for_add(UjobsWaitedFor *waited_for, const int64 *ids, int n);

/*
 * The dispatcher: these and no others.  ids are all that some snapshot
 * showed; a job that began to wait later has sent a hint that is not yet taken.
 */
extern void ujobs_waited_for_replace(UjobsWaitedFor *waited_for, const int64 *ids, int n);

/* After the end is visible and a memory barrier: may a session or a job wait for it? */
static inline bool
ujobs_waited_for_test(UjobsWaitedFor *waited_for, int64 id)
{
	uint32		bit = (uint64) id % UJOBS_WAITED_FOR_BITS;

	return (pg_atomic_read_u32(&waited_for->word[bit / 32]) & (1U << (bit % 32))) != 0;
}

#endif							/* UJOBS_CORE_WAITED_FOR_H */
