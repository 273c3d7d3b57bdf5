/*
 * connection.c: the thread, what it shares with its owner, and its end.
 *
 * Up to the line "the owner's side" everything runs in the thread: no
 * PostgreSQL function, no memory but malloc's, no error but text.
 *
 * A thread that does not end when it is told to cannot be ended: its owner abandons it,
 * and it frees what they share when it ends.  If the process ends
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
	int			wake_end;

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
append(UjobsSinkBatch **list, UjobsSinkBatch *batch)
{
	batch->next = NULL;
	while (*list != NULL)
		list = &(*list)->next;
	*list = batch;
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

/* Under mutex: the pipe of an owner that has gone may be another file by now. */
static void
wake_owner(UjobsConnection *connection)
{
	if (!connection->abandoned)
		ujobs_wake_pipe_write(connection->wake_end);
}

static void
set_ready(UjobsConnection *connection)
{
	pthread_mutex_lock(&connection->mutex);
	connection->state = UJOBS_CONNECTION_READY;
	wake_owner(connection);
	pthread_mutex_unlock(&connection->mutex);
}

/* batch: what it was sending, or NULL. */
static void
set_broken(UjobsConnection *connection, const UjobsSinkError *error, UjobsSinkBatch *batch)
{
	pthread_mutex_lock(&connection->mutex);
	connection->state = UJOBS_CONNECTION_BROKEN;
	connection->error = *error;
	if (connection->error.text[0] == '\0')
		strcpy(connection->error.text, "the connection failed");
	if (batch == NULL)
		batch = shift(&connection->outgoing);
	for (; batch != NULL; batch = shift(&connection->outgoing))
	{
		batch->broken = true;
		append(&connection->back, batch);
	}
	wake_owner(connection);
	pthread_mutex_unlock(&connection->mutex);
}

static UjobsSinkBatch *
wait_for_batch(UjobsConnection *connection)
{
	UjobsSinkBatch *batch;

	pthread_mutex_lock(&connection->mutex);
	while (!connection->stop && connection->outgoing == NULL)
		pthread_cond_wait(&connection->changed, &connection->mutex);
	batch = connection->stop ? NULL : shift(&connection->outgoing);
	pthread_mutex_unlock(&connection->mutex);
	return batch;
}

static void
return_batch(UjobsConnection *connection, UjobsSinkBatch *batch)
{
	pthread_mutex_lock(&connection->mutex);
	append(&connection->back, batch);
	wake_owner(connection);
	pthread_mutex_unlock(&connection->mutex);
}

static void
publish_batches(UjobsConnection *connection, void *handle)
{
	UjobsSinkBatch *batch;

	while ((batch = wait_for_batch(connection)) != NULL)
	{
		UjobsSinkError error = {""};

		if (!connection->module->publish(handle, batch->messages, batch->n, &error))
		{
			set_broken(connection, &error, batch);
			return;
		}
		return_batch(connection, batch);
	}
}

/* How many may be taken now; 0: leave. */
static int
wait_for_allowance(UjobsConnection *connection)
{
	int			max;

	pthread_mutex_lock(&connection->mutex);
	while (!connection->stop && connection->allowed == 0)
		pthread_cond_wait(&connection->changed, &connection->mutex);
	max = connection->stop ? 0 : Min(connection->allowed, MAX_TAKE);
	pthread_mutex_unlock(&connection->mutex);
	return max;
}

static void
wait_for_verdicts(UjobsConnection *connection, int n)
{
	for (int i = 0; i < n; i++)
		connection->deliveries[i].verdict = UJOBS_SINK_LEAVE;
	pthread_mutex_lock(&connection->mutex);
	connection->settled = false;
	connection->n_taken = n;
	wake_owner(connection);
	while (!connection->stop && !connection->settled)
		pthread_cond_wait(&connection->changed, &connection->mutex);
	connection->n_taken = 0;
	pthread_mutex_unlock(&connection->mutex);
}

static void
take_deliveries(UjobsConnection *connection, void *handle)
{
	int			max;

	while ((max = wait_for_allowance(connection)) > 0)
	{
		UjobsSinkError error = {""};
		int			n =
			connection->module->take(handle, connection->deliveries, max, TAKE_WAIT_MS, &error);

		if (n > 0)
		{
			wait_for_verdicts(connection, n);
			if (!connection->module->settle(handle, connection->deliveries, n, &error))
				n = -1;
		}
		if (n < 0)
		{
			set_broken(connection, &error, NULL);
			return;
		}
	}
}

