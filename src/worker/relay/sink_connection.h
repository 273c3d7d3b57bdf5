/*
 * sink_connection.h: a sink as the relay knows it, and one connection to it, made
 * anew with growing pauses as often as it breaks.
 */
#ifndef UJOBS_WORKER_RELAY_SINK_CONNECTION_H
#define UJOBS_WORKER_RELAY_SINK_CONNECTION_H

#include "postgres.h"

#include "datatype/timestamp.h"

#include "core/connection.h"
#include "store/sink_store.h"

/* The last report about a thing that may go wrong again and again; {0}. */
typedef struct UjobsSinkReport
{
	char		text[256];		/* "": it goes well */
} UjobsSinkReport;

/*
 * Logs that this went wrong, unless the last report said the same, and frees the
 * error.  error NULL: it went well.
 */
extern void ujobs_sink_connection_report(UjobsSinkReport *last, const char *what, ErrorData *error);

/*
 * What ujobs.sinks says of a sink, which several connections have a part in:
 * the last one that broke.
 */
typedef struct UjobsSinkStatus
{
	const struct UjobsSinkConnection *reporter;	/* whose error is shown */
	bool		stale;			/* what is shown may be over */
	TimestampTz write_at;		/* not before: it failed */
	UjobsSinkReport report;
} UjobsSinkStatus;

/* Does not change but for its status; a sink with another revision is another one. */
typedef struct UjobsRelaySink
{
	MemoryContext memory;		/* in which all of it lives */
	int32		id;
	int32		revision;
	char	   *name;
	char	   *kind;
	int			attempts;		/* after so many a message is parked */
	UjobsSinkOptions *options;
	UjobsSinkStatus *status;
} UjobsRelaySink;

typedef struct UjobsSinkConnection
{
	const UjobsRelaySink *sink;
	const char *queue;			/* NULL: it publishes */
	UjobsConnection *thread;	/* NULL: between two tries */
	bool		ready;
	bool		reported;		/* as not reachable */
	int			breaks;			/* in a row */
	TimestampTz ready_at;
	TimestampTz connect_at;		/* when to try next */
} UjobsSinkConnection;

/* The pipe by which all threads of this process wake it; opened at the first call. */
extern UjobsWakePipe *ujobs_sink_connection_wake_pipe(void);

/* Needs a transaction; store_id is the uuid of this store. */
extern UjobsRelaySink *ujobs_sink_connection_make_sink(const UjobsSink *row, const char *store_id);

/*
 * Is it ready for work?  Called after everything that a broken connection gave back
 * was collected.  Starts a thread when it is time to.  Reports changes, in
 * transactions of its own.
 */
extern bool ujobs_sink_connection_keep(UjobsSinkConnection *connection, TimestampTz now);

/* Ends the thread as broken, though it has not said so. */
extern void ujobs_sink_connection_drop(UjobsSinkConnection *connection, TimestampTz now,
									   const char *text);

/* An answer shows that it works. */
extern void ujobs_sink_connection_works(UjobsSinkConnection *connection);

/* When keep has something to do by itself. */
extern TimestampTz ujobs_sink_connection_next(const UjobsSinkConnection *connection);

extern void ujobs_sink_connection_close(UjobsSinkConnection *connection);

#endif							/* UJOBS_WORKER_RELAY_SINK_CONNECTION_H */
