/*
 * fire.c: due tasks become jobs.
 *
 * For each pick: which occurrences fire (model/task.c), and as which jobs
 * with which keys.  What is wrong with a task is found here, before anything
 * is written, so that a broken one does not fail the others.  Then one statement moves all
 * watermarks and says which tasks were not fired by another session, and their jobs go in, those
 * alike in one statement.
 *
 * No code of users runs: an enqueue_fn is called by the job that is enqueued
 * for it, as the task's owner.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "core/clock.h"
#include "core/error.h"
#include "core/identity.h"
#include "model/effort.h"
#include "model/template.h"
#include "run/rule.h"
#include "run/fire.h"
#include "run/route.h"
#include "store/definition_store.h"
#include "store/enqueue_store.h"

/* A job to be enqueued, and what must be the same for those that go in together. */
typedef struct DueJob
{
	int			pick;
	int			number;			/* keeps the order of the entries */
	int32		definition_id;
	Oid			role;
	TimestampTz occurrence;
	UjobsEnqueueItem item;
} DueJob;

typedef struct DueJobs
{
	int			n;
	int			space;
	DueJob	   *job;
} DueJobs;

/* ---- what it enqueues ---- */

static DueJob *
add_row(DueJobs *jobs)
{
	if (jobs->n == jobs->space)
	{
		Size		size = sizeof(DueJob) * Max(64, jobs->space * 2);

		jobs->job = jobs->job ? repalloc_huge(jobs->job, size) :
			MemoryContextAllocHuge(CurrentMemoryContext, size);
		jobs->space = Max(64, jobs->space * 2);
	}
	memset(&jobs->job[jobs->n], 0, sizeof(DueJob));
	jobs->job[jobs->n].number = jobs->n;
	return &jobs->job[jobs->n++];
}

static void
add_job(DueJobs *jobs, const DueJob *from, const UjobsDefinition *definition, Jsonb *input)
{
	DueJob	   *job = add_row(jobs);
	int			number = job->number;

	*job = *from;
	job->number = number;
	job->definition_id = definition->id;
	job->item.input = input;
	job->item.tenant = ujobs_rule_tenant(definition, input);
}

/* Asked before collecting, so it is in the cache, unless it changed this very moment. */
static const UjobsDefinition *
definition_for(const char *job)
{
	const UjobsDefinition *definition = ujobs_definition_by_name(job);

	if (definition == NULL)
		ereport(ERROR,
				(ujobs_errcode(JOB_UNKNOWN),
				 errmsg("job \"%s\" is not defined", job)));
	return definition;
}

/* The job that calls its enqueue_fn. */
static void
add_function_job(DueJobs *jobs, const UjobsTask *task, const DueJob *from)
{
	const UjobsDefinition *definition = definition_for(ujobs_task_job_name(task->name));
	Jsonb	   *input = ujobs_rule_input_of_occurrence(task->name, from->occurrence);

	add_job(jobs, from, definition, input);
	jobs->job[jobs->n - 1].item.key = ujobs_task_key(task->name, from->occurrence, NULL);
}

static void
add_entries(DueJobs *jobs, const UjobsRule *rule, const DueJob *from)
{
	for (int i = 0; i < rule->n_entries; i++)
	{
		const UjobsDefinition *definition = definition_for(rule->entries[i].job);
		Jsonb	   *input = rule->entries[i].input;

		ujobs_rule_check_input(definition, input);
		add_job(jobs, from, definition, input);
		jobs->job[jobs->n - 1].item.key =
			ujobs_task_key(rule->task->name, from->occurrence, ujobs_rule_key(definition, input));
	}
}

/* ---- a pick ---- */

/* NULL: the role may enqueue the job. */
static char *
fault_of_job(const char *job, Oid role)
{
	const UjobsDefinition *definition = ujobs_definition_by_name(job);

	if (definition == NULL)
		return psprintf("UJ011: job \"%s\" is not defined", job);
	if (!ujobs_definition_may_enqueue(definition, role))
		return psprintf("42501: its owner may not enqueue job \"%s\"", job);
	return NULL;
}

