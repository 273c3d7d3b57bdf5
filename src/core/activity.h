/*
 * activity.h: who is at work, copied out of shared memory for those who look in.
 *
 * Each entry is consistent in itself; the list as a whole is a moment's
 * glance, as with pg_stat_activity.
 */
#ifndef UJOBS_CORE_ACTIVITY_H
#define UJOBS_CORE_ACTIVITY_H

#include "core/shmem.h"

typedef enum UjobsProcessKind
{
	UJOBS_PROCESS_LAUNCHER,
	UJOBS_PROCESS_DISPATCHER,
	UJOBS_PROCESS_SCHEDULER,
	UJOBS_PROCESS_EXECUTOR,
	UJOBS_PROCESS_RELAY
} UjobsProcessKind;

typedef struct UjobsProcess
{
	UjobsProcessKind kind;
	pid_t		pid;			/* 0: it should be there and is not, state says why */
	Oid			database;		/* InvalidOid: none */
	Oid			role;			/* InvalidOid: the bootstrap superuser's, not a job owner's */
	const char *state;			/* a constant sentence */
	int64		job_id;			/* 0 = none */
	int32		definition_id;
	int32		attempt;		/* of the job */
	TimestampTz job_started;
	TimestampTz since;			/* 0 = not known */
	uint64		jobs_done;
	uint64		memory;			/* bytes allocated, 0 = not known */
} UjobsProcess;

#define UJOBS_ACTIVITY_MAX (1 + 3 * UJOBS_MAX_ENGINES + UJOBS_MAX_SLOTS)

/* Fills out[UJOBS_ACTIVITY_MAX] with the processes of the cluster; returns their number. */
extern int	ujobs_activity_take(UjobsProcess *out);

/* The same for executors of this database that run a job now; out[UJOBS_MAX_SLOTS]. */
extern int	ujobs_activity_running(UjobsProcess *out);

/* Units of a limit in use as the dispatcher counts them; 0 when no limit is counted there. */
extern int	ujobs_activity_units(UjobsCapShownKind kind, uint32 of, uint64 tenant_hash);

/* Jobs that count for ujobs.max_running, when the dispatcher last looked at it. */
extern int	ujobs_activity_units_of_database(void);

/* The instant before which the tenant's rate in the queue allows nothing more, or 0. */
extern TimestampTz ujobs_activity_rate_until(uint32 queue_hash, uint64 tenant_hash);

/* The state of the engine of this database, and whether it lacks a worker slot. */
extern UjobsEngineState ujobs_activity_engine(bool *no_worker);

/* Executors in use in the whole cluster; idle: those of this database without a job. */
extern int	ujobs_activity_executors(int *idle);

/* Executors of the role in this database that run a job. */
extern int	ujobs_activity_running_of_role(Oid role);

/*
 * Background workers that the server could start now, less the schedulers
 * that engines at work still have to start.  An estimate: one that is not yet
 * alive, or waits to be restarted, is not seen.  May be called under control->lock.
 */
extern int	ujobs_activity_free_processes(void);

#endif							/* UJOBS_CORE_ACTIVITY_H */
