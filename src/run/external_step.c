/*
 * external_step.c: the remembered parts of a job that a program outside does.
 *
 * The same rows as those of a durable job.  Each call is one change, which is
 * durable with the commit of the program's transaction; the program skips by
 * itself what step_get gives it.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "core/error.h"
#include "core/wakeup.h"
#include "run/external_step.h"
#include "run/step_memory.h"
#include "store/event_store.h"
#include "store/lease_store.h"
#include "store/step_store.h"

typedef struct Steps
{
	UjobsStep  *step;			/* of the name asked for; NULL: none */
	int32		last_seq;
} Steps;

/* All functions below run under this snapshot, and pop it. */
static Steps
load(const UjobsJob *job, const char *name)
{
	Steps		steps = {0};
	ListCell   *lc;

	Assert(IsTransactionState());
	ujobs_step_memory_check_name(name);
	CommandCounterIncrement();
	PushActiveSnapshot(GetLatestSnapshot());
	foreach(lc, ujobs_step_load(job->id))
	{
		UjobsStep  *step = lfirst(lc);

		steps.last_seq = Max(steps.last_seq, step->seq);
		if (strcmp(step->name, name) == 0)
			steps.step = step;
	}
	return steps;
}

static UjobsStep
next_step(const Steps *steps, const char *name)
{
	UjobsStep	step = {
		.seq = steps->last_seq + 1,
		.name = pstrdup(name),
		.started_at = GetCurrentTimestamp()
	};

	return steps->step != NULL ? *steps->step : step;
}

static void
write_step(const UjobsJob *job, const Steps *steps, const UjobsStep *step)
{
	if (steps->step != NULL)
		(void) ujobs_step_update(job->id, step);
	else
		ujobs_step_insert(job->id, step);
}

static void
complete(const UjobsJob *job, const Steps *steps, UjobsStep *step, Jsonb *output)
{
	step->status = UJOBS_STEP_COMPLETED;
	step->attempts++;
	step->completed_at = GetCurrentTimestamp();
	step->output = (struct varlena *) output;
	step->error = NULL;
	write_step(job, steps, step);
}

static Jsonb *
output_of(const UjobsStep *step)
{
	return step->output != NULL ? DatumGetJsonbPCopy(PointerGetDatum(step->output)) : NULL;
}

/* Another call of the same name was something else: the program has changed, or has it twice. */
static void
refuse_name(const char *name)
{
	ereport(ERROR,
			(ujobs_errcode(STEP_DUPLICATE),
			 errmsg("step \"%s\" is of another kind", name),
			 errdetail("The job has a step of that name, and a step is remembered by its name."),
			 errhint("Give each step of the job a name of its own.")));
}

bool
ujobs_external_step_get(const UjobsJob *job, const char *name, Jsonb **output)
{
	Steps		steps = load(job, name);
	bool		completed = steps.step != NULL && steps.step->status == UJOBS_STEP_COMPLETED;

	*output = completed ? output_of(steps.step) : NULL;
	PopActiveSnapshot();
	return completed;
}

void
ujobs_external_step_put(const UjobsJob *job, const char *name, Jsonb *output)
{
	Steps		steps = load(job, name);
	UjobsStep	step = next_step(&steps, name);

	if (steps.step != NULL && steps.step->wake_at != 0)
		refuse_name(name);
	if (steps.step != NULL && steps.step->status == UJOBS_STEP_COMPLETED)
		ereport(ERROR,
				(ujobs_errcode(STEP_DUPLICATE),
				 errmsg("step \"%s\" is completed", name),
				 errdetail("What a job remembers of a step is never changed."),
				 errhint("Ask ujobs.step_get first, and do not do again what it gives.")));
	complete(job, &steps, &step, output);
	PopActiveSnapshot();
}

bool
ujobs_external_step_suspend(const UjobsJob *job, const char *name, TimestampTz *wake_at)
{
	Steps		steps = load(job, name);
	UjobsStep	step = next_step(&steps, name);
	bool		sleeps = false;

	if (steps.step != NULL && (step.wake_at == 0 || step.event != NULL || step.child_id != 0))
		refuse_name(name);
	if (steps.step == NULL)
	{
		step.status = UJOBS_STEP_SLEEPING;
		step.wake_at = *wake_at;
	}
	if (step.status != UJOBS_STEP_COMPLETED)
	{
		sleeps = step.wake_at > GetCurrentTimestamp();
		if (!sleeps)
			complete(job, &steps, &step, NULL);
		else if (steps.step == NULL)
			write_step(job, &steps, &step);
	}
	PopActiveSnapshot();
	*wake_at = step.wake_at;
	if (sleeps)
		ujobs_lease_suspend(job, &(UjobsSuspension) {.due_at = step.wake_at});
	return sleeps;
}

/* What the wait came to, if it is over; else SUSPENDED. */
static UjobsExternalWait
look(const UjobsJob *job, const Steps *steps, UjobsStep *step, Jsonb **payload)
{
	Steps		there = {.step = step};
	UjobsEventFound found;

	if (steps->step == NULL)
		write_step(job, steps, step);	/* the look-up reads the row */
	if (ujobs_event_find(job->id, step->seq, GetCurrentTimestamp(), &found))
	{
		step->event_id = found.id;
		*payload = found.payload;
	}
	else if (step->wake_at > GetCurrentTimestamp())
		return UJOBS_EXTERNAL_SUSPENDED;
	CommandCounterIncrement();
	PushActiveSnapshot(GetLatestSnapshot());
	complete(job, &there, step, *payload);
	PopActiveSnapshot();
	return step->event_id != 0 ? UJOBS_EXTERNAL_RECEIVED : UJOBS_EXTERNAL_TIMEOUT;
}

UjobsExternalWait
ujobs_external_step_await(const UjobsJob *job, const char *name, const UjobsStep *wait,
						  Jsonb **payload)
{
	Steps		steps = load(job, name);
	UjobsStep	step = next_step(&steps, name);
	UjobsExternalWait outcome;

	*payload = NULL;
	if (steps.step != NULL && step.event == NULL)
		refuse_name(name);
	if (steps.step != NULL)
		ujobs_step_memory_check_same(steps.step, wait);
	else
	{
		step.status = UJOBS_STEP_WAITING;
		step.event = wait->event;
		step.match = wait->match;
		step.wake_at = wait->wake_at;
		step.since = job->events_since;
	}
	if (step.status == UJOBS_STEP_COMPLETED)
	{
		outcome = step.event_id != 0 ? UJOBS_EXTERNAL_RECEIVED : UJOBS_EXTERNAL_TIMEOUT;
		*payload = output_of(&step);
	}
	else
		outcome = look(job, &steps, &step, payload);
	PopActiveSnapshot();
	if (outcome == UJOBS_EXTERNAL_SUSPENDED)
	{
		ujobs_lease_suspend(job, &(UjobsSuspension) {.due_at = step.wake_at});
		ujobs_wakeup_note_wait(job->id);
	}
	return outcome;
}