/* What can be said without looking at inputs; *owner is the role that enqueues. */
static char *
fault_of(const UjobsRule *rule, Oid *owner)
{
	const UjobsTask *task = rule->task;
	char	   *fault = NULL;

	if (rule->unreadable != NULL)
		return rule->unreadable;
	*owner = ujobs_definition_role(task->owner, task->owner_name);
	if (!SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(*owner)))
		return psprintf("UJ025: its owner \"%s\" does not exist", task->owner_name);
	if (task->enqueue == NULL)
		return fault_of_job(ujobs_task_job_name(task->name), *owner);
	for (int i = 0; i < rule->n_entries && fault == NULL; i++)
		fault = fault_of_job(rule->entries[i].job, *owner);
	return fault;
}

static void
collect(DueJobs *jobs, UjobsPick *pick, const DueJob *from, TimestampTz now)
{
	UjobsRule  *rule = pick->rule;
	DueJob		at = *from;

	ujobs_task_catch_up(&rule->plan, ujobs_cron_seconds(rule->task->watermark),
						ujobs_cron_seconds(now), &pick->due);
	for (int i = 0; i < pick->due.n; i++)
	{
		at.occurrence = ujobs_cron_timestamp(pick->due.occurrence[i]);
		if (rule->task->enqueue == NULL)
			add_function_job(jobs, rule->task, &at);
		else
			add_entries(jobs, rule, &at);
	}
	pick->step.id = rule->task->id;
	pick->step.revision = rule->task->revision;
	pick->step.known = rule->task->watermark;
	pick->step.watermark = now;
	pick->step.last = pick->due.n > 0 ? at.occurrence : DT_NOBEGIN;
	pick->step.dropped = pick->due.dropped;
}

/*
 * What is the fault of the task itself has a code of our own, and is raised
 * where nothing is held: so no subtransaction is needed to go on with the next
 * task.  Everything else (a cancel, memory, a look-up that failed half-way)
 * ends the transaction.
 */
static void
try_collect(DueJobs *jobs, UjobsPick *pick, int number, TimestampTz now)
{
	MemoryContext memory = CurrentMemoryContext;
	int			before = jobs->n;
	DueJob		from = {.pick = number};

	pick->fault = fault_of(pick->rule, &from.role);
	if (pick->fault != NULL)
		return;
	ujobs_effort_share(true);	/* all entries of a task together */
	PG_TRY();
	{
		collect(jobs, pick, &from, now);
		ujobs_effort_share(false);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		ujobs_effort_share(false);
		if (ujobs_error_find(geterrcode()) == NULL)
			PG_RE_THROW();
		MemoryContextSwitchTo(memory);
		error = CopyErrorData();
		FlushErrorState();
		pick->fault = psprintf("%s: %s%s%s", unpack_sql_state(error->sqlerrcode), error->message,
							   error->detail ? " " : "", error->detail ? error->detail : "");
		FreeErrorData(error);
	}
	PG_END_TRY();
	if (pick->fault != NULL)
		jobs->n = before;
}

/* ---- rows ---- */

/* Moves the watermarks; a task that another session fired meanwhile is not taken. */
static void
advance(UjobsPick *picks, int n, TimestampTz now)
{
	UjobsTaskStep *steps = palloc(Max(n, 1) * sizeof(UjobsTaskStep));
	UjobsIdentity identity;
	int			n_steps = 0;

	for (int i = 0; i < n; i++)
	{
		if (picks[i].fault == NULL)
			steps[n_steps++] = picks[i].step;
	}
	ujobs_identity_enter(&identity);
	ujobs_task_advance(steps, n_steps, now);
	ujobs_identity_leave(&identity);
	n_steps = 0;
	for (int i = 0; i < n; i++)
	{
		if (picks[i].fault == NULL)
			picks[i].step.taken = steps[n_steps++].taken;
		else
			ujobs_fire_break(&picks[i], picks[i].fault);
	}
}

