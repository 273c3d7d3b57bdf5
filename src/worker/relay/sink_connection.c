/*
 * sink_connection.c: connecting, breaking, and how that is reported.
 *
 * A connection that worked and breaks is made anew at once without a report: systems
 * close idle connections.  Only when that fails too it is reported: once in the log,
 * until it is over, and in ujobs.sinks each time, with the next try.
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/pg_prng.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/error.h"
#include "core/sink_module.h"
#include "worker/relay/sink_connection.h"
#include "worker/worker.h"

#define FIRST_PAUSE_MS 100
#define LONGEST_PAUSE_MS 30000
#define WRITE_AGAIN_MS 1000
#define STEADY_MS 10000			/* a connection that lasted so long was good */

UjobsWakePipe *
ujobs_sink_connection_wake_pipe(void)
{
	static UjobsWakePipe pipe;
	static bool open = false;

	if (!open)
		ujobs_wake_pipe_open(&pipe);
	open = true;
	return &pipe;
}

UjobsRelaySink *
ujobs_sink_connection_make_sink(const UjobsSink *row, const char *store_id)
{
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext, "ujobs sink",
												 ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(memory);
	UjobsRelaySink *sink = palloc0(sizeof(UjobsRelaySink));
	UjobsSinkFacts facts = {
		.sink = sink->name = pstrdup(row->name),
		.store_id = store_id,
		.options = row->options,
		.secret = row->secret
	};

	Assert(IsTransactionState());
	sink->memory = memory;
	sink->id = row->id;
	sink->revision = row->revision;
	sink->kind = pstrdup(row->kind);
	sink->options = ujobs_sink_module_options(&facts, NULL);
	sink->attempts = ujobs_sink_module_attempts(row->options);
	sink->status = palloc0(sizeof(UjobsSinkStatus));
	sink->status->stale = true; /* written by another relay, or for another revision */
	MemoryContextSwitchTo(old);
	return sink;
}

/* ---- reports ---- */

void
ujobs_sink_connection_report(UjobsSinkReport *last, const char *what, ErrorData *error)
{
	char		text[sizeof(last->text)] = "";

	if (error != NULL)
		snprintf(text, sizeof(text), "%s: %s", what, error->message);
	if (error != NULL && strcmp(text, last->text) != 0)
		ereport(LOG, (errmsg("ujobs could not %s, will try again: %s", what, error->message)));
	strcpy(last->text, text);
	if (error != NULL)
		FreeErrorData(error);
}

typedef struct Report
{
	const UjobsSinkConnection *connection;
	const char *error;			/* NULL: it can be reached */
} Report;

static void
write_report(void *arg)
{
	Report	   *report = arg;

	ujobs_sink_set_status(report->connection->sink->id, report->error, GetCurrentTimestamp(),
						  report->connection->connect_at);
}

static bool
write_status(const UjobsSinkConnection *connection, const char *text)
{
	UjobsSinkStatus *status = connection->sink->status;
	Report		report = {connection, text};
	ErrorData  *error = ujobs_worker_try(write_report, &report);
	bool		written = error == NULL;

	ujobs_sink_connection_report(
		&status->report, psprintf("record the state of sink \"%s\"", connection->sink->name),
		error);
	if (!written)
		status->write_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), WRITE_AGAIN_MS);
	return written;
}

/* At each break: the next try is another one. */
static void
report_broken(UjobsSinkConnection *connection, const char *text)
{
	UjobsSinkStatus *status = connection->sink->status;

	if (!connection->reported)
		ereport(LOG, (errmsg("ujobs cannot reach sink \"%s\", will try again: %s", connection->sink->name, text)));
	connection->reported = true;
	if (!write_status(connection, text))
		return;
	status->reporter = connection;
	status->stale = false;
}

/* It works again, or is not there any more. */
static void
end_report(UjobsSinkConnection *connection)
{
	UjobsSinkStatus *status = connection->sink->status;

	connection->reported = false;
	if (status->reporter != connection)
		return;
	status->reporter = NULL;
	status->stale = true;
}

/* Another connection that is still broken is reported with its next break. */
static void
clear_status(const UjobsSinkConnection *connection, TimestampTz now)
{
	UjobsSinkStatus *status = connection->sink->status;

	if (status->stale && now >= status->write_at)
		status->stale = !write_status(connection, NULL);
}

