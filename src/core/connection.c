/*
 * connection.c: the thread, the locked box between it and its owner, the end.
 *
 * Up to the line "the owner's side" everything runs in the thread: no
 * PostgreSQL function, no memory but malloc's, no error but text.
 *
 * A thread that does not end when it is told to cannot be ended; its owner
 * leaves it the box, and whoever is last frees that.  If the process ends
 * meanwhile, it does so without the libraries' exit functions, which would
 * run below a thread that still uses them.
 */
#include "postgres.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"

#include "core/connection.h"

#define STOP_MS 500
#define TAKE_WAIT_MS 1000
#define MAX_TAKE 1000

struct UjobsConnection
{
	pthread_t	thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;		/* by the owner: there is something to do */
	pthread_cond_t over;		/* by the thread: it has ended */

	/* Constant. */
	const UjobsSinkModule *module;
	UjobsSinkOptions options;
	UjobsSinkBatch *texts;			/* memory of the options */
	const char *queue;
	int			bell;

	/* Under mutex; stop is also read without it, by the module. */
	volatile bool stop;
	bool		abandoned;
	bool		ended;
	UjobsConnectionState state;
	UjobsSinkError error;
	UjobsSinkBatch *outgoing;
	UjobsSinkBatch *back;
	int			allowed;
	int			n_taken;		/* the owner's turn while not 0 */
	bool		settled;		/* the thread's turn again */

	UjobsSinkDelivery deliveries[MAX_TAKE];
};

/* ---- the thread's side ---- */

static void
append(UjobsSinkBatch **list, UjobsSinkBatch *parcel)
{
	parcel->next = NULL;
	while (*list != NULL)
		list = &(*list)->next;
	*list = parcel;
}

static UjobsSinkBatch *
shift(UjobsSinkBatch **list)
{
	UjobsSinkBatch *first = *list;

	if (first != NULL)
	{
		*list = first->next;
		first->next = NULL;
	}
	return first;
}

/* Under mutex: the bell of an owner who has gone may be another file by now. */
static void
ring(UjobsConnection *courier)
{
	if (!courier->abandoned)
		ujobs_wake_pipe_write(courier->bell);
}

static void
say_ready(UjobsConnection *courier)
{
	pthread_mutex_lock(&courier->mutex);
	courier->state = UJOBS_CONNECTION_READY;
	ring(courier);
	pthread_mutex_unlock(&courier->mutex);
}

/* parcel: what it carried when that happened, or NULL. */
static void
say_broken(UjobsConnection *courier, const UjobsSinkError *error, UjobsSinkBatch *parcel)
{
	pthread_mutex_lock(&courier->mutex);
	courier->state = UJOBS_CONNECTION_BROKEN;
	courier->error = *error;
	if (courier->error.text[0] == '\0')
		strcpy(courier->error.text, "the connection failed");
	if (parcel == NULL)
		parcel = shift(&courier->outgoing);
	for (; parcel != NULL; parcel = shift(&courier->outgoing))
	{
		parcel->broken = true;
		append(&courier->back, parcel);
	}
	ring(courier);
	pthread_mutex_unlock(&courier->mutex);
}

static UjobsSinkBatch *
await_parcel(UjobsConnection *courier)
{
	UjobsSinkBatch *parcel;

	pthread_mutex_lock(&courier->mutex);
	while (!courier->stop && courier->outgoing == NULL)
		pthread_cond_wait(&courier->changed, &courier->mutex);
	parcel = courier->stop ? NULL : shift(&courier->outgoing);
	pthread_mutex_unlock(&courier->mutex);
	return parcel;
}

static void
give_back(UjobsConnection *courier, UjobsSinkBatch *parcel)
{
	pthread_mutex_lock(&courier->mutex);
	append(&courier->back, parcel);
	ring(courier);
	pthread_mutex_unlock(&courier->mutex);
}

static void
carry_out(UjobsConnection *courier, void *connection)
{
	UjobsSinkBatch *parcel;

	while ((parcel = await_parcel(courier)) != NULL)
	{
		UjobsSinkError error = {""};

		if (!courier->module->publish(connection, parcel->messages, parcel->n, &error))
		{
			say_broken(courier, &error, parcel);
			return;
		}
		give_back(courier, parcel);
	}
}

/* How many may be taken now; 0: leave. */
static int
await_leave_to_take(UjobsConnection *courier)
{
	int			max;

	pthread_mutex_lock(&courier->mutex);
	while (!courier->stop && courier->allowed == 0)
		pthread_cond_wait(&courier->changed, &courier->mutex);
	max = courier->stop ? 0 : Min(courier->allowed, MAX_TAKE);
	pthread_mutex_unlock(&courier->mutex);
	return max;
}

static void
await_verdicts(UjobsConnection *courier, int n)
{
	for (int i = 0; i < n; i++)
		courier->deliveries[i].verdict = UJOBS_SINK_LEAVE;
	pthread_mutex_lock(&courier->mutex);
	courier->settled = false;
	courier->n_taken = n;
	ring(courier);
	while (!courier->stop && !courier->settled)
		pthread_cond_wait(&courier->changed, &courier->mutex);
	courier->n_taken = 0;
	pthread_mutex_unlock(&courier->mutex);
}

