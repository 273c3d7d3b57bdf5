/*
 * worker.c: birth, wait and clean-up of all engine processes.
 */
#include "postgres.h"

#include <signal.h>

#include "access/xact.h"
#include "jit/jit.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "replication/slot.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "core/clock.h"
#include "core/identity.h"
#include "core/session_stats.h"
#include "worker/worker.h"

bool
ujobs_worker_is_own_cancel(void)
{
	return get_timeout_indicator(LOCK_TIMEOUT, false);
}

void
ujobs_worker_own_cancel(SIGNAL_ARGS)
{
	if (ujobs_worker_is_own_cancel())
		StatementCancelHandler(postgres_signal_arg);
}

void
ujobs_worker_enter(pid_t *pid, Latch *volatile *latch, pg_on_exit_callback at_exit)
{
	before_shmem_exit(at_exit, (Datum) 0);
	if (!ujobs_engine_enter_process(pid, latch))
		proc_exit(0);
}

void
ujobs_worker_end(pid_t pid)
{
	if (pid != 0)
		kill(pid, SIGTERM);
}

bool
ujobs_worker_extension_is_here(void)
{
	MemoryContext caller = CurrentMemoryContext;
	bool		here;

	StartTransactionCommand();
	here = OidIsValid(ujobs_identity_extension_owner());
	CommitTransactionCommand();
	MemoryContextSwitchTo(caller);
	return here;
}

void
ujobs_worker_signals(pqsigfunc on_terminate, pqsigfunc on_cancel)
{
	pqsignal(SIGTERM, on_terminate);
	pqsignal(SIGINT, on_cancel);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
}

void
ujobs_worker_settle_session(const char *application_name)
{
	static const char *const fixed[][2] = {
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_read_only", "off"},
		{"default_transaction_deferrable", "off"},
		{"statement_timeout", "0"},
		{"lock_timeout", "0"},
		{"idle_in_transaction_session_timeout", "0"},
		{"exit_on_error", "off"},
		{"transaction_timeout", "0"},	/* since 17 */
	};

	ujobs_clock_use_real();
	for (int i = 0; i < lengthof(fixed); i++)
	{
		if (GetConfigOption(fixed[i][0], true, false) != NULL)
			SetConfigOption(fixed[i][0], fixed[i][1], PGC_SUSET, PGC_S_OVERRIDE);
	}
	SetConfigOption("application_name", application_name, PGC_USERSET, PGC_S_OVERRIDE);
}

void
ujobs_worker_connect(Oid database, const char *application_name, const char *lock_timeout)
{
	BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, 0);
	ujobs_worker_settle_session(application_name);
	SetConfigOption("lock_timeout", lock_timeout, PGC_SUSET, PGC_S_OVERRIDE);
}

static void
after_wait(void)
{
	QueryCancelPending = false; /* a late cancel has nothing left to cancel */
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

void
ujobs_worker_wait(long timeout_ms)
{
	ujobs_session_stats_wait(timeout_ms);
	after_wait();
}

void
ujobs_worker_wait_pipe(UjobsWakePipe *pipe, long timeout_ms)
{
	ujobs_wake_pipe_wait(pipe, timeout_ms);
	after_wait();
}

long
ujobs_worker_ms_until(TimestampTz then)
{
	int64		us;

	if (then == DT_NOEND)
		return 3600000;
	us = then - GetCurrentTimestamp();
	if (us <= 0)
		return 0;
	return (long) Min((us + 999) / 1000, 3600000);
}

/* Of the caller of begin: the server leaves a context of its own after a commit. */
static MemoryContext around;

void
ujobs_worker_begin(void)
{
	Assert(!IsTransactionState());
	around = CurrentMemoryContext;
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
}

void
ujobs_worker_commit(void)
{
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(around);
}

void
ujobs_worker_recover(MemoryContext context)
{
	HOLD_INTERRUPTS();
	disable_all_timeouts(false);
	QueryCancelPending = false;
	MemoryContextSwitchTo(context);
	AbortCurrentTransaction();
	PortalErrorCleanup();
	if (MyReplicationSlot != NULL)
		ReplicationSlotRelease();
	jit_reset_after_error();
	MemoryContextSwitchTo(context);
	RESUME_INTERRUPTS();
}

ErrorData *
ujobs_worker_try(UjobsWork work, void *arg)
{
	MemoryContext memory = CurrentMemoryContext;
	ErrorData  *volatile error = NULL;

	PG_TRY();
	{
		ujobs_worker_begin();
		work(arg);
		ujobs_worker_commit();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(memory);
		error = CopyErrorData();
		FlushErrorState();
		ujobs_worker_recover(memory);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(memory);
	return error;
}
