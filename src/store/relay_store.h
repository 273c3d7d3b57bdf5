/*
 * relay_store.h: what the relay asks before it sends or takes.
 *
 * Each function opens its own identity section and runs in the caller's
 * transaction; what is returned lives in the caller's context.
 */
#ifndef UJOBS_STORE_RELAY_STORE_H
#define UJOBS_STORE_RELAY_STORE_H

#include "postgres.h"

#include "utils/jsonb.h"
#include "utils/timestamp.h"

#define UJOBS_UUID_TEXT 37

/* A row of the outbox.  Not ready: it has id, due_at and key alone. */
typedef struct UjobsRelayRow
{
	int64		id;
	TimestampTz due_at;			/* DT_NOEND of a parked one */
	bool		ready;			/* due, and no earlier one of its key is left */
	int32		attempts;		/* that counted */
	bool		is_job;
	char		message_id[UJOBS_UUID_TEXT];
	char	   *topic;
	char	   *key;			/* NULL = none */
	Jsonb	   *headers;
	char	   *payload;		/* JSON text; this and the others in UTF-8 */
	size_t		payload_size;
} UjobsRelayRow;

typedef struct UjobsRelayRead
{
	int32		sink_id;
	int64		after;
	int64		floor;			/* the sink has no rows before this one */
	TimestampTz now;
	int			max;
	int64		budget;			/* of payload, in bytes; one row comes in any case */
} UjobsRelayRead;

/*
 * The next rows of a sink with id > after, in order of ids, whether ready or
 * not.  None: there are no more.
 *
 * A row holds back the later ones of its key as long as it is in the
 * outbox: in flight, waiting for its next try, or parked.  The table knows
 * that; the relay remembers keys only to save looks.
 */
extern int	ujobs_relay_read(const UjobsRelayRead *read, UjobsRelayRow **rows);

/*
 * The first row of each of these keys, if it is due; not ready are those that
 * the budget has no space for.  after and max are not looked at.
 */
extern int ujobs_relay_read_keys(const UjobsRelayRead *read, const char *const *keys, int n,
								 UjobsRelayRow **rows);

/*
 * How many more jobs the queue could use, given that so many may be ready; 0
 * when it is paused.
 */
extern int64 ujobs_relay_space(const char *queue, int64 max, TimestampTz now);

#endif							/* UJOBS_STORE_RELAY_STORE_H */
