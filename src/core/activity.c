/*
 * activity.c: reads the control block for ujobs.workers and ujobs.why.
 *
 * Nothing here writes.  Engines are read under the control lock, each slot
 * under its own spinlock.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/proc.h"

#include "core/activity.h"
#include "core/engine.h"
#include "core/slot.h"

static const char *
engine_state(UjobsEngineState state, bool no_worker)
{
	switch (state)
	{
		case UJOBS_ENGINE_NONE:
		case UJOBS_ENGINE_DOWN:
			return no_worker ? "waiting: max_worker_processes is exhausted" : "down";
		case UJOBS_ENGINE_RUNNING:
			return "running";
		case UJOBS_ENGINE_DRAINING:
			return "draining";
		case UJOBS_ENGINE_STOPPED:
			return "stopped";
		case UJOBS_ENGINE_PAUSED:
			return "paused: restored from another database";
	}
	return "unknown";
}

static const char *
slot_state(UjobsSlotState state)
{
	switch (state)
	{
		case UJOBS_SLOT_FREE:
			return "free";
		case UJOBS_SLOT_STARTING:
			return "starting";
		case UJOBS_SLOT_IDLE:
			return "idle";
		case UJOBS_SLOT_BUSY:
			return "busy";
	}
	return "unknown";
}

static int
take_engine(UjobsEngine *engine, UjobsProcess *out)
{
	UjobsProcess process = {
		.kind = UJOBS_PROCESS_DISPATCHER,
		.pid = engine->dispatcher_pid,
		.database = engine->database,
		.state = engine_state(engine->state, engine->no_worker),
		.since = engine->since
	};
	bool		tells = engine->state == UJOBS_ENGINE_PAUSED ||
		(engine->state == UJOBS_ENGINE_DOWN && engine->no_worker);
	int			n = 0;

	if (engine->state == UJOBS_ENGINE_NONE)
		return 0;
	if (process.pid != 0 || tells)
	{
		out[n] = process;
		out[n++].memory = process.pid == 0 ? 0 : pg_atomic_read_u64(&engine->dispatcher_memory);
	}
	process.kind = UJOBS_PROCESS_SCHEDULER;
	process.pid = engine->scheduler_pid;
	if (process.pid != 0)
		out[n++] = process;
	process.kind = UJOBS_PROCESS_RELAY;
	process.pid = engine->relay_pid;
	if (process.pid != 0)
		out[n++] = process;
	return n;
}

static void
take_slot(UjobsSlot *slot, UjobsProcess *out)
{
	bool		runs = slot->state == UJOBS_SLOT_BUSY && slot->job_id != 0;

	*out = (UjobsProcess) {
		.kind = UJOBS_PROCESS_EXECUTOR,
		.pid = slot->pid,
		.database = slot->database,
		.role = slot->role,
		.state = slot_state(slot->state),
		.job_id = runs ? slot->job_id : 0,
		.definition_id = slot->definition_id,
		.attempt = slot->attempt,
		.job_started = slot->job_started,
		.since = slot->since,
		.jobs_done = slot->jobs_done,
		.memory = pg_atomic_read_u64(&slot->memory)
	};
}

int
ujobs_activity_take(UjobsProcess *out)
{
	UjobsEngine engine[UJOBS_MAX_ENGINES];
	pid_t		launcher = ujobs_engine_copy_all(engine);
	UjobsSlot	slot;
	int			n = 0;

	if (launcher != 0)
		out[n++] = (UjobsProcess) {
			.kind = UJOBS_PROCESS_LAUNCHER,
			.pid = launcher,
			.state = "running"
		};
	for (int i = 0; i < UJOBS_MAX_ENGINES; i++)
		n += take_engine(&engine[i], &out[n]);
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		ujobs_slot_copy(i, &slot);
		if (slot.state != UJOBS_SLOT_FREE)
			take_slot(&slot, &out[n++]);
	}
	return n;
}

int
ujobs_activity_running(UjobsProcess *out)
{
	UjobsControl *control = ujobs_shmem_control();
	UjobsSlot	slot;
	int			n = 0;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		if (control->slot[i].job_id == 0)
			continue;			/* a stale miss is one the caller could have seen */
		ujobs_slot_copy(i, &slot);
		if (slot.state == UJOBS_SLOT_BUSY && slot.job_id != 0 && slot.database == MyDatabaseId)
			take_slot(&slot, &out[n++]);
	}
	return n;
}

UjobsEngineState
ujobs_activity_engine(bool *no_worker)
{
	UjobsEngine *engine = ujobs_engine_find(MyDatabaseId);

	*no_worker = engine != NULL && engine->no_worker;
	return engine == NULL ? UJOBS_ENGINE_NONE : engine->state;
}

int
ujobs_activity_executors(int *idle)
{
	UjobsSlot	slot;
	int			used = 0;

	*idle = 0;
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		ujobs_slot_copy(i, &slot);
		if (slot.state == UJOBS_SLOT_FREE)
			continue;
		used++;
		if (slot.database == MyDatabaseId && slot.state != UJOBS_SLOT_BUSY)
			(*idle)++;
	}
	return used;
}

int
ujobs_activity_running_of_role(Oid role)
{
	UjobsSlot	slot;
	int			n = 0;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		ujobs_slot_copy(i, &slot);
		n += slot.state == UJOBS_SLOT_BUSY && slot.database == MyDatabaseId && slot.role == role;
	}
	return n;
}

/* A copy, for the dispatcher may be writing; a glance, as all of this. */
static UjobsCapShown
cap_shown(UjobsCapShownKind kind, uint32 of, uint64 tenant_hash)
{
	UjobsArea  *area = ujobs_engine_area();
	UjobsCapShown none = {0};

	for (int i = 0; area != NULL && i < UJOBS_CAPS_SHOWN; i++)
	{
		UjobsCapShown cap = area->caps[i];

		if (cap.kind == (uint32) kind && cap.of == of && cap.tenant_hash == tenant_hash)
			return cap;
	}
	return none;
}

int
ujobs_activity_units(UjobsCapShownKind kind, uint32 of, uint64 tenant_hash)
{
	return cap_shown(kind, of, tenant_hash).used;
}

int
ujobs_activity_units_of_database(void)
{
	UjobsArea  *area = ujobs_engine_area();

	return area == NULL ? 0 : area->running;
}

TimestampTz
ujobs_activity_rate_until(uint32 queue_hash, uint64 tenant_hash)
{
	return cap_shown(UJOBS_SHOWN_TENANT, queue_hash, tenant_hash).until;
}

/* Every one that is attached to shared memory has a PGPROC of that list, and owns its latch. */
int
ujobs_activity_free_processes(void)
{
	UjobsControl *control = ujobs_shmem_control();
	int			n = max_worker_processes;

	for (uint32 i = 0; i < ProcGlobal->allProcCount; i++)
	{
		PGPROC	   *proc = &ProcGlobal->allProcs[i];

		if ((void *) proc->procgloballist == (void *) &ProcGlobal->bgworkerFreeProcs &&
			proc->procLatch.owner_pid != 0)
			n--;
	}
	for (int i = 0; i < UJOBS_MAX_ENGINES; i++)
	{
		const UjobsEngine *engine = &control->engine[i];

		if (engine->state == UJOBS_ENGINE_RUNNING && engine->dispatcher_pid != 0 &&
			engine->scheduler_pid == 0)
			n--;
	}
	return n;
}
