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

/* What people were last told about a thing that may go wrong again and again; {0}. */
typedef struct UjobsSinkReport
{
	char		text[256];		/* "": it goes well */
} UjobsSinkReport;

/*
 * Logs that this went wrong, unless it was the last that was told, and frees
 * the error.  error NULL: it went well.
 */
extern void ujobs_sink_connection_report(UjobsSinkReport *news, const char *what, ErrorData *error);

/*
 * What ujobs.sinks says of a sink, which several connections have a part in:
 * the last one that broke.
 */
typedef struct UjobsSinkStatus
{
	const struct UjobsSinkConnection *teller;	/* whose error stands there */
	bool		stale;			/* what stands there may be over */
	TimestampTz write_at;		/* not before: it failed */
	UjobsSinkReport news;
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
	UjobsConnection *connection;		/* NULL: between two tries */
	bool		ready;
	bool		reported;		/* people were told that it cannot be reached */
	int			breaks;			/* in a row */
	TimestampTz ready_at;
	TimestampTz connect_at;		/* when to try next */
} UjobsSinkConnection;

/* The pipe to which all connections of this process write; opened at the first call. */
extern UjobsWakePipe *ujobs_sink_connection_wake_pipe(void);

/* Needs a transaction; home is the uuid of this store. */
extern UjobsRelaySink *ujobs_sink_connection_make_sink(const UjobsSink *row, const char *home);

/*
 * One look, after everything that a broken connection gave back was collected.
 * Is it ready for work?  Starts a connection when it is time to.  Tells people
 * about changes, in transactions of its own.
 */
extern bool ujobs_sink_connection_keep(UjobsSinkConnection *link, TimestampTz now);

/* Ends the connection as broken, though it has not said so. */
extern void ujobs_sink_connection_drop(UjobsSinkConnection *link, TimestampTz now, const char *text);

/* The connection's answer is that it works. */
extern void ujobs_sink_connection_works(UjobsSinkConnection *link);

/* When keep has something to do by itself. */
extern TimestampTz ujobs_sink_connection_next(const UjobsSinkConnection *link);

extern void ujobs_sink_connection_close(UjobsSinkConnection *link);

#endif							/* UJOBS_WORKER_RELAY_SINK_CONNECTION_H */
