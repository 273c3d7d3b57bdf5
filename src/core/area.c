/*
 * area.c: initializes the memory of one database.
 */
#include "postgres.h"

#include "core/area.h"

static void
histogram_init(UjobsQueueCounterHistogram *histogram)
{
	for (int i = 0; i < UJOBS_COUNTER_BUCKETS; i++)
		pg_atomic_init_u64(&histogram->bucket[i], 0);
	pg_atomic_init_u64(&histogram->sum, 0);
}

static void
counters_init(UjobsQueueCounterTable *counters, int tranche)
{
	LWLockInitialize(&counters->lock, tranche);
	pg_atomic_init_u32(&counters->n, 0);
	for (int i = 0; i <= UJOBS_COUNTER_QUEUES; i++)
	{
		for (int j = 0; j < UJOBS_COUNTER_OUTCOMES; j++)
			pg_atomic_init_u64(&counters->entry[i].outcome[j], 0);
		histogram_init(&counters->entry[i].wait);
		histogram_init(&counters->entry[i].run);
	}
}

static void
claims_init(UjobsClaims *claims, int tranche)
{
	pg_atomic_init_u32(&claims->taken, 0);
	pg_atomic_init_u64(&claims->next_number, 1);
	pg_atomic_init_u64(&claims->lease_end, (uint64) DT_NOEND);
	for (int i = 0; i < UJOBS_MAX_CLAIMS; i++)
		LWLockInitialize(&claims->claim[i].lock, tranche);
}

void
ujobs_area_init(UjobsArea *area, int tranche)
{
	SpinLockInit(&area->hint_lock);
	SpinLockInit(&area->waiter_lock);
	pg_atomic_init_u32(&area->waiters, 0);
	counters_init(&area->counters, tranche);
	claims_init(&area->claims, tranche);
	for (int i = 0; i < UJOBS_WAITED_FOR_WORDS; i++)
		pg_atomic_init_u32(&area->waited_for.word[i], 0);
}
