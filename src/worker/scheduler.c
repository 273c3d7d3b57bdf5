/*
 * scheduler.c: fires tasks (cron.c), ends leases (expiry.c), and keeps house: retention, and what must
 * be looked at now and then.
 *
 * Apart from the dispatcher, because it writes and may wait for locks.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/engine.h"
#include "core/guc.h"
#include "core/session_stats.h"
#include "core/capacity.h"
#include "core/spawn.h"
#include "core/wakeup.h"
#include "model/history.h"
#include "store/retention_store.h"
#include "worker/cron.h"
#include "worker/expiry.h"
#include "worker/scheduler.h"
#include "worker/worker.h"

#define ROUND_MS 60000
#define ROWS_AT_ONCE 1000
#define BATCHES 1000			/* in one round */
#define INBOX_DAYS 7			/* at least: longer than a broker offers a message again */
#define RESTART_US (INT64CONST(5) * USECS_PER_SEC)

static UjobsEngine *engine;
static bool more;				/* the last batch was full */

/* ---- the dispatcher's side ---- */

TimestampTz
ujobs_scheduler_ensure(UjobsEngine *of)
{
	static TimestampTz tried_at = 0;
	BackgroundWorker worker;
	TimestampTz now;

	if (of->scheduler_pid != 0)
		return DT_NOEND;
	now = GetCurrentTimestamp();
	if (now - tried_at < RESTART_US)
		return tried_at + RESTART_US;
	tried_at = now;
	ujobs_spawn_describe(&worker, "scheduler", ObjectIdGetDatum(MyDatabaseId));
	if (!RegisterDynamicBackgroundWorker(&worker, NULL))
		(void) ujobs_capacity_ask(1);
	return now + RESTART_US;
}

void
ujobs_scheduler_stop(UjobsEngine *of)
{
	ujobs_worker_end(of->scheduler_pid);
}

void
ujobs_scheduler_tell(UjobsEngine *of)
{
	pg_atomic_write_u32(&of->tasks_changed, 1);
	ujobs_engine_wake(&of->scheduler_latch);
}

/* ---- the process ---- */

static void
at_exit(int code, Datum arg)
{
	(void) ujobs_engine_leave_process(&engine->scheduler_pid);
	ujobs_engine_wake(&engine->dispatcher_latch);	/* which starts another one */
}

static void
start_process(Oid database)
{
	ujobs_worker_signals(die, ujobs_worker_own_cancel);
	engine = ujobs_engine_find(database);
	if (engine == NULL)
		proc_exit(0);
	ujobs_worker_enter(&engine->scheduler_pid, &engine->scheduler_latch, at_exit);
	ujobs_worker_connect(database, "ujobs scheduler", "200ms");
}

typedef struct Piece
{
	void		(*run) (TimestampTz now);
} Piece;

static void
run_piece(void *arg)
{
	((Piece *) arg)->run(GetCurrentTimestamp());
}

/*
 * One piece of housekeeping in its own transaction; what fails is tried again
 * next round.  Tasks that came due meanwhile do not wait for the next piece.
 */
static void
try_piece(const char *what, void (*piece) (TimestampTz now))
{
	ErrorData  *error = ujobs_worker_try(run_piece, &(Piece) {piece});

	if (error != NULL)
	{
		ereport(LOG, (errmsg("ujobs could not %s, will try again: %s", what, error->message)));
		FreeErrorData(error);
	}
	(void) ujobs_cron_round(engine);
}

/* Did history go since the steps that it left were looked for? */
static bool history_went = true;

static void
rotate(TimestampTz now)
{
	if (ujobs_retention_rotate(now))
		history_went = true;
}

static void
remove_left_steps(TimestampTz now)
{
	ujobs_retention_left_steps();
	history_went = false;
}

static void
expire_all(TimestampTz now)
{
	for (int slot = 0; slot < UJOBS_HISTORY_SLOTS; slot++)
		ujobs_retention_expire(slot, now);
}

static void
expire_batch(UjobsKept what, TimestampTz until)
{
	more = ujobs_retention_delete_batch(what, until, ROWS_AT_ONCE) == ROWS_AT_ONCE;
}

static void
expire_events(TimestampTz now)
{
	expire_batch(UJOBS_KEPT_EVENTS, now);
}

static void
expire_published(TimestampTz now)
{
	expire_batch(UJOBS_KEPT_PUBLISHED, now - ujobs_guc_retention * USECS_PER_SEC);
}

static void
expire_inbox(TimestampTz now)
{
	int64		kept = Max(ujobs_guc_retention * USECS_PER_SEC, INBOX_DAYS * USECS_PER_DAY);

	expire_batch(UJOBS_KEPT_TAKEN, now - kept);
}

static void
expire_in_batches(const char *what, void (*expire) (TimestampTz now))
{
	more = true;
	for (int i = 0; i < BATCHES && more; i++)
	{
		CHECK_FOR_INTERRUPTS();
		more = false;			/* should it fail */
		try_piece(what, expire);
	}
}

static void
refresh_names(TimestampTz now)
{
	ujobs_retention_names();
}

static void
maintain(bool first)
{
	if (first)
		try_piece("delete expired history", expire_all);
	try_piece("empty a history partition", rotate);
	if (history_went)
		try_piece("remove steps of jobs that are gone", remove_left_steps);
	expire_in_batches("delete expired events", expire_events);
	expire_in_batches("delete published messages", expire_published);
	expire_in_batches("delete records of messages taken in", expire_inbox);
	try_piece("refresh role names", refresh_names);
}

void
ujobs_scheduler_main(Datum arg)
{
	MemoryContext round;
	TimestampTz maintain_at = 0;

	start_process(DatumGetObjectId(arg));
	ujobs_cron_init();
	round = AllocSetContextCreate(TopMemoryContext, "ujobs round", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(round);
	for (bool first = true;; first = false)
	{
		TimestampTz next;

		if (!ujobs_worker_extension_is_here() || engine->dispatcher_pid == 0)
			proc_exit(0);
		MemoryContextSwitchTo(round);
		next = ujobs_cron_round(engine);
		next = Min(next, ujobs_expiry_round());
		if (GetCurrentTimestamp() >= maintain_at)
		{
			maintain(first);
			MemoryContextSwitchTo(round);
			maintain_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ROUND_MS);
			continue;
		}
		MemoryContextReset(round);
		ujobs_session_stats_activity(NULL);
		ujobs_session_stats_report(true);
		ujobs_worker_wait(ujobs_worker_ms_until(Min(next, maintain_at)));
	}
}
