/*
 * step_wait.c: sleeps and waits.
 *
 * The first arrival suspends the job; its row is written when the attempt has
 * been unwound.  A later arrival finds that row and decides: over, or not
 * yet.  What was decided is committed before the handler learns of it, so a
 * replay decides the same.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "core/clock.h"
#include "core/error.h"
#include "core/json.h"
#include "run/command.h"
#include "run/current.h"
#include "run/step_wait.h"
#include "store/child_store.h"
#include "store/event_store.h"

/* Writes the step with this outcome. */
static void
conclude(UjobsStepRun *run, UjobsStepEntry *entry, UjobsStep *step, Jsonb *output)
{
	step->status = UJOBS_STEP_COMPLETED;
	step->attempts++;
	step->completed_at = ujobs_clock_now();
	step->output = (struct varlena *) output;
	step->error = NULL;
	ujobs_command_open(run->level == UJOBS_CALL_TOP);
	ujobs_step_record(run, entry, step);
	ujobs_command_close();
	run->active = NULL;
}

/* A place for the call, and its entry; NULL when it is completed. */
static UjobsStepEntry *
arrive(UjobsStepRun *run, const char *name, const UjobsStep *asked)
{
	UjobsStepEntry *entry;

	if (run->block)
		ujobs_step_refuse_open_block();
	entry = ujobs_step_memory_take(run, name, asked);
	if (entry->step.status != UJOBS_STEP_COMPLETED)
		ujobs_step_activate(run, entry);
	return entry;
}

static void
check_interval(const char *option, const char *fault)
{
	if (fault != NULL)
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("option \"%s\" has an invalid value", option),
				 errdetail_internal("%s", fault),
				 errhint("Give a time to wait, such as '3 days'.")));
}

/* ---- sleeping ---- */

/*
 * A loop may sleep again and again without naming each time.  The sleeps that
 * are remembered are met in their order, whatever their duration is by now.
 */
static const char *
name_sleep(UjobsStepRun *run, const char *what)
{
	const char *remembered = ujobs_step_memory_next_sleep(run);
	char	   *name = psprintf("sleep:%s", what);

	if (remembered != NULL)
		return remembered;

	for (int n = 2; ujobs_step_memory_is_used(run, name); n++)
		name = psprintf("sleep:%s#%d", what, n);
	return name;
}

void
ujobs_step_wait_sleep(const UjobsStepCall *call, const UjobsStepSleep *sleep)
{
	static const UjobsStep asked = {.wake_at = 1};
	UjobsStepRun *run = ujobs_step_here(call, sleep->name != NULL ? sleep->name : "sleep");
	UjobsStepEntry *entry = arrive(run, sleep->name != NULL ? sleep->name :
								   name_sleep(run, sleep->what), &asked);
	UjobsStep	step = entry->step;

	if (step.status == UJOBS_STEP_COMPLETED)
		return;
	if (step.status != UJOBS_STEP_SLEEPING)
		check_interval("duration", sleep->fault);
	if (step.status != UJOBS_STEP_SLEEPING)
		step.wake_at = sleep->wake_at;
	step.status = UJOBS_STEP_SLEEPING;
	if (step.wake_at > ujobs_clock_now())
		ujobs_step_suspend(run, &step);
	conclude(run, entry, &step, NULL);
}

/* ---- waiting ---- */

static void
check_word(const char *what, const char *word, size_t least)
{
	if (strlen(word) < least || strlen(word) > UJOBS_MAX_EVENT_BYTES)
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("invalid %s", what),
				 errdetail("It has %zu bytes.", strlen(word)),
				 errhint("Use %zu to %d bytes.", least, UJOBS_MAX_EVENT_BYTES)));
}

void
ujobs_step_wait_check_event(const char *event, const char *match)
{
	check_word("name of an event", event, 1);
	if (match != NULL)
		check_word("match of an event", match, 0);
}

static void
fill_wait(UjobsStepRun *run, UjobsStep *step, const UjobsStepWait *wait)
{
	step->status = UJOBS_STEP_WAITING;
	step->wake_at = wait->deadline;
	step->child_id = wait->child_id;
	if (wait->event == NULL)
		return;
	step->event = pstrdup(wait->event);
	step->match = wait->match != NULL ? pstrdup(wait->match) : NULL;
	step->since = run->job->events_since;
}

/* Is it over?  Then *output is what it gave, and the step says what it took. */
static bool
look_for_event(UjobsStepRun *run, UjobsStep *step, Jsonb **output)
{
	UjobsEventFound found;

	if (!ujobs_event_find(run->job->id, step->seq, ujobs_clock_now(), &found))
		return false;
	step->event_id = found.id;
	*output = found.payload;
	return true;
}

static Jsonb *
outcome_of_child(const char *state, Jsonb *result, Jsonb *error)
{
	UjobsJson	json = {0};

	ujobs_json_begin_object(&json, NULL);
	ujobs_json_text(&json, "state", state);
	ujobs_json_jsonb(&json, "result", result);
	ujobs_json_jsonb(&json, "error", error);
	return ujobs_json_end(&json);
}