static void
carry_in(UjobsConnection *courier, void *connection)
{
	int			max;

	while ((max = await_leave_to_take(courier)) > 0)
	{
		UjobsSinkError error = {""};
		int			n = courier->module->take(connection, courier->deliveries, max, TAKE_WAIT_MS, &error);

		if (n > 0)
		{
			await_verdicts(courier, n);
			if (!courier->module->settle(connection, courier->deliveries, n, &error))
				n = -1;
		}
		if (n < 0)
		{
			say_broken(courier, &error, NULL);
			return;
		}
	}
}

static void
serve(UjobsConnection *courier)
{
	UjobsSinkError error = {""};
	void	   *connection = courier->module->connect(&courier->options, &error);

	if (connection == NULL)
	{
		say_broken(courier, &error, NULL);
		return;
	}
	if (courier->queue != NULL && !courier->module->subscribe(connection, courier->queue, &error))
		say_broken(courier, &error, NULL);
	else
	{
		say_ready(courier);
		if (courier->queue == NULL)
			carry_out(courier, connection);
		else
			carry_in(courier, connection);
	}
	courier->module->disconnect(connection);
}

static void
free_courier(UjobsConnection *courier)
{
	UjobsSinkBatch *parcel;

	while ((parcel = shift(&courier->outgoing)) != NULL)
		ujobs_sink_batch_free(parcel);
	while ((parcel = shift(&courier->back)) != NULL)
		ujobs_sink_batch_free(parcel);
	ujobs_sink_batch_free(courier->texts);
	pthread_cond_destroy(&courier->changed);
	pthread_cond_destroy(&courier->over);
	pthread_mutex_destroy(&courier->mutex);
	free(courier);
}

static void *
run(void *arg)
{
	UjobsConnection *courier = arg;
	bool		last;

	serve(courier);
	pthread_mutex_lock(&courier->mutex);
	courier->ended = true;
	last = courier->abandoned;
	pthread_cond_signal(&courier->over);
	pthread_mutex_unlock(&courier->mutex);
	if (last)
		free_courier(courier);
	return NULL;
}

/* ---- the owner's side: the end of the process ---- */

static int	threads = 0;		/* not joined */
static bool exiting = false;
static int	exit_code;

static void
note_exit(int code, Datum arg)
{
	exiting = true;
	exit_code = code;
}

/* After everything that PostgreSQL does at exit, before what libraries do. */
static void
leave_at_once(void)
{
	if (exiting && threads > 0)
		_exit(exit_code);
}

static void
guard_exit(void)
{
	static bool guarded = false;

	if (guarded)
		return;
	on_proc_exit(note_exit, (Datum) 0);
	if (atexit(leave_at_once) != 0)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	guarded = true;
}

/* ---- the owner's side: birth ---- */

static const UjobsSinkPair *
copy_pairs(UjobsSinkBatch *texts, const UjobsSinkPair *pairs, int n)
{
	UjobsSinkPair *copy = ujobs_sink_batch_pairs(texts, n);

	for (int i = 0; i < n; i++)
	{
		copy[i].name = ujobs_sink_batch_text(texts, pairs[i].name, strlen(pairs[i].name));
		copy[i].value = ujobs_sink_batch_text(texts, pairs[i].value, strlen(pairs[i].value));
	}
	return copy;
}

static void
copy_plan(UjobsConnection *courier, const UjobsConnectionPlan *plan)
{
	const UjobsSinkOptions *from = plan->options;
	UjobsSinkOptions *to = &courier->options;
	UjobsSinkBatch *texts = courier->texts = ujobs_sink_batch_new(1);

	courier->module = plan->module;
	courier->bell = plan->bell;
	if (plan->queue != NULL)
		courier->queue = ujobs_sink_batch_text(texts, plan->queue, strlen(plan->queue));
	*to = *from;
	to->sink = ujobs_sink_batch_text(texts, from->sink, strlen(from->sink));
	to->home = ujobs_sink_batch_text(texts, from->home, strlen(from->home));
	to->options = copy_pairs(texts, from->options, from->n_options);
	to->secrets = copy_pairs(texts, from->secrets, from->n_secrets);
	to->stop = &courier->stop;
}

static void
init_locks(UjobsConnection *courier)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&courier->mutex, NULL);
	pthread_cond_init(&courier->changed, NULL);
	pthread_cond_init(&courier->over, &attributes);
	pthread_condattr_destroy(&attributes);
}

/* The mask is inherited: no signal of PostgreSQL's may be handled in the thread. */
static int
start_thread(UjobsConnection *courier)
{
	sigset_t	all;
	sigset_t	before;
	int			result;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(&courier->thread, NULL, run, courier);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result;
}