static void
run_connection(UjobsConnection *connection)
{
	UjobsSinkError error = {""};
	void	   *handle = connection->module->connect(&connection->options, &error);

	if (handle == NULL)
	{
		set_broken(connection, &error, NULL);
		return;
	}
	if (connection->queue != NULL &&
		!connection->module->subscribe(handle, connection->queue, &error))
		set_broken(connection, &error, NULL);
	else
	{
		set_ready(connection);
		if (connection->queue == NULL)
			publish_batches(connection, handle);
		else
			take_deliveries(connection, handle);
	}
	connection->module->disconnect(handle);
}

static void
free_connection(UjobsConnection *connection)
{
	UjobsSinkBatch *batch;

	while ((batch = shift(&connection->outgoing)) != NULL)
		ujobs_sink_batch_free(batch);
	while ((batch = shift(&connection->back)) != NULL)
		ujobs_sink_batch_free(batch);
	ujobs_sink_batch_free(connection->texts);
	pthread_cond_destroy(&connection->changed);
	pthread_cond_destroy(&connection->over);
	pthread_mutex_destroy(&connection->mutex);
	free(connection);
}

static void *
run(void *arg)
{
	UjobsConnection *connection = arg;
	bool		last;

	run_connection(connection);
	pthread_mutex_lock(&connection->mutex);
	connection->ended = true;
	last = connection->abandoned;
	pthread_cond_signal(&connection->over);
	pthread_mutex_unlock(&connection->mutex);
	if (last)
		free_connection(connection);
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
exit_at_once(void)
{
	if (exiting && threads > 0)
		_exit(exit_code);
}

static void
register_exit(void)
{
	static bool guarded = false;

	if (guarded)
		return;
	on_proc_exit(note_exit, (Datum) 0);
	if (atexit(exit_at_once) != 0)
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
copy_plan(UjobsConnection *connection, const UjobsConnectionPlan *plan)
{
	const UjobsSinkOptions *from = plan->options;
	UjobsSinkOptions *to = &connection->options;
	UjobsSinkBatch *texts = connection->texts = ujobs_sink_batch_new(1);

	connection->module = plan->module;
	connection->wake_end = plan->wake_end;
	if (plan->queue != NULL)
		connection->queue = ujobs_sink_batch_text(texts, plan->queue, strlen(plan->queue));
	*to = *from;
	to->sink = ujobs_sink_batch_text(texts, from->sink, strlen(from->sink));
	to->store_id = ujobs_sink_batch_text(texts, from->store_id, strlen(from->store_id));
	to->options = copy_pairs(texts, from->options, from->n_options);
	to->secrets = copy_pairs(texts, from->secrets, from->n_secrets);
	to->stop = &connection->stop;
}

static void
init_locks(UjobsConnection *connection)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&connection->mutex, NULL);
	pthread_cond_init(&connection->changed, NULL);
	pthread_cond_init(&connection->over, &attributes);
	pthread_condattr_destroy(&attributes);
}

/* The mask is inherited: no signal of PostgreSQL's may be handled in the thread. */
static int
start_thread(UjobsConnection *connection)
{
	sigset_t	all;
	sigset_t	before;
	int			result;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(&connection->thread, NULL, run, connection);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result;
}

UjobsConnection *
ujobs_connection_start(const UjobsConnectionPlan *plan)
{
	UjobsConnection *connection = calloc(1, sizeof(UjobsConnection));
	int			result;

	if (connection == NULL)
		return NULL;
	register_exit();
	init_locks(connection);
	copy_plan(connection, plan);
	result = start_thread(connection);
	if (result != 0)
	{
		free_connection(connection);
		errno = result;
		return NULL;
	}
	threads++;
	return connection;
}

/* ---- the owner's side: work ---- */

UjobsConnectionState
ujobs_connection_state(UjobsConnection *connection, UjobsSinkError *error)
{
	UjobsConnectionState state;

	pthread_mutex_lock(&connection->mutex);
	state = connection->state;
	if (state == UJOBS_CONNECTION_BROKEN && error != NULL)
		*error = connection->error;
	pthread_mutex_unlock(&connection->mutex);
	return state;
}

