/*
 * sink_nats_errand.c: a call that may block for longer than we may.
 *
 * Looking up a name, connecting and asking JetStream to make a stream have no
 * time limit that we could trust, and none of them looks at *stop.  Each is run
 * by a thread that exists only for it, while the caller looks at the clock.
 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "sink/option.h"
#include "sink/sink_nats.h"

typedef struct Errand
{
	UjobsNatsErrand what;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool		done;
	bool		abandoned;
} Errand;

static void
free_errand(Errand *errand)
{
	pthread_cond_destroy(&errand->changed);
	pthread_mutex_destroy(&errand->lock);
	free(errand);
}

static void *
run(void *argument)
{
	Errand	   *errand = argument;
	bool		abandoned;

	errand->what.work(errand->what.argument);
	nats_ReleaseThreadMemory();

	pthread_mutex_lock(&errand->lock);
	errand->done = true;
	abandoned = errand->abandoned;
	pthread_cond_signal(&errand->changed);
	pthread_mutex_unlock(&errand->lock);
	if (abandoned)
	{
		errand->what.abandoned(errand->what.argument);
		free_errand(errand);
	}
	return NULL;
}

bool
ujobs_nats_errand_is_over(UjobsNats *nats, UjobsSinkError *error)
{
	if (ujobs_option_is_stopped(nats->options))
		ujobs_option_fail(error, "stopped");
	else if (ujobs_option_now() >= nats->deadline)
		ujobs_option_fail(error, "no answer within %d ms", nats->options->timeout_ms);
	else
		return false;
	return true;
}

/* Until it is done, or there is no more time. */
static bool
wait_for(UjobsNats *nats, Errand *errand, UjobsSinkError *error)
{
	while (!errand->done)
	{
		struct timespec until;

		if (ujobs_nats_errand_is_over(nats, error))
			return false;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += UJOBS_NATS_SLICE_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		pthread_cond_timedwait(&errand->changed, &errand->lock, &until);
	}
	return true;
}

bool
ujobs_nats_errand_run(UjobsNats *nats, const UjobsNatsErrand *what, UjobsSinkError *error)
{
	Errand	   *errand = calloc(1, sizeof(Errand));
	pthread_t	thread;
	bool		done;

	if (errand == NULL)
		return ujobs_option_fail(error, "out of memory");
	errand->what = *what;
	pthread_mutex_init(&errand->lock, NULL);
	pthread_cond_init(&errand->changed, NULL);
	if (pthread_create(&thread, NULL, run, errand) != 0)
	{
		free_errand(errand);
		return ujobs_option_fail(error, "cannot start a thread");
	}

	pthread_mutex_lock(&errand->lock);
	done = wait_for(nats, errand, error);
	errand->abandoned = !done && what->abandoned != NULL;
	pthread_mutex_unlock(&errand->lock);
	if (!done && what->abandoned != NULL)
	{
		pthread_detach(thread);
		return false;
	}
	if (!done)
		natsConnection_Close(nats->link);
	pthread_join(thread, NULL);
	free_errand(errand);
	return done;
}
