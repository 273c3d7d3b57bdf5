/*
 * relay_link.h: a sink as the relay knows it, and one connection to it, made
 * anew with growing pauses as often as it breaks.
 */
#ifndef UJOBS_WORKER_RELAY_LINK_H
#define UJOBS_WORKER_RELAY_LINK_H

#include "postgres.h"

#include "datatype/timestamp.h"

#include "core/courier.h"
#include "store/sink_store.h"

/* Does not change; a sink with another revision is another one. */
typedef struct UjobsRelaySink
{
	MemoryContext memory;		/* in which all of it lives */
	int32		id;
	int32		revision;
	char	   *name;
	char	   *kind;
	int			attempts;		/* after so many a message is parked */
	UjobsSinkOptions *options;
} UjobsRelaySink;

typedef enum UjobsRelayTold
{
	UJOBS_RELAY_TOLD_NOTHING,	/* ujobs.sinks may still show what an earlier relay saw */
	UJOBS_RELAY_TOLD_UP,
	UJOBS_RELAY_TOLD_DOWN
} UjobsRelayTold;

typedef struct UjobsRelayLink
{
	const UjobsRelaySink *sink;
	const char *queue;			/* NULL: it publishes */
	UjobsCourier *courier;		/* NULL: between two tries */
	bool		ready;
	UjobsRelayTold told;		/* what people heard of it */
	int			breaks;			/* in a row */
	TimestampTz ready_at;
	TimestampTz connect_at;		/* when to try next */
} UjobsRelayLink;

/* The bell that all couriers of this process ring; opened at the first call. */
extern UjobsBell *ujobs_relay_bell(void);

/* Needs a transaction; home is the uuid of this store. */
extern UjobsRelaySink *ujobs_relay_sink_make(const UjobsSink *row, const char *home);

/*
 * One look, after everything that a broken courier gave back was collected.
 * Is it ready for work?  Starts a courier when it is time to.  Tells people
 * about changes, in transactions of its own.
 */
extern bool ujobs_relay_link_keep(UjobsRelayLink *link, TimestampTz now);

/* Ends the courier as broken, though it has not said so. */
extern void ujobs_relay_link_drop(UjobsRelayLink *link, TimestampTz now, const char *text);

/* The courier's answer is that it works. */
extern void ujobs_relay_link_works(UjobsRelayLink *link);

/* When keep has something to do by itself. */
extern TimestampTz ujobs_relay_link_next(const UjobsRelayLink *link);

extern void ujobs_relay_link_close(UjobsRelayLink *link);

#endif							/* UJOBS_WORKER_RELAY_LINK_H */