/* ---- connecting and breaking ---- */

/* 100 ms, doubled each time up to 30 s, and of that between half and all. */
static int
pause_ms(int breaks)
{
	int			longest = Min(FIRST_PAUSE_MS << Min(breaks - 1, 12), LONGEST_PAUSE_MS);

	return longest / 2 + (int) pg_prng_uint64_range(&pg_global_prng_state, 0, longest / 2);
}

static void
note_break(UjobsSinkConnection *connection, TimestampTz now, const char *text)
{
	bool		was_ready = connection->ready;

	if (was_ready && now - connection->ready_at > STEADY_MS * INT64CONST(1000))
		connection->breaks = 0;
	connection->breaks++;
	connection->ready = false;
	connection->connect_at = TimestampTzPlusMilliseconds(now, pause_ms(connection->breaks));
	if (connection->reported || !was_ready || connection->breaks > 1)
		report_broken(connection, text);
}

typedef struct Search
{
	const char *kind;
	const UjobsSinkModule *module;	/* NULL: error says why */
	UjobsSinkError *error;
} Search;

static void
search(void *arg)
{
	Search	   *search = arg;
	char	   *reason = NULL;

	search->module = ujobs_sink_module(search->kind, &reason);
	if (search->module == NULL)
		strlcpy(search->error->text, reason, sizeof(search->error->text));
}

static const UjobsSinkModule *
find_module(const UjobsRelaySink *sink, UjobsSinkError *error)
{
	Search		found = {.kind = sink->kind, .error = error};
	ErrorData  *raised = ujobs_worker_try(search, &found);

	if (raised == NULL)
		return found.module;
	strlcpy(error->text, raised->message, sizeof(error->text));
	FreeErrorData(raised);
	return NULL;
}

static void
start_connection(UjobsSinkConnection *connection, TimestampTz now)
{
	UjobsSinkError error = {""};
	UjobsConnectionPlan plan = {
		.module = find_module(connection->sink, &error),
		.options = connection->sink->options,
		.queue = connection->queue,
		.wake_end = ujobs_sink_connection_wake_pipe()->write_end
	};

	if (plan.module != NULL)
	{
		connection->thread = ujobs_connection_start(&plan);
		if (connection->thread == NULL)
			snprintf(error.text, sizeof(error.text), "could not start a thread: %s",
					 strerror(errno));
	}
	if (connection->thread == NULL)
		note_break(connection, now, error.text);
}

static void
note_ready(UjobsSinkConnection *connection, TimestampTz now)
{
	connection->ready = true;
	connection->ready_at = now;
	if (connection->reported)
		ereport(LOG, (errmsg("ujobs can reach sink \"%s\" again", connection->sink->name)));
	end_report(connection);
}

void
ujobs_sink_connection_drop(UjobsSinkConnection *connection, TimestampTz now, const char *text)
{
	ujobs_connection_stop(connection->thread);
	connection->thread = NULL;
	note_break(connection, now, text);
}

bool
ujobs_sink_connection_keep(UjobsSinkConnection *connection, TimestampTz now)
{
	UjobsSinkError error;

	Assert(!IsTransactionState());
	if (connection->thread == NULL)
	{
		if (now >= connection->connect_at)
			start_connection(connection, now);
		return false;
	}
	switch (ujobs_connection_state(connection->thread, &error))
	{
		case UJOBS_CONNECTION_CONNECTING:
			break;
		case UJOBS_CONNECTION_READY:
			if (!connection->ready)
				note_ready(connection, now);
			clear_status(connection, now);
			break;
		case UJOBS_CONNECTION_BROKEN:
			ujobs_sink_connection_drop(connection, now, error.text);
			break;
	}
	return connection->ready;
}

void
ujobs_sink_connection_works(UjobsSinkConnection *connection)
{
	connection->breaks = 0;
}

TimestampTz
ujobs_sink_connection_next(const UjobsSinkConnection *connection)
{
	return connection->thread == NULL ? connection->connect_at : DT_NOEND;
}

void
ujobs_sink_connection_close(UjobsSinkConnection *connection)
{
	ujobs_connection_stop(connection->thread);
	connection->thread = NULL;
	connection->ready = false;
	end_report(connection);
}
