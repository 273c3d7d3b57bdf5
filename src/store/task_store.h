/*
 * task_store.h: the rows of ujobs_internal.task.
 *
 * Every function but ujobs_task_find needs an open identity section.  Who
 * changed a task calls ujobs_task_note_changed, so that the scheduler looks.
 */
#ifndef UJOBS_STORE_TASK_STORE_H
#define UJOBS_STORE_TASK_STORE_H

#include "core/identity.h"
#include "model/task.h"

/*
 * Reads the task of that name into *task (current memory); false when there is
 * none.  Opens its own section.
 */
extern bool ujobs_task_find(const char *name, UjobsTask *task);

/* The same, and locks the row; memory of identity->caller. */
extern bool ujobs_task_lock(UjobsIdentity *identity, const char *name, UjobsTask *task);

/* False when another transaction defined the name meanwhile. */
extern bool ujobs_task_insert(const UjobsTask *task);

/* Gives the row `id` all that can be asked for; name and owner stay, broken is forgotten. */
extern void ujobs_task_update(int32 id, const UjobsTask *task);

extern void ujobs_task_set_paused(int32 id, bool paused, TimestampTz watermark);
extern void ujobs_task_set_owner(int32 id, Oid role, const char *role_name);
extern void ujobs_task_delete(int32 id);

/* At commit the scheduler looks at its tasks again. */
extern void ujobs_task_note_changed(void);

/* ---- for firing ---- */

/* What may have changed since a task was read. */
typedef struct UjobsTaskStamp
{
	int32		id;
	int32		revision;
	TimestampTz watermark;
} UjobsTaskStamp;

/* All tasks that are not paused; memory of identity->caller. */
extern int	ujobs_task_list(UjobsIdentity *identity, UjobsTaskStamp **stamps);

/* The rows of these, in any order; those that are gone or paused are left out. */
extern int	ujobs_task_fetch(UjobsIdentity *identity, const int32 *ids, int n, UjobsTask **tasks);

/* The decision about one task at `now`. */
typedef struct UjobsTaskStep
{
	int32		id;
	int32		revision;		/* as known */
	TimestampTz known;			/* the watermark that the decision began at */
	TimestampTz watermark;		/* the new one */
	TimestampTz last;			/* the latest occurrence that fires; DT_NOBEGIN: none does */
	int64		dropped;
	bool		taken;			/* result */
} UjobsTaskStep;

/*
 * Moves the watermarks, all in one statement, of those that are still what
 * they were: revision, watermark, not paused; and only forward.  The others, and those
 * whose row is locked, are not taken: nothing of them may fire.
 */
extern void ujobs_task_advance(UjobsTaskStep *steps, int n, TimestampTz now);

/* Why it cannot fire; the watermark stays. */
extern void ujobs_task_set_broken(int32 id, int32 revision, const char *broken);

/* The tasks that enqueue the job, as a list of names in the current context; NULL: none does. */
extern char *ujobs_task_using(const char *job);

/* The job is gone: the tasks that enqueue it are broken. */
extern void ujobs_task_break_using(const char *job);

#endif							/* UJOBS_STORE_TASK_STORE_H */
