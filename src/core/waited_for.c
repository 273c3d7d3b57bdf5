/*
 * waited_for.c: the bitmap of jobs that others wait for.
 */
#include "postgres.h"

#include "core/waited_for.h"

static void
set_bits(uint32 *words, const int64 *ids, int n)
{
	for (int i = 0; i < n; i++)
	{
		uint32		bit = (uint64) ids[i] % UJOBS_WAITED_FOR_BITS;

		words[bit / 32] |= 1U << (bit % 32);
	}
}

void
ujobs_waited_for_add(UjobsWaitedFor *waited_for, const int64 *ids, int n)
{
	for (int i = 0; i < n; i++)
	{
		uint32		bit = (uint64) ids[i] % UJOBS_WAITED_FOR_BITS;

		(void) pg_atomic_fetch_or_u32(&waited_for->word[bit / 32], 1U << (bit % 32));
	}
	pg_memory_barrier();
}

/* Word by word: a bit that is needed before and after is never seen unset. */
void
ujobs_waited_for_replace(UjobsWaitedFor *waited_for, const int64 *ids, int n)
{
	uint32		words[UJOBS_WAITED_FOR_WORDS] = {0};

	set_bits(words, ids, n);
	for (int i = 0; i < UJOBS_WAITED_FOR_WORDS; i++)
	{
		if (pg_atomic_read_u32(&waited_for->word[i]) != words[i])
			pg_atomic_write_u32(&waited_for->word[i], words[i]);
	}
	pg_memory_barrier();
}