void
ujobs_connection_send(UjobsConnection *connection, UjobsSinkBatch *batch)
{
	pthread_mutex_lock(&connection->mutex);
	append(connection->state == UJOBS_CONNECTION_BROKEN ? &connection->back : &connection->outgoing,
		   batch);
	pthread_cond_signal(&connection->changed);
	pthread_mutex_unlock(&connection->mutex);
}

UjobsSinkBatch *
ujobs_connection_collect(UjobsConnection *connection)
{
	UjobsSinkBatch *batch;

	pthread_mutex_lock(&connection->mutex);
	batch = shift(&connection->back);
	pthread_mutex_unlock(&connection->mutex);
	return batch;
}

void
ujobs_connection_allow(UjobsConnection *connection, int max)
{
	pthread_mutex_lock(&connection->mutex);
	connection->allowed = max;
	pthread_cond_signal(&connection->changed);
	pthread_mutex_unlock(&connection->mutex);
}

int
ujobs_connection_taken(UjobsConnection *connection, UjobsSinkDelivery **deliveries)
{
	int			n;

	pthread_mutex_lock(&connection->mutex);
	n = connection->settled ? 0 : connection->n_taken;
	pthread_mutex_unlock(&connection->mutex);
	*deliveries = connection->deliveries;
	return n;
}

void
ujobs_connection_settle(UjobsConnection *connection)
{
	pthread_mutex_lock(&connection->mutex);
	connection->settled = true;
	pthread_cond_signal(&connection->changed);
	pthread_mutex_unlock(&connection->mutex);
}

/* ---- the owner's side: the end ---- */

/* Under mutex. */
static bool
wait_for_end(UjobsConnection *connection)
{
	struct timespec until;
	int			result = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += STOP_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	while (!connection->ended && result == 0)
		result = pthread_cond_timedwait(&connection->over, &connection->mutex, &until);
	return connection->ended;
}

void
ujobs_connection_stop(UjobsConnection *connection)
{
	pthread_t	thread;
	bool		ended;

	if (connection == NULL)
		return;
	thread = connection->thread;
	pthread_mutex_lock(&connection->mutex);
	connection->stop = true;
	pthread_cond_signal(&connection->changed);
	ended = wait_for_end(connection);
	connection->abandoned = !ended;
	pthread_mutex_unlock(&connection->mutex);
	if (!ended)
	{
		pthread_detach(thread); /* counts as a thread for ever */
		return;
	}
	pthread_join(thread, NULL);
	threads--;
	free_connection(connection);
}

/* ---- a session's try ---- */

static bool
wait_for_connection(UjobsConnection *connection, UjobsWakePipe *pipe, int timeout_ms,
					UjobsSinkError *error)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout_ms);
	UjobsConnectionState state;

	while ((state = ujobs_connection_state(connection, error)) == UJOBS_CONNECTION_CONNECTING)
	{
		long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);

		if (left <= 0)
		{
			snprintf(error->text, sizeof(error->text), "no connection within %d ms", timeout_ms);
			return false;
		}
		ujobs_wake_pipe_wait(pipe, left);
		CHECK_FOR_INTERRUPTS();
	}
	return state == UJOBS_CONNECTION_READY;
}

bool
ujobs_connection_try(const UjobsConnectionPlan *plan, int timeout_ms, UjobsSinkError *error)
{
	UjobsConnectionPlan own = *plan;
	UjobsSinkOptions options = *plan->options;
	UjobsWakePipe pipe;
	UjobsConnection *volatile connection = NULL;
	volatile bool connected = false;

	ujobs_wake_pipe_open(&pipe);
	PG_TRY();
	{
		options.check = true;
		own.options = &options;
		own.wake_end = pipe.write_end;
		connection = ujobs_connection_start(&own);
		if (connection == NULL)
			snprintf(error->text, sizeof(error->text), "could not start a thread: %s",
					 strerror(errno));
		else
			connected = wait_for_connection(connection, &pipe, timeout_ms, error);
	}
	PG_FINALLY();
	{
		ujobs_connection_stop(connection);
		ujobs_wake_pipe_close(&pipe);
	}
	PG_END_TRY();
	return connected;
}