static bool
alike(const DueJob *a, const DueJob *b)
{
	return a->definition_id == b->definition_id && a->role == b->role &&
		   a->occurrence == b->occurrence;
}

static int
by_kind(const void *x, const void *y)
{
	const DueJob *a = x;
	const DueJob *b = y;

	if (a->occurrence != b->occurrence)
		return a->occurrence < b->occurrence ? -1 : 1;
	if (a->definition_id != b->definition_id)
		return a->definition_id < b->definition_id ? -1 : 1;
	if (a->role != b->role)
		return a->role < b->role ? -1 : 1;
	return a->number - b->number;
}

/* n jobs that are alike. */
static void
enqueue(const DueJob *jobs, int n, TimestampTz now)
{
	UjobsEnqueueItem *items = MemoryContextAllocHuge(CurrentMemoryContext,
													 n * sizeof(UjobsEnqueueItem));
	const UjobsDefinition *definition = ujobs_definition_by_id(jobs[0].definition_id);
	UjobsEnqueueOptions options = {
		.definition = definition,
		.queue = definition->queue,
		.now = now,
		.run_at = jobs[0].occurrence,
		.role = jobs[0].role,
		.priority = definition->priority,
		.on_conflict = UJOBS_CONFLICT_DEDUPE
	};

	for (int i = 0; i < n; i++)
		items[i] = jobs[i].item;
	if (n == 1)
		ujobs_route_one(&options, items);
	else
		ujobs_route_many(&options, items, n);
}

static void
enqueue_all(DueJobs *jobs, const UjobsPick *picks, TimestampTz now)
{
	int			kept = 0;

	for (int i = 0; i < jobs->n; i++)
	{
		if (picks[jobs->job[i].pick].step.taken)
			jobs->job[kept++] = jobs->job[i];
	}
	if (kept > 0)
		qsort(jobs->job, kept, sizeof(DueJob), by_kind);
	for (int begin = 0, end; begin < kept; begin = end)
	{
		for (end = begin + 1; end < kept && alike(&jobs->job[begin], &jobs->job[end]); end++)
			;
		enqueue(&jobs->job[begin], end - begin, now);
	}
}

static int64
report(const UjobsPick *picks, int n)
{
	int64		fired = 0;

	for (int i = 0; i < n; i++)
	{
		if (!picks[i].step.taken)
			continue;
		fired += picks[i].due.n;
		if (picks[i].due.dropped > 0)
			ereport(LOG,
					(errmsg("ujobs task \"%s\" catches up with its newest %d occurrences; " INT64_FORMAT " are dropped",
							picks[i].rule->task->name, picks[i].due.n, picks[i].due.dropped)));
	}
	return fired;
}

int64
ujobs_fire_picks(UjobsPick *picks, int n, TimestampTz now)
{
	DueJobs		jobs = {0};

	Assert(IsTransactionState());
	for (int i = 0; i < n; i++)
		try_collect(&jobs, &picks[i], i, now);
	advance(picks, n, now);
	enqueue_all(&jobs, picks, now);
	return report(picks, n);
}

void
ujobs_fire_break(UjobsPick *pick, const char *fault)
{
	const UjobsTask *task = pick->rule->task;
	UjobsIdentity identity;

	pick->step.taken = false;
	pick->fault = MemoryContextStrdup(CurrentMemoryContext, fault);
	if (task->broken != NULL && strcmp(task->broken, fault) == 0)
		return;
	ereport(LOG, (errmsg("ujobs task \"%s\" cannot fire: %s", task->name, fault)));
	ujobs_identity_enter(&identity);
	ujobs_task_set_broken(task->id, task->revision, fault);
	ujobs_identity_leave(&identity);
}
