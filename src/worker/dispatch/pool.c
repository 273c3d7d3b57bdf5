/*
 * pool.c: step 3 of the walk: how executors come to be.
 *
 * The first executor of a role starts at once; a further one only when work
 * has waited for PATIENCE_US, because starting a process costs more than a
 * hundred small jobs.  A role whose executors fail to start is tried again
 * with a growing pause.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "core/engine.h"
#include "core/guc.h"
#include "core/capacity.h"
#include "core/slot.h"
#include "worker/dispatch/executors.h"
#include "worker/dispatch/pool.h"

#define PATIENCE_US 5000
#define RETRY_FULL_US 50000		/* all slots are taken: look again then */
#define SHORTAGE_US 5000000		/* no further process is tried for so long */
#define LOG_AFTER 3				/* refusals in a row: before, one may just be leaving */
#define EVICT_IDLE_US 200000	/* between two idle executors that are asked to leave */
#define EVICT_BUSY_US 1000000	/* the same for a busy one, which may take its time */
#define MAX_ROLES 64

typedef struct Role
{
	Oid			role;
	TimestampTz waiting_since;	/* 0: no work waits */
	TimestampTz not_before;
	int			failures;
	int			refused;		/* times in a row that no process was to be had */
	bool		waits;			/* in this round */
} Role;

static Role roles[MAX_ROLES];
static int	n_roles = 0;
static TimestampTz next_look = DT_NOEND;
static TimestampTz last_eviction = 0;
static TimestampTz last_logged = 0;

static Role *
role_entry(Oid role)
{
	int			i;

	for (i = 0; i < n_roles; i++)
	{
		if (roles[i].role == role)
			return &roles[i];
	}
	if (n_roles == MAX_ROLES)
		i = role % MAX_ROLES;	/* a history of failures is lost, no more */
	else
		n_roles++;
	memset(&roles[i], 0, sizeof(Role));
	roles[i].role = role;
	return &roles[i];
}

void
ujobs_pool_begin_round(void)
{
	next_look = DT_NOEND;
	for (int i = 0; i < n_roles; i++)
	{
		if (!roles[i].waits)
			roles[i].waiting_since = 0;
		roles[i].waits = false;
	}
}

TimestampTz
ujobs_pool_next(void)
{
	return next_look;
}

void
ujobs_pool_arrived(Oid role)
{
	role_entry(role)->failures = 0;
}

void
ujobs_pool_failed(Oid role, TimestampTz now)
{
	Role	   *r = role_entry(role);

	r->failures = Min(r->failures + 1, 6);
	r->not_before = now + (INT64CONST(1000000) << r->failures) / 2;
}

static void
note_shortage(bool exhausted)
{
	UjobsEngine *engine = ujobs_engine_find(MyDatabaseId);
	TimestampTz now = GetCurrentTimestamp();

	if (engine != NULL)
		ujobs_engine_set_shortage(engine, exhausted);
	if (!exhausted || now - last_logged < 60 * USECS_PER_SEC)
		return;
	last_logged = now;
	ereport(LOG,
			(errmsg("could not start an executor: max_worker_processes is exhausted"),
			 errhint("Raise max_worker_processes; jobs wait until a process is free.")));
}

/* An executor that idles with another role here, else one that idles in another database; or -1. */
static int
find_idle(Oid role, uint32 *generation)
{
	int			index = ujobs_executor_idle_of_other_role(role);

	if (index >= 0)
		*generation = ujobs_executor_at(index)->generation;
	for (int i = 0; i < UJOBS_MAX_SLOTS && index < 0; i++)
	{
		UjobsSlot	slot;

		ujobs_slot_copy(i, &slot);
		if (slot.state != UJOBS_SLOT_IDLE || slot.database == MyDatabaseId || slot.leave)
			continue;
		index = i;
		*generation = slot.generation;
	}
	return index;
}

static void
free_slot(Oid role, bool needed, TimestampTz now)
{
	uint32		generation = 0;
	int			index;

	next_look = Min(next_look, now + RETRY_FULL_US);
	if (now - last_eviction < EVICT_IDLE_US)
		return;
	index = find_idle(role, &generation);
	if (index < 0 && needed && now - last_eviction >= EVICT_BUSY_US)
		index = ujobs_capacity_surplus(&generation);
	if (index < 0)
		return;
	last_eviction = now;
	ujobs_slot_ask_leave_for(index, generation, MyDatabaseId, role);
}

/*
 * max_worker_processes is exhausted.  Then ujobs.max_workers counts as the
 * number of executors that there are, and roles and databases are served one after the other.
 */
static void
follow_shortage(Role *r, bool needed, TimestampTz now)
{
	int			leaving;

	ujobs_slot_limit(ujobs_slot_count(&leaving), SHORTAGE_US);
	r->not_before = now + (RETRY_FULL_US << Min(r->refused, 5));
	r->refused++;
	free_slot(r->role, needed, now);
	next_look = Min(next_look, r->not_before);
	if (needed && r->refused >= LOG_AFTER)
		note_shortage(true);
}

/* No tickets of an executor that had the slot are left: else the next look returns them first. */
static bool
is_settled(int index)
{
	return !ujobs_executor_at(index)->used;
}

/* The role has waited long enough: a process for it. */
static void
start(Role *r, bool needed, TimestampTz now)
{
	uint32		generation;
	int			index =
		ujobs_slot_allocate(MyDatabaseId, r->role, ujobs_guc_max_workers, is_settled, &generation);

	if (index < 0)
	{
		free_slot(r->role, needed, now);
		return;
	}
	if (!ujobs_executor_start(index, generation, r->role))
	{
		ujobs_slot_free(index, generation, false);
		follow_shortage(r, needed, now);
		return;
	}
	note_shortage(false);
	r->refused = 0;
	r->waiting_since = now;
}

void
ujobs_pool_grow(Oid role, bool needed, TimestampTz now)
{
	Role	   *r = role_entry(role);
	TimestampTz begin;

	if (r->waits)
		return;					/* once a round */
	r->waits = true;
	if (r->waiting_since == 0)
		r->waiting_since = now;
	begin = Max(r->not_before, needed ? 0 : r->waiting_since + PATIENCE_US);
	if (now < begin)
		next_look = Min(next_look, begin);
	else if (!ujobs_executor_is_starting(role)) /* its arrival wakes the dispatcher */
		start(r, needed, now);
}