UjobsConnection *
ujobs_connection_start(const UjobsConnectionPlan *plan)
{
	UjobsConnection *courier = calloc(1, sizeof(UjobsConnection));
	int			result;

	if (courier == NULL)
		return NULL;
	guard_exit();
	init_locks(courier);
	copy_plan(courier, plan);
	result = start_thread(courier);
	if (result != 0)
	{
		free_courier(courier);
		errno = result;
		return NULL;
	}
	threads++;
	return courier;
}

/* ---- the owner's side: work ---- */

UjobsConnectionState
ujobs_connection_state(UjobsConnection *courier, UjobsSinkError *error)
{
	UjobsConnectionState state;

	pthread_mutex_lock(&courier->mutex);
	state = courier->state;
	if (state == UJOBS_CONNECTION_BROKEN && error != NULL)
		*error = courier->error;
	pthread_mutex_unlock(&courier->mutex);
	return state;
}

void
ujobs_connection_send(UjobsConnection *courier, UjobsSinkBatch *parcel)
{
	pthread_mutex_lock(&courier->mutex);
	append(courier->state == UJOBS_CONNECTION_BROKEN ? &courier->back : &courier->outgoing, parcel);
	pthread_cond_signal(&courier->changed);
	pthread_mutex_unlock(&courier->mutex);
}

UjobsSinkBatch *
ujobs_connection_collect(UjobsConnection *courier)
{
	UjobsSinkBatch *parcel;

	pthread_mutex_lock(&courier->mutex);
	parcel = shift(&courier->back);
	pthread_mutex_unlock(&courier->mutex);
	return parcel;
}

void
ujobs_connection_allow(UjobsConnection *courier, int max)
{
	pthread_mutex_lock(&courier->mutex);
	courier->allowed = max;
	pthread_cond_signal(&courier->changed);
	pthread_mutex_unlock(&courier->mutex);
}

int
ujobs_connection_taken(UjobsConnection *courier, UjobsSinkDelivery **deliveries)
{
	int			n;

	pthread_mutex_lock(&courier->mutex);
	n = courier->settled ? 0 : courier->n_taken;
	pthread_mutex_unlock(&courier->mutex);
	*deliveries = courier->deliveries;
	return n;
}

void
ujobs_connection_settle(UjobsConnection *courier)
{
	pthread_mutex_lock(&courier->mutex);
	courier->settled = true;
	pthread_cond_signal(&courier->changed);
	pthread_mutex_unlock(&courier->mutex);
}

/* ---- the owner's side: the end ---- */

/* Under mutex. */
static bool
await_end(UjobsConnection *courier)
{
	struct timespec until;
	int			result = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += STOP_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	while (!courier->ended && result == 0)
		result = pthread_cond_timedwait(&courier->over, &courier->mutex, &until);
	return courier->ended;
}

void
ujobs_connection_stop(UjobsConnection *courier)
{
	pthread_t	thread;
	bool		ended;

	if (courier == NULL)
		return;
	thread = courier->thread;
	pthread_mutex_lock(&courier->mutex);
	courier->stop = true;
	pthread_cond_signal(&courier->changed);
	ended = await_end(courier);
	courier->abandoned = !ended;
	pthread_mutex_unlock(&courier->mutex);
	if (!ended)
	{
		pthread_detach(thread); /* counts as a thread for ever */
		return;
	}
	pthread_join(thread, NULL);
	threads--;
	free_courier(courier);
}

/* ---- a session's try ---- */

static bool
await_connection(UjobsConnection *courier, UjobsWakePipe *bell, int timeout_ms, UjobsSinkError *error)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout_ms);
	UjobsConnectionState state;

	while ((state = ujobs_connection_state(courier, error)) == UJOBS_CONNECTION_CONNECTING)
	{
		long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);

		if (left <= 0)
		{
			snprintf(error->text, sizeof(error->text), "no connection within %d ms", timeout_ms);
			return false;
		}
		ujobs_wake_pipe_wait(bell, left);
		CHECK_FOR_INTERRUPTS();
	}
	return state == UJOBS_CONNECTION_READY;
}

bool
ujobs_connection_try(const UjobsConnectionPlan *plan, int timeout_ms, UjobsSinkError *error)
{
	UjobsConnectionPlan own = *plan;
	UjobsSinkOptions options = *plan->options;
	UjobsWakePipe	bell;
	UjobsConnection *volatile courier = NULL;
	volatile bool connected = false;

	ujobs_wake_pipe_open(&bell);
	PG_TRY();
	{
		options.check = true;
		own.options = &options;
		own.bell = bell.write_end;
		courier = ujobs_connection_start(&own);
		if (courier == NULL)
			snprintf(error->text, sizeof(error->text), "could not start a thread: %s", strerror(errno));
		else
			connected = await_connection(courier, &bell, timeout_ms, error);
	}
	PG_FINALLY();
	{
		ujobs_connection_stop(courier);
		ujobs_wake_pipe_close(&bell);
	}
	PG_END_TRY();
	return connected;
}
