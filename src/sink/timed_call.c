/*
 * timed_call.c: a call that may block for longer than its caller may wait.
 *
 * Looking up a name, connecting, and some calls of client libraries have no time limit
 * that can be relied on, and none of them looks at the stop.  Each runs in a thread that
 * exists only for it, while the caller looks at the clock.  Of caller and thread, the
 * last one to leave frees what they share.
 *
 * Linked into each module.
 */
#include "sink/timed_call.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "sink/option.h"

/* How long a wait may overlook the stop. */
#define SLICE_NS 50000000L

typedef struct Run
{
	UjobsTimedCall call;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool		done;
	bool		abandoned;
} Run;

static Run *
make_run(const UjobsTimedCall *call)
{
	Run		   *run = calloc(1, sizeof(Run));
	pthread_condattr_t attributes;

	if (run == NULL)
		return NULL;
	run->call = *call;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&run->lock, NULL);
	pthread_cond_init(&run->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	return run;
}

static void
free_run(Run *run)
{
	pthread_cond_destroy(&run->changed);
	pthread_mutex_destroy(&run->lock);
	free(run);
}

/* The thread. */
static void *
run_thread(void *argument)
{
	Run		   *run = argument;
	bool		abandoned;

	run->call.work(run->call.argument);

	pthread_mutex_lock(&run->lock);
	run->done = true;
	abandoned = run->abandoned;
	pthread_cond_signal(&run->changed);
	pthread_mutex_unlock(&run->lock);
	if (abandoned)
	{
		run->call.release(run->call.argument);
		free_run(run);
	}
	return NULL;
}

bool
ujobs_timed_call_is_late(const UjobsSinkOptions *options, int64_t deadline, UjobsSinkError *error)
{
	if (ujobs_option_is_stopped(options))
		ujobs_option_fail(error, "stopped");
	else if (ujobs_option_now() >= deadline)
		ujobs_option_fail(error, "no answer within %d ms", options->timeout_ms);
	else
		return false;
	return true;
}

/* Waits, under the lock; false = it is late. */
static bool
wait_for(Run *run, const UjobsSinkOptions *options, int64_t deadline, UjobsSinkError *error)
{
	while (!run->done)
	{
		struct timespec until;

		if (ujobs_timed_call_is_late(options, deadline, error))
			return false;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += SLICE_NS;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		pthread_cond_timedwait(&run->changed, &run->lock, &until);
	}
	return true;
}

/* No thread was made for the call. */
static UjobsTimedCallEnd
refuse(const UjobsTimedCall *call, const char *why, UjobsSinkError *error)
{
	ujobs_option_fail(error, "%s", why);
	if (call->release != NULL)
		call->release(call->argument);
	return UJOBS_TIMED_CALL_NOT_STARTED;
}

UjobsTimedCallEnd
ujobs_timed_call_run(const UjobsSinkOptions *options, int64_t deadline, const UjobsTimedCall *call,
					 UjobsSinkError *error)
{
	Run		   *run = make_run(call);
	pthread_t	thread;
	bool		done;

	assert((call->release == NULL) != (call->interrupt == NULL));
	if (run == NULL)
		return refuse(call, "out of memory", error);
	if (pthread_create(&thread, NULL, run_thread, run) != 0)
	{
		free_run(run);
		return refuse(call, "cannot start a thread", error);
	}

	pthread_mutex_lock(&run->lock);
	done = wait_for(run, options, deadline, error);
	run->abandoned = !done && call->release != NULL;
	pthread_mutex_unlock(&run->lock);
	if (!done && call->release != NULL)
	{
		pthread_detach(thread);
		return UJOBS_TIMED_CALL_LATE;
	}
	if (!done)
		call->interrupt(call->argument);
	pthread_join(thread, NULL);
	free_run(run);
	return done ? UJOBS_TIMED_CALL_DONE : UJOBS_TIMED_CALL_LATE;
}