static const char *
state_word(UjobsState state)
{
	switch (state)
	{
		case UJOBS_STATE_DONE:
			return "done";
		case UJOBS_STATE_DEAD:
			return "dead";
		default:
			return "cancelled";
	}
}

/* It would never be woken. */
static void
refuse_itself(const UjobsJob *job)
{
	ujobs_current_give_up();
	ereport(ERROR,
			(ujobs_errcode(INVALID_OPTION),
			 errmsg("job %lld cannot wait for itself", (long long) job->id),
			 errhint("Give the id of another job, such as one that this job enqueued.")));
}

static bool
look_for_child(UjobsStep *step, Jsonb **output)
{
	UjobsChildOutcome outcome;

	switch (ujobs_child_outcome(step->child_id, GetUserId(), &outcome))
	{
		case UJOBS_CHILD_LIVE:
			return false;
		case UJOBS_CHILD_ENDED:
			*output = outcome_of_child(state_word(outcome.state), outcome.result, outcome.error);
			return true;
		case UJOBS_CHILD_UNKNOWN:
			break;
	}
	ujobs_current_give_up();
	ereport(ERROR,
			(ujobs_errcode(JOB_NOT_FOUND),
			 errmsg("job %lld does not exist", (long long) step->child_id),
			 errdetail("There was never such a job, it is past its retention, or it may not be seen by this job's owner."),
			 errhint("Wait for a job that this job enqueued, and keep it long enough by its retention.")));
	return false;
}

static bool
is_over(UjobsStepRun *run, UjobsStep *step, Jsonb **output)
{
	*output = NULL;
	return step->child_id != 0 ? look_for_child(step, output) : look_for_event(run, step, output);
}

static void
refuse_late(const UjobsStep *step)
{
	ereport(ERROR,
			(ujobs_errcode(JOB_TIMEOUT),
			 errmsg("event \"%s\" did not come in time for step \"%s\"", step->event, step->name),
			 errdetail("The step waited until %s.", timestamptz_to_str(step->wake_at)),
			 errhint("Give the wait a longer timeout, or required => false and handle the NULL.")));
}

/*
 * The look-up goes by the row of the wait.  That of a wait for a job is
 * committed before its outcome is looked at, or its end could be missed.
 */
static void
register_wait(UjobsStepRun *run, UjobsStepEntry *entry, UjobsStep *step)
{
	ujobs_command_open(run->level == UJOBS_CALL_TOP);
	if (step->child_id == 0)
		ujobs_step_draft(run, entry, step);
	else
	{
		(void) ujobs_child_hold(step->child_id);
		ujobs_step_record(run, entry, step);
	}
	ujobs_command_close();
	*step = entry->step;
}

static bool
is_unknown(int64 child_id)
{
	UjobsChildOutcome outcome;

	return ujobs_child_outcome(child_id, GetUserId(), &outcome) == UJOBS_CHILD_UNKNOWN;
}

/*
 * A block that enqueues a child is undone when drain unwinds the handler, and
 * run again by the next attempt, which names another child than the one that
 * was waited for.  A worker then waits for that; drain would undo it again.
 */
static void
follow_child(UjobsStepRun *run, UjobsStepEntry *entry, UjobsStep *step, const UjobsStepWait *wait)
{
	if (step->child_id == 0 || wait->child_id == 0 || step->child_id == wait->child_id ||
		!is_unknown(step->child_id))
		return;
	if (run->level == UJOBS_CALL_NESTED)
		ereport(ERROR,
				(ujobs_errcode(JOB_NOT_FOUND),
				 errmsg("job %lld does not exist any more", (long long) step->child_id),
				 errdetail("What enqueued it was undone when drain unwound the handler; this attempt enqueued job %lld.",
						   (long long) wait->child_id),
				 errhint("Enqueue it by ujobs.step_run, whose effects stand in drain as with workers.")));
	step->child_id = wait->child_id;
	register_wait(run, entry, step);
}

Jsonb *
ujobs_step_wait(const UjobsStepCall *call, const char *name, const UjobsStepWait *wait)
{
	UjobsStep	asked = {
		.child_id = wait->child_id,
		.event = unconstify(char *, wait->event),
		.match = unconstify(char *, wait->match)
	};
	UjobsStepRun *run = ujobs_step_here(call, name);
	UjobsStepEntry *entry = arrive(run, name, &asked);
	UjobsStep	step = entry->step;
	Jsonb	   *output;

	if (step.status == UJOBS_STEP_COMPLETED)
		return ujobs_step_memory_output(run, entry);
	if (wait->child_id == run->job->id)
		refuse_itself(run->job);
	if (step.status != UJOBS_STEP_WAITING)
	{
		check_interval("timeout", wait->fault);
		fill_wait(run, &step, wait);
		register_wait(run, entry, &step);
	}
	else
		follow_child(run, entry, &step, wait);
	if (!is_over(run, &step, &output))
	{
		if (step.wake_at > ujobs_clock_now())
			ujobs_step_suspend(run, &step);
		if (step.child_id != 0)
			output = outcome_of_child("timeout", NULL, NULL);
		else if (wait->required)
			refuse_late(&step);
	}
	conclude(run, entry, &step, output);
	return output;
}
