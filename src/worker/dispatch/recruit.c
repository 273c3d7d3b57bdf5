/*
 * recruit.c: how executors come to be.
 *
 * The first executor of a role starts at once; a further one only when work
 * has waited for PATIENCE_US, because starting a process costs more than a
 * hundred small jobs.  A role whose executors fail to start is tried again
 * with a growing pause.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/guc.h"
#include "core/room.h"
#include "core/slot.h"
#include "core/spawn.h"
#include "worker/dispatch/crew.h"
#include "worker/dispatch/recruit.h"
#include "worker/worker.h"

#define PATIENCE_US 5000
#define RETRY_FULL_US 50000		/* all slots are taken: look again so soon */
#define SHORTAGE_US 5000000		/* so long no further process is tried than there are */
#define SAY_AFTER 3				/* refusals in a row: before, one may just be leaving */
#define EVICT_IDLE_US 200000	/* so long after the last one an idle executor is asked to leave */
#define EVICT_BUSY_US 1000000	/* and a busy one, which may take its time */
#define BIRTH_PATIENCE_US (INT64CONST(5) * USECS_PER_SEC)
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
static BackgroundWorkerHandle *handle[UJOBS_MAX_SLOTS];
static TimestampTz next_look = DT_NOEND;
static TimestampTz last_eviction = 0;
static TimestampTz last_complaint = 0;

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
ujobs_recruit_round(void)
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
ujobs_recruit_next(void)
{
	return next_look;
}

void
ujobs_recruit_arrived(Oid role)
{
	role_entry(role)->failures = 0;
}

void
ujobs_recruit_failed(Oid role, TimestampTz now)
{
	Role	   *r = role_entry(role);

	r->failures = Min(r->failures + 1, 6);
	r->not_before = now + (INT64CONST(1000000) << r->failures) / 2;
}

bool
ujobs_recruit_is_lost(int slot, TimestampTz since, TimestampTz now)
{
	pid_t		pid;

	if (handle[slot] == NULL)
		return now - since > BIRTH_PATIENCE_US;
	return GetBackgroundWorkerPid(handle[slot], &pid) == BGWH_STOPPED;
}

static void
say_no_process(bool exhausted)
{
	UjobsEngine *engine = ujobs_shmem_engine(MyDatabaseId, false);
	TimestampTz now = GetCurrentTimestamp();

	if (engine != NULL)
		engine->no_worker = exhausted;
	if (!exhausted || now - last_complaint < 60 * USECS_PER_SEC)
		return;
	last_complaint = now;
	ereport(LOG,
			(errmsg("could not start an executor: max_worker_processes is exhausted"),
			 errhint("Raise max_worker_processes; jobs wait until a process is free.")));
}

static bool
start_executor(int index, uint32 generation, Oid role)
{
	BackgroundWorker worker;
	UjobsExecutorSpec spec = {MyDatabaseId, role, generation};
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	bool		started;

	ujobs_spawn_describe(&worker, "executor", Int32GetDatum(index));
	worker.bgw_notify_pid = MyProcPid;
	memcpy(worker.bgw_extra, &spec, sizeof(spec));
	if (handle[index] != NULL)
		pfree(handle[index]);
	handle[index] = NULL;
	started = RegisterDynamicBackgroundWorker(&worker, &handle[index]);
	MemoryContextSwitchTo(old);
	return started;
}

/* Ours that idles with another role, else anybody's that idles in another database. */
static int
find_idle(Oid role)
{
	int			index = ujobs_crew_idle_of_other_role(role);

	for (int i = 0; i < UJOBS_MAX_SLOTS && index < 0; i++)
	{
		UjobsSlot	slot;

		ujobs_slot_copy(i, &slot);
		if (slot.state == UJOBS_SLOT_IDLE && slot.database != MyDatabaseId && !slot.leave)
			index = i;
	}
	return index;
}

static void
make_room(Oid role, bool needed, TimestampTz now)
{
	int			index;

	next_look = Min(next_look, now + RETRY_FULL_US);
	if (now - last_eviction < EVICT_IDLE_US)
		return;
	index = find_idle(role);
	if (index < 0 && needed && now - last_eviction >= EVICT_BUSY_US)
		index = ujobs_room_surplus();
	if (index < 0)
		return;
	last_eviction = now;
	ujobs_slot_ask_leave_for(index, MyDatabaseId, role);
}

/*
 * max_worker_processes is exhausted.  Then those that there are shall be all,
 * as if ujobs.max_workers said so, and roles and databases take turns.
 */
static void
suffer_shortage(Role *r, bool needed, TimestampTz now)
{
	int			leaving;

	ujobs_slot_limit(ujobs_slot_count(&leaving), SHORTAGE_US);
	r->not_before = now + (RETRY_FULL_US << Min(r->refused, 5));
	r->refused++;
	make_room(r->role, needed, now);
	next_look = Min(next_look, r->not_before);
	if (needed && r->refused >= SAY_AFTER)
		say_no_process(true);
}

void
ujobs_recruit(Oid role, bool needed, TimestampTz now)
{
	Role	   *r = role_entry(role);
	uint32		generation;
	int			index;

	if (r->waits)
		return;					/* once a round */
	r->waits = true;
	if (r->waiting_since == 0)
		r->waiting_since = now;
	if (!needed && now - r->waiting_since < PATIENCE_US)
	{
		next_look = Min(next_look, r->waiting_since + PATIENCE_US);
		return;
	}
	if (now < r->not_before)
	{
		next_look = Min(next_look, r->not_before);
		return;
	}
	if (ujobs_crew_starting(role))
		return;					/* its arrival wakes us */
	index = ujobs_slot_allocate(MyDatabaseId, role, ujobs_guc_max_workers, &generation);
	if (index < 0)
	{
		make_room(role, needed, now);
		return;
	}
	if (!start_executor(index, generation, role))
	{
		ujobs_slot_free(index, generation, false);
		suffer_shortage(r, needed, now);
		return;
	}
	say_no_process(false);
	r->refused = 0;
	r->waiting_since = now;
	ujobs_crew_born(index, generation, role);
}
