/*
 * sink_store.h: the systems that messages go to and come from, and how they
 * stand.
 *
 * Each function opens its own identity section and runs in the caller's
 * transaction; what is returned lives in the caller's context.
 */
#ifndef UJOBS_STORE_SINK_STORE_H
#define UJOBS_STORE_SINK_STORE_H

#include "postgres.h"

#include "utils/jsonb.h"
#include "utils/timestamp.h"

typedef struct UjobsSink
{
	int32		id;
	int32		revision;		/* grows when it is to be reached in another way */
	char	   *name;
	char	   *kind;
	Jsonb	   *options;
	Jsonb	   *secret;			/* NULL = none */
} UjobsSink;

/* All of them, by id. */
extern UjobsSink *ujobs_sink_list(int *n);

/* NULL = there is none.  With lock it stays until the end of the transaction. */
extern UjobsSink *ujobs_sink_find(const char *name, bool lock);

/* Is there anything for a relay to do: a sink? */
extern bool ujobs_sink_any(void);

/* New, with its status; the id, or 0 when another session has just taken the name. */
extern int32 ujobs_sink_insert(const char *name, const char *kind, Jsonb *options, TimestampTz now);
extern void ujobs_sink_change(int32 id, const char *kind, Jsonb *options);
extern void ujobs_sink_set_secret(int32 id, Jsonb *secret);

/* From here to the end of the transaction no other session writes to the outbox. */
extern void ujobs_sink_hold_outbox(void);

/* What still needs the sink, in words; NULL: nothing. */
extern char *ujobs_sink_user(int32 id);
extern void ujobs_sink_delete(int32 id);

/*
 * The relay: the sink cannot be reached (why, and when it tries next), or can
 * (error is NULL).  To be called when that changes, not at every try.
 */
extern void ujobs_sink_set_status(int32 id, const char *error, TimestampTz now,
								  TimestampTz next_try_at);

/* A queue of a broker whose jobs are taken in here. */
typedef struct UjobsConsumer
{
	char	   *queue;
	int32		sink_id;
	bool		enabled;
} UjobsConsumer;

/* All queues that are or were consumed here, by name, palloc'd. */
extern UjobsConsumer *ujobs_sink_consumers(int *n);

/* Consumes the queue of this sink from now on, or no more. */
extern void ujobs_sink_set_consumer(const char *queue, int32 sink_id, bool enabled,
									bool allow_unsigned);

/* The queue's jobs go to this sink from now on; driver 'pg' with sink_id 0: they stay. */
extern void ujobs_sink_drive_queue(const char *queue, const char *driver, int32 sink_id);

#endif							/* UJOBS_STORE_SINK_STORE_H */
