/*
 * sink_connection.c: connecting, breaking, and what people are told of it.
 *
 * A connection that worked and breaks is made anew at once and no message says so
 * of it: systems close idle connections.  Only when that fails too it is
 * news: once in the log, until it is over, and in ujobs.sinks each time, with
 * the next try.
 */
#include "postgres.h"

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
ujobs_sink_connection_make_sink(const UjobsSink *row, const char *home)
{
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext, "ujobs sink", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(memory);
	UjobsRelaySink *sink = palloc0(sizeof(UjobsRelaySink));
	UjobsSinkFacts facts = {
		.sink = sink->name = pstrdup(row->name),
		.home = home,
		.options = row->options,
		.secret = row->secret
	};

	sink->memory = memory;
	sink->id = row->id;
	sink->revision = row->revision;
	sink->kind = pstrdup(row->kind);
	sink->options = ujobs_sink_module_options(&facts, NULL);
	sink->attempts = ujobs_sink_module_attempts(row->options);
	sink->status = palloc0(sizeof(UjobsSinkStatus));
	sink->status->stale = true; /* who wrote it was another relay, or of another revision */
	MemoryContextSetParent(memory, TopMemoryContext);	/* now that nothing can fail */
	MemoryContextSwitchTo(old);
	return sink;
}

/* ---- what people are told ---- */

void
ujobs_sink_connection_report(UjobsSinkReport *news, const char *what, ErrorData *error)
{
	char		text[sizeof(news->text)] = "";

	if (error != NULL)
		snprintf(text, sizeof(text), "%s: %s", what, error->message);
	if (error != NULL && strcmp(text, news->text) != 0)
		ereport(LOG, (errmsg("ujobs could not %s, will try again: %s", what, error->message)));
	strcpy(news->text, text);
	if (error != NULL)
		FreeErrorData(error);
}

typedef struct Report
{
	const UjobsSinkConnection *link;
	const char *error;			/* NULL: it can be reached */
} Report;

static void
write_report(void *arg)
{
	Report	   *report = arg;

	ujobs_sink_set_status(report->link->sink->id, report->error, GetCurrentTimestamp(), report->link->connect_at);
}

static bool
write_status(const UjobsSinkConnection *link, const char *text)
{
	UjobsSinkStatus *status = link->sink->status;
	Report		report = {link, text};
	ErrorData  *error = ujobs_worker_try(write_report, &report);
	bool		written = error == NULL;

	ujobs_sink_connection_report(&status->news, psprintf("record the state of sink \"%s\"", link->sink->name), error);
	if (!written)
		status->write_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), WRITE_AGAIN_MS);
	return written;
}

/* At each break: the next try is another one. */
static void
tell_broken(UjobsSinkConnection *link, const char *text)
{
	UjobsSinkStatus *status = link->sink->status;

	if (!link->reported)
		ereport(LOG, (errmsg("ujobs cannot reach sink \"%s\", will try again: %s", link->sink->name, text)));
	link->reported = true;
	if (!write_status(link, text))
		return;
	status->teller = link;
	status->stale = false;
}

/* It works again, or is not there any more. */
static void
end_report(UjobsSinkConnection *link)
{
	UjobsSinkStatus *status = link->sink->status;

	link->reported = false;
	if (status->teller != link)
		return;
	status->teller = NULL;
	status->stale = true;
}

/* Of another connection that is still broken its next break tells. */
static void
clear_status(const UjobsSinkConnection *link, TimestampTz now)
{
	UjobsSinkStatus *status = link->sink->status;

	if (status->stale && now >= status->write_at)
		status->stale = !write_status(link, NULL);
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
note_break(UjobsSinkConnection *link, TimestampTz now, const char *text)
{
	bool		was_ready = link->ready;

	if (was_ready && now - link->ready_at > STEADY_MS * INT64CONST(1000))
		link->breaks = 0;
	link->breaks++;
	link->ready = false;
	link->connect_at = TimestampTzPlusMilliseconds(now, pause_ms(link->breaks));
	if (link->reported || !was_ready || link->breaks > 1)
		tell_broken(link, text);
}

typedef struct Search
{
	const char *kind;
	const UjobsSinkModule *module;	/* NULL: why stands in error */
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
connect_link(UjobsSinkConnection *link, TimestampTz now)
{
	UjobsSinkError error = {""};
	UjobsConnectionPlan plan = {
		.module = find_module(link->sink, &error),
		.options = link->sink->options,
		.queue = link->queue,
		.pipe = ujobs_sink_connection_wake_pipe()->write_end
	};

	if (plan.module != NULL)
	{
		link->connection = ujobs_connection_start(&plan);
		if (link->connection == NULL)
			snprintf(error.text, sizeof(error.text), "could not start a thread: %s", strerror(errno));
	}
	if (link->connection == NULL)
		note_break(link, now, error.text);
}

static void
note_ready(UjobsSinkConnection *link, TimestampTz now)
{
	link->ready = true;
	link->ready_at = now;
	if (link->reported)
		ereport(LOG, (errmsg("ujobs can reach sink \"%s\" again", link->sink->name)));
	end_report(link);
}

void
ujobs_sink_connection_drop(UjobsSinkConnection *link, TimestampTz now, const char *text)
{
	ujobs_connection_stop(link->connection);
	link->connection = NULL;
	note_break(link, now, text);
}

bool
ujobs_sink_connection_keep(UjobsSinkConnection *link, TimestampTz now)
{
	UjobsSinkError error;

	if (link->connection == NULL)
	{
		if (now >= link->connect_at)
			connect_link(link, now);
		return false;
	}
	switch (ujobs_connection_state(link->connection, &error))
	{
		case UJOBS_CONNECTION_CONNECTING:
			break;
		case UJOBS_CONNECTION_READY:
			if (!link->ready)
				note_ready(link, now);
			clear_status(link, now);
			break;
		case UJOBS_CONNECTION_BROKEN:
			ujobs_sink_connection_drop(link, now, error.text);
			break;
	}
	return link->ready;
}

void
ujobs_sink_connection_works(UjobsSinkConnection *link)
{
	link->breaks = 0;
}

TimestampTz
ujobs_sink_connection_next(const UjobsSinkConnection *link)
{
	return link->connection == NULL ? link->connect_at : DT_NOEND;
}

void
ujobs_sink_connection_close(UjobsSinkConnection *link)
{
	ujobs_connection_stop(link->connection);
	link->connection = NULL;
	link->ready = false;
	end_report(link);
}
