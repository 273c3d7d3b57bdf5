/*
 * interrupt.c: timers and flags of one attempt.
 */
#include "postgres.h"

#include <signal.h>

#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "tcop/tcopprot.h"
#include "utils/timeout.h"

#include "core/clock.h"
#include "core/error.h"
#include "core/shmem.h"
#include "run/interrupt.h"
#include "run/settle.h"

typedef struct Clock
{
	TimeoutId	id;
	int64		ms;				/* 0: does not run */
	volatile sig_atomic_t passed;
} Clock;

static Clock job_clock;
static Clock step_clock;
static bool has_clocks = false;
static void (*passed_hook)(void) = NULL;
static volatile sig_atomic_t cancelled = false;
static volatile sig_atomic_t signalled = false;

static void
interrupt(Clock *clock)
{
	clock->passed = true;
	InterruptPending = true;
	QueryCancelPending = true;
	SetLatch(MyLatch);
	passed_hook();
}

static void
on_job_timeout(void)
{
	interrupt(&job_clock);
}

static void
on_step_timeout(void)
{
	interrupt(&step_clock);
}

void
ujobs_interrupt_init(void (*on_passed)(void))
{
	passed_hook = on_passed;
	job_clock.id = RegisterTimeout(USER_TIMEOUT, on_job_timeout);
	step_clock.id = RegisterTimeout(USER_TIMEOUT, on_step_timeout);
	has_clocks = true;
}

void
ujobs_interrupt_reset(void)
{
	job_clock.ms = step_clock.ms = 0;
	job_clock.passed = step_clock.passed = cancelled = false;
}

static void
start(Clock *clock, int64 ms)
{
	if (!has_clocks || ms <= 0)
		return;
	clock->ms = ms;
	enable_timeout_at(clock->id, ujobs_clock_add(GetCurrentTimestamp(), ms * 1000));
}

static void
stop(Clock *clock)
{
	if (clock->ms == 0)
		return;
	disable_timeout(clock->id, false);
	if (!clock->passed)
		clock->ms = 0;			/* it says for how long the error words it */
}

void
ujobs_interrupt_time_job(int64 ms)
{
	start(&job_clock, ms);
}

void
ujobs_interrupt_time_step(int64 ms)
{
	start(&step_clock, ms);
}

void
ujobs_interrupt_stop_step(void)
{
	stop(&step_clock);
}

void
ujobs_interrupt_stop(void)
{
	stop(&step_clock);
	stop(&job_clock);
}

void
ujobs_interrupt_note_cancel(void)
{
	cancelled = true;
}

bool
ujobs_interrupt_was_cancelled(void)
{
	return cancelled;
}

static void
on_signal(SIGNAL_ARGS)
{
	if (!get_timeout_indicator(LOCK_TIMEOUT, false))
		signalled = true;		/* lock_timeout sends the same signal */
	StatementCancelHandler(postgres_signal_arg);
}

/*
 * Other kinds of processes may treat SIGINT in their own way: there every
 * query_canceled counts as a cancel.
 */
void
ujobs_interrupt_watch(void)
{
	signalled = MyBackendType != B_BACKEND;
	if (MyBackendType == B_BACKEND)
		pqsignal(SIGINT, on_signal);
	if (QueryCancelPending)
		signalled = true;		/* it came before the watch, and was not served yet */
}

void
ujobs_interrupt_unwatch(void)
{
	if (MyBackendType == B_BACKEND)
		pqsignal(SIGINT, StatementCancelHandler);
}

bool
ujobs_interrupt_was_signalled(void)
{
	return signalled;
}

bool
ujobs_interrupt_timed_out(void)
{
	return job_clock.passed || step_clock.passed;
}

void
ujobs_interrupt_check(void)
{
	if (ujobs_interrupt_timed_out())
		ereport(ERROR,
				(ujobs_errcode(JOB_TIMEOUT),
				 errmsg("job ran longer than its timeout")));
	if (cancelled)
		ereport(ERROR,
				(errcode(ERRCODE_QUERY_CANCELED),
				 errmsg("canceling the attempt: it was cancelled before and went on")));
}

ErrorData *
ujobs_interrupt_timeout_error(void)
{
	bool		of_step = !job_clock.passed;
	int64		ms = of_step ? step_clock.ms : job_clock.ms;
	ErrorData  *error = ujobs_settle_make_error(UJOBS_ERRCODE(JOB_TIMEOUT), of_step ?
												"a step ran longer than step_timeout" :
												"job ran longer than its timeout");

	error->detail = psprintf("The timeout is %lld ms.", (long long) ms);
	error->hint = psprintf("Raise the definition's %s, or make the work shorter.",
						   of_step ? "step_timeout" : "timeout");
	return error;
}
