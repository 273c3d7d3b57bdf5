/*
 * cron.c: a timetable kept in memory, and the transactions around its firing.
 *
 * Sleeps until the next instant that a task is due, or until a commit
 * a change of one: the dispatcher passes that hint on.  A clock that was set
 * is noticed within the longest sleep; watermarks keep a backward step from
 * firing anything again, and a forward step is downtime like any other.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/leader.h"
#include "run/fire.h"
#include "run/timetable.h"
#include "worker/cron.h"
#include "worker/worker.h"

#define LONGEST_SLEEP_US (INT64CONST(30) * USECS_PER_SEC)
#define RETRY_US (INT64CONST(1) * USECS_PER_SEC)
#define RELOAD_SHARE 10			/* reading may take a tenth of the time */

static UjobsTimetable *table;
static UjobsPick *picks;
static MemoryContext memory;
static TimestampTz reload_at = 0;	/* when to read the tasks again */
static TimestampTz calm_at = 0; /* not before, however much changes */

void
ujobs_cron_init(void)
{
	memory = AllocSetContextCreate(TopMemoryContext, "ujobs timetable", ALLOCSET_DEFAULT_SIZES);
	table = ujobs_timetable_make(memory);
	picks = MemoryContextAlloc(memory, UJOBS_PICKS_AT_ONCE * sizeof(UjobsPick));
}

/* What to do in a transaction of its own. */
typedef void (*Work) (int first, int n, TimestampTz now);

static void
do_fire(int first, int n, TimestampTz now)
{
	(void) ujobs_fire_picks(picks + first, n, now);
}

static void
do_reload(int first, int n, TimestampTz now)
{
	ujobs_timetable_reload(table, now);
}

typedef struct Part
{
	Work		work;
	int			first;
	int			n;
	TimestampTz now;
	MemoryContext round;
} Part;

static void
run_part(void *arg)
{
	Part	   *part = arg;

	MemoryContextSwitchTo(part->round);
	part->work(part->first, part->n, part->now);
}

/* NULL: it committed; else the message of its error. */
static char *
in_transaction(Work work, int first, int n, TimestampTz now)
{
	ErrorData *error = ujobs_worker_try(run_part,
										&(Part){work, first, n, now, CurrentMemoryContext});

	return error != NULL ? psprintf("%s: %s", unpack_sql_state(error->sqlerrcode), error->message) :
						   NULL;
}

static char *fault_to_record;

static void
do_break(int first, int n, TimestampTz now)
{
	ujobs_fire_break(picks + first, fault_to_record);
}

/*
 * Not the task's fault: another session holds a lock, memory or disk are
 * short, or the process is being stopped.
 */
static bool
is_passing(const char *fault)
{
	static const char *const codes[] = {"40", "53", "55P03", "57", "58"};

	for (int i = 0; i < lengthof(codes); i++)
	{
		if (strncmp(fault, codes[i], strlen(codes[i])) == 0)
			return true;
	}
	return false;
}

/* The batch failed: a task that fails alone is broken, the others go on. */
static void
fire_one_by_one(int n, TimestampTz now)
{
	for (int i = 0; i < n; i++)
	{
		char	   *fault = in_transaction(do_fire, i, 1, now);

		if (fault == NULL)
			continue;
		picks[i].step.taken = false;
		if (is_passing(fault))
			continue;
		fault_to_record = fault;
		(void) in_transaction(do_break, i, 1, now);
		picks[i].fault = fault;
	}
}

static void
fire_all(void)
{
	for (;;)
	{
		TimestampTz now = GetCurrentTimestamp();
		int			n = ujobs_timetable_collect(table, now, picks);

		if (n == 0)
			return;
		if (in_transaction(do_fire, 0, n, now) != NULL)
			fire_one_by_one(n, now);
		if (ujobs_timetable_settle(table, picks, n, now))
			reload_at = Min(reload_at, now + RETRY_US);
	}
}

static void
follow_changes(UjobsEngine *engine, TimestampTz now)
{
	char	   *fault;
	TimestampTz end;

	if (pg_atomic_read_u32(&engine->tasks_changed) != 0)
		reload_at = Min(reload_at, now);
	if (now < Max(reload_at, calm_at))
		return;
	(void) pg_atomic_exchange_u32(&engine->tasks_changed, 0);
	fault = in_transaction(do_reload, 0, 0, now);
	end = GetCurrentTimestamp();
	calm_at = end + (end - now) * RELOAD_SHARE;
	if (fault != NULL)
	{
		ereport(LOG, (errmsg("ujobs could not read its tasks, will try again: %s", fault)));
		reload_at = end + RETRY_US;
		return;
	}
	ujobs_timetable_retry_broken(table, now);
	reload_at = end + LONGEST_SLEEP_US;
}

static bool
is_leader(void)
{
	bool		leader;

	StartTransactionCommand();
	leader = ujobs_leader_try(get_namespace_oid("ujobs_internal", true));
	CommitTransactionCommand();
	return leader;
}

TimestampTz
ujobs_cron_round(UjobsEngine *engine)
{
	TimestampTz now = GetCurrentTimestamp();
	MemoryContext round = CurrentMemoryContext;
	bool		leader = is_leader();

	MemoryContextSwitchTo(round);
	if (!leader)
		return now + RETRY_US;
	if (reload_at > now + LONGEST_SLEEP_US || calm_at > now + LONGEST_SLEEP_US)
		reload_at = calm_at = now;	/* the clock was set back */
	follow_changes(engine, now);
	fire_all();
	if (pg_atomic_read_u32(&engine->tasks_changed) != 0)
		return Max(calm_at, now);
	return Min(Min(Max(reload_at, calm_at), ujobs_timetable_next(table)),
			   GetCurrentTimestamp() + LONGEST_SLEEP_US);
}
