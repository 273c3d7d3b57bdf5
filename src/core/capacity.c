/*
 * capacity.c: which processes may be started when not all can.
 *
 * What is free is estimated (activity.h): a caller that then finds that no process is
 * to be had asks again.
 */
#include "postgres.h"

#include "core/activity.h"
#include "core/capacity.h"
#include "core/slot.h"

#define KEEP_US 1000000			/* what was freed, for the process that asked */

int
ujobs_capacity_surplus(uint32 *generation)
{
	UjobsSlot	slot[UJOBS_MAX_SLOTS];
	int			best = -1;
	int			most = 1;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
		ujobs_slot_copy(i, &slot[i]);
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		int			n = 0;

		if (slot[i].state == UJOBS_SLOT_FREE || slot[i].state == UJOBS_SLOT_STARTING ||
			slot[i].leave)
			continue;
		for (int j = 0; j < UJOBS_MAX_SLOTS; j++)
			n += slot[j].state != UJOBS_SLOT_FREE && slot[j].database == slot[i].database &&
				slot[j].role == slot[i].role;
		if (n > most || (n == 1 && most == 1 &&
						 (best < 0 || slot[i].jobs_done > slot[best].jobs_done)))
		{
			best = i;
			most = n;
			*generation = slot[i].generation;
		}
	}
	return best;
}

/* One that idles, before one that has to end its job first. */
static void
release_one(void)
{
	int			index = -1;
	uint32		generation = 0;

	for (int i = 0; i < UJOBS_MAX_SLOTS && index < 0; i++)
	{
		UjobsSlot	slot;

		ujobs_slot_copy(i, &slot);
		if (slot.state == UJOBS_SLOT_IDLE && !slot.leave)
			index = i;
		generation = slot.generation;
	}
	if (index < 0)
		index = ujobs_capacity_surplus(&generation);
	if (index >= 0)
		ujobs_slot_ask_leave(index, generation);
}

/* How many processes must become free; <= 0: none. */
static int
missing(int wanted, int used)
{
	return wanted + (used == 0 ? 1 : 0) - ujobs_activity_free_processes();
}

bool
ujobs_capacity_is_there(int wanted)
{
	int			leaving;

	return missing(wanted, ujobs_slot_count(&leaving)) <= 0;
}

UjobsCapacity
ujobs_capacity_ask(int wanted)
{
	int			leaving;
	int			used = ujobs_slot_count(&leaving);
	int			lack = missing(wanted, used);

	if (lack > 0 && used <= lack)
		return UJOBS_CAPACITY_NONE;
	ujobs_slot_limit(used - lack, KEEP_US);
	if (lack <= 0)
		return UJOBS_CAPACITY_THERE;
	if (leaving < lack)
		release_one();
	return UJOBS_CAPACITY_COMING;
}
