/*
 * crashmark.h: which job each executor ran, kept over a crash of the server.
 *
 * A small file mapped into memory, written without WAL and without fsync: a
 * crash of a process leaves it in the page cache.  After a crash of the
 * machine it is stale or gone, and no job was the cause.
 */
#ifndef UJOBS_CORE_CRASHMARK_H
#define UJOBS_CORE_CRASHMARK_H

#include "postgres.h"

#define UJOBS_MAX_CRASHED_JOBS 64

typedef struct UjobsCrashedJob
{
	Oid			database;
	uint32		crashes;		/* how often it was running when the server crashed */
	bool		alone;			/* it must have been this one */
	bool		on_probation;		/* runs with nothing untried beside it */
	bool		trusted;		/* has run like this for a while, and nothing happened */
	bool		was_trusted;	/* and yet was there at a later crash */
	int64		job_id;			/* 0 = free entry */
} UjobsCrashedJob;

/*
 * Once after (re)start, with the shared memory still empty: turns the jobs
 * that were running into crashed jobs.  Never raises; without the file it logs
 * and the engine runs unmarked.
 */
extern void ujobs_crashmark_recover(void);

/*
 * Maps the file, unless it is or cannot be: what follows then neither logs
 * nor allocates.
 */
extern void ujobs_crashmark_attach(void);

/* This executor now runs the job (0: none).  A plain store, no system call. */
extern void ujobs_crashmark_set(int slot, Oid database, int64 job_id);

/* Copies the crashed jobs of a database; returns their number. */
extern int	ujobs_crashmark_jobs(Oid database, UjobsCrashedJob *out, int max);

/* Its run with nothing beside it begins; has gone well for long enough. */
extern void ujobs_crashmark_try(Oid database, int64 job_id);
extern void ujobs_crashmark_trust(Oid database, int64 job_id);

/* Its attempt was counted; the next one is a probation run too. */
extern void ujobs_crashmark_keep(Oid database, int64 job_id);

/* The database is gone. */
extern void ujobs_crashmark_forget(Oid database);

/* The crashed job was dealt with: its attempt counted, or it ended well. */
extern void ujobs_crashmark_clear(Oid database, int64 job_id);

#endif							/* UJOBS_CORE_CRASHMARK_H */
