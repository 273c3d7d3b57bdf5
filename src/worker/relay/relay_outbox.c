/*
 * relay_outbox.c: reading the outbox of a sink, sending, recording.
 *
 * At most two parcels are on their way, so that one can be recorded and the
 * next one prepared while the thread sends the other.  One transaction
 * records a parcel and reads the next one; none is open while the relay
 * waits.
 *
 * `position` is the id up to which rows have been looked at.  A commit moves
 * it back to its least id, a delivered message asks for the next one of its
 * key, and now and then all is looked at from the start, which finds rows
 * whose next try has come, what commits could not tell of (a prepared
 * transaction, replication), and whatever was dropped after an error.
 *
 * The table itself says what must wait for an earlier message of its key (see
 * relay_store.h).  Two sets stand beside it, of what is in the parcels: rows,
 * so that none is sent twice when position goes back, and keys, in case an
 * earlier row was committed after a later one was sent.  A third one says
 * which keys have later rows, to save the look for them.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/flight.h"
#include "core/guc.h"
#include "core/observe.h"
#include "core/sink_module.h"
#include "store/relay_store.h"
#include "worker/relay/relay_outbox.h"
#include "worker/relay/relay_record.h"
#include "worker/worker.h"

#define PARCEL_MESSAGES 1000
#define PARCEL_BYTES (8 * 1024 * 1024)
#define PARCELS_UNDERWAY 2
#define READS_AT_ONCE 10		/* of rows that are passed over, before others get a turn */
#define MOST_HELD 100000		/* keys that are remembered */
#define PASSING_SHARE 20		/* of the time goes into rows that may not be sent */
#define RECORD_AGAIN_MS 500

struct UjobsOutlet
{
	const UjobsRelaySink *sink;
	UjobsRelayLink link;
	UjobsRelayNews news;
	MemoryContext memory;		/* of one turn */
	HTAB	   *rows;			/* ids of what is in a parcel */
	HTAB	   *keys;			/* hashes of their keys */
	HTAB	   *held;			/* hashes of keys of which rows were passed over; NULL: of any */
	UjobsParcel *returned;		/* not yet recorded */
	UjobsParcel *filling;		/* read in this turn */
	int			underway;		/* parcels that the courier has */
	bool		broken;			/* one came back from a connection that failed */
	bool		retired;
	TimestampTz record_at;		/* not before: it failed */

	int64		position;
	bool		dry;			/* nothing after position */
	int64		floor;			/* no rows before it */
	int64		first;			/* of the rows found since the start; 0 = none yet */
	bool		from_start;		/* the end was not yet seen since */
	TimestampTz started_at;
	int64		passing_us;		/* what it has cost since to read rows that may not be sent */
	TimestampTz soonest;		/* next try of a message, as far as is known */
};

static HTAB *
make_set(const char *name, MemoryContext memory)
{
	HASHCTL		control = {.keysize = sizeof(uint64), .entrysize = sizeof(uint64), .hcxt = memory};

	return hash_create(name, PARCELS_UNDERWAY * PARCEL_MESSAGES, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static bool
set_has(HTAB *set, uint64 item)
{
	return hash_search(set, &item, HASH_FIND, NULL) != NULL;
}

static uint64
key_hash(const char *key)
{
	return hash_bytes_extended((const unsigned char *) key, strlen(key), 0);
}

/* Rows of this key wait for another one. */
static void
note_held(UjobsOutlet *outlet, const char *key)
{
	uint64		hash;

	if (key == NULL || outlet->held == NULL)
		return;
	hash = key_hash(key);
	(void) hash_search(outlet->held, &hash, HASH_ENTER, NULL);
	if (hash_get_num_entries(outlet->held) <= MOST_HELD)
		return;
	hash_destroy(outlet->held);
	outlet->held = NULL;
}

static bool
may_be_held(const UjobsOutlet *outlet, const char *key)
{
	return key != NULL && (outlet->held == NULL || set_has(outlet->held, key_hash(key)));
}

static void
forget_held(UjobsOutlet *outlet)
{
	if (outlet->held != NULL && hash_get_num_entries(outlet->held) == 0)
		return;
	if (outlet->held != NULL)
		hash_destroy(outlet->held);
	outlet->held = make_set("ujobs keys held", outlet->sink->memory);
}

static void
start_over(UjobsOutlet *outlet)
{
	forget_held(outlet);
	outlet->position = 0;
	outlet->dry = false;
	outlet->floor = 0;
	outlet->first = 0;
	outlet->from_start = true;
	outlet->started_at = GetCurrentTimestamp();
	outlet->passing_us = 0;
	outlet->soonest = DT_NOEND;
}

/* When to look at all rows again. */
static TimestampTz
start_over_at(const UjobsOutlet *outlet)
{
	TimestampTz due = outlet->started_at + (int64) ujobs_guc_poll_interval * 1000;

	return Max(Min(due, outlet->soonest), outlet->started_at + outlet->passing_us * PASSING_SHARE);
}

UjobsOutlet *
ujobs_outlet_open(const UjobsRelaySink *sink)
{
	UjobsOutlet *outlet = MemoryContextAllocZero(sink->memory, sizeof(UjobsOutlet));

	outlet->sink = sink;
	outlet->link.sink = sink;
	outlet->memory = AllocSetContextCreate(sink->memory, "ujobs outlet", ALLOCSET_DEFAULT_SIZES);
	outlet->rows = make_set("ujobs rows underway", sink->memory);
	outlet->keys = make_set("ujobs keys underway", sink->memory);
	start_over(outlet);
	return outlet;
}

static void
go_back(UjobsOutlet *outlet, int64 id)
{
	if (id - 1 < outlet->position)
		outlet->position = id - 1;
	outlet->dry = false;
}

void
ujobs_outlet_hint(UjobsOutlet *outlet, int64 id)
{
	outlet->floor = Min(outlet->floor, id);
	go_back(outlet, id);
}

/* ---- parcels ---- */

static void
show_flight(UjobsOutlet *outlet)
{
	HASH_SEQ_STATUS scan;
	uint64	   *id;
	int64	   *ids = MemoryContextAlloc(outlet->memory, hash_get_num_entries(outlet->rows) * sizeof(int64) + 1);
	int			n = 0;

	hash_seq_init(&scan, outlet->rows);
	while ((id = hash_seq_search(&scan)) != NULL)
		ids[n++] = (int64) *id;
	ujobs_flight_set(outlet->sink->id, ids, n);
}

/* Into the sets (HASH_ENTER), or out of them (HASH_REMOVE). */
static void
mark_parcel(UjobsOutlet *outlet, const UjobsParcel *parcel, HASHACTION action)
{
	for (int i = 0; i < parcel->n; i++)
	{
		const char *key = parcel->messages[i].key;
		uint64		id = (uint64) parcel->rows[i];
		uint64		hash;

		(void) hash_search(outlet->rows, &id, action, NULL);
		if (key == NULL)
			continue;
		hash = key_hash(key);
		(void) hash_search(outlet->keys, &hash, action, NULL);
	}
}

static UjobsSinkPair *
copy_headers(UjobsParcel *parcel, Jsonb *headers, int *n)
{
	const UjobsSinkPair *from = ujobs_sink_pairs(headers, n);
	UjobsSinkPair *to = ujobs_parcel_pairs(parcel, *n);

	for (int i = 0; i < *n; i++)
	{
		to[i].name = ujobs_parcel_text(parcel, from[i].name, strlen(from[i].name));
		to[i].value = ujobs_parcel_text(parcel, from[i].value, strlen(from[i].value));
	}
	return to;
}

static void
add_row(UjobsOutlet *outlet, const UjobsRelayRow *row)
{
	UjobsParcel *parcel = outlet->filling;
	UjobsSinkMessage *message = ujobs_parcel_add(parcel, row->id, row->attempts);
	uint64		id = (uint64) row->id;
	uint64		hash;

	message->id = ujobs_parcel_text(parcel, row->message_id, strlen(row->message_id));
	message->topic = ujobs_parcel_text(parcel, row->topic, strlen(row->topic));
	message->is_job = row->is_job;
	message->payload = ujobs_parcel_text(parcel, row->payload, row->payload_size);
	message->payload_size = row->payload_size;
	if (JB_ROOT_COUNT(row->headers) > 0)
		message->headers = copy_headers(parcel, row->headers, &message->n_headers);
	(void) hash_search(outlet->rows, &id, HASH_ENTER, NULL);
	if (row->key == NULL)
		return;
	message->key = ujobs_parcel_text(parcel, row->key, strlen(row->key));
	hash = key_hash(row->key);
	(void) hash_search(outlet->keys, &hash, HASH_ENTER, NULL);
}

/* ---- reading ---- */

static void
take_rows(UjobsOutlet *outlet, const UjobsRelayRow *rows, int n)
{
	for (int i = 0; i < n; i++)
	{
		const UjobsRelayRow *row = &rows[i];

		if (set_has(outlet->rows, (uint64) row->id))
			continue;
		if (!row->ready || (row->key != NULL && set_has(outlet->keys, key_hash(row->key))))
			note_held(outlet, row->key);
		else
			add_row(outlet, row);
	}
}

static int64
budget_left(const UjobsOutlet *outlet)
{
	return PARCEL_BYTES - (int64) outlet->filling->bytes;
}

/* The messages that those of the returned parcel held back. */
static void
read_followers(UjobsOutlet *outlet, UjobsRelayRead *read)
{
	const UjobsParcel *parcel = outlet->returned;
	const char **keys = palloc(parcel->n * sizeof(char *));
	UjobsRelayRow *rows;
	int			n = 0;

	for (int i = 0; i < parcel->n; i++)
	{
		if (parcel->messages[i].fate == UJOBS_SINK_DELIVERED && may_be_held(outlet, parcel->messages[i].key))
			keys[n++] = parcel->messages[i].key;
	}
	if (n == 0)
		return;
	n = ujobs_relay_read_keys(read, keys, n, &rows);
	take_rows(outlet, rows, n);
	for (int i = 0; i < n; i++)
	{
		if (!rows[i].ready)
			go_back(outlet, rows[i].id);
	}
}

/* Messages that the module left for later are read again, in the time that passing others may take. */
static void
read_untried_again(UjobsOutlet *outlet, TimestampTz now)
{
	const UjobsParcel *parcel = outlet->returned;

	for (int i = 0; i < parcel->n; i++)
	{
		if (parcel->messages[i].fate != UJOBS_SINK_UNTRIED)
			continue;
		if (now >= outlet->started_at + outlet->passing_us * PASSING_SHARE)
			go_back(outlet, parcel->rows[i]);
		else
			outlet->soonest = Min(outlet->soonest, now);
	}
}

static void
note_rows(UjobsOutlet *outlet, const UjobsRelayRow *rows, int n, TimestampTz now)
{
	if (outlet->first == 0)
		outlet->first = rows[0].id;
	outlet->position = rows[n - 1].id;
	for (int i = 0; i < n; i++)
	{
		if (!rows[i].ready && rows[i].due_at > now)
			outlet->soonest = Min(outlet->soonest, rows[i].due_at);
	}
}

/* Nothing more after position. */
static void
note_end(UjobsOutlet *outlet)
{
	outlet->dry = true;
	if (outlet->from_start && outlet->first != 0)
		outlet->floor = outlet->first;
	outlet->from_start = false;
}

static bool
read_once(UjobsOutlet *outlet, UjobsRelayRead *read)
{
	TimestampTz begin = GetCurrentTimestamp();
	int			before = outlet->filling->n;
	UjobsRelayRow *rows;
	int			n;

	read->after = outlet->position;
	read->max = PARCEL_MESSAGES - before;
	read->budget = budget_left(outlet);
	if (read->max <= 0 || read->budget <= 0)
		return false;
	n = ujobs_relay_read(read, &rows);
	if (n == 0)
	{
		note_end(outlet);
		return false;
	}
	take_rows(outlet, rows, n);
	note_rows(outlet, rows, n, read->now);
	outlet->passing_us += (GetCurrentTimestamp() - begin) * (n - (outlet->filling->n - before)) / n;
	return true;
}

static void
read_on(UjobsOutlet *outlet, UjobsRelayRead *read)
{
	for (int i = 0; i < READS_AT_ONCE && !outlet->dry; i++)
	{
		if (!read_once(outlet, read))
			break;
	}
}

static bool
may_send(const UjobsOutlet *outlet)
{
	return outlet->link.ready && !outlet->broken && !outlet->retired && outlet->underway < PARCELS_UNDERWAY;
}

/* One transaction: what came back, then what is next. */
static void
turn(void *arg)
{
	UjobsOutlet *outlet = arg;
	UjobsRelayRead read = {.sink_id = outlet->sink->id, .floor = outlet->floor, .now = GetCurrentTimestamp()};

	MemoryContextSwitchTo(outlet->memory);
	if (outlet->returned != NULL)
	{
		TimestampTz again;

		mark_parcel(outlet, outlet->returned, HASH_REMOVE);
		again = ujobs_relay_record(outlet->sink, outlet->returned, read.now);
		outlet->soonest = Min(outlet->soonest, again);
	}
	if (!may_send(outlet))
	{
		if (outlet->returned != NULL)
			start_over(outlet); /* nobody asks for those that it held back */
		return;
	}
	outlet->filling = ujobs_parcel_new(PARCEL_MESSAGES);
	read.budget = PARCEL_BYTES;
	if (outlet->returned != NULL)
	{
		read_untried_again(outlet, read.now);
		read_followers(outlet, &read);
	}
	read_on(outlet, &read);
}

/* ---- the round ---- */

static void
recover(UjobsOutlet *outlet)
{
	if (outlet->filling != NULL)
	{
		mark_parcel(outlet, outlet->filling, HASH_REMOVE);
		ujobs_parcel_free(outlet->filling);
		outlet->filling = NULL;
	}
	if (outlet->returned != NULL)
		mark_parcel(outlet, outlet->returned, HASH_ENTER);
	outlet->record_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), RECORD_AGAIN_MS);
	start_over(outlet);
}

static void
send_filled(UjobsOutlet *outlet)
{
	UjobsParcel *parcel = outlet->filling;

	outlet->filling = NULL;
	if (parcel == NULL)
		return;
	if (parcel->n == 0)
	{
		ujobs_parcel_free(parcel);
		return;
	}
	ujobs_courier_send(outlet->link.courier, parcel);
	outlet->underway++;
}

static bool
take_turn(UjobsOutlet *outlet)
{
	ErrorData  *error;

	ujobs_observe_activity("publish messages");
	MemoryContextSwitchTo(outlet->memory);
	error = ujobs_worker_try(turn, outlet);
	ujobs_relay_tell(&outlet->news, psprintf("record or read messages for sink \"%s\"", outlet->sink->name), error);
	if (error != NULL)
		recover(outlet);
	else
	{
		ujobs_parcel_free(outlet->returned);
		outlet->returned = NULL;
		send_filled(outlet);
		show_flight(outlet);
	}
	MemoryContextReset(outlet->memory);
	return error == NULL;
}

/* Did it make any progress?  A module may leave some for later. */
static bool
was_tried(const UjobsParcel *parcel)
{
	if (parcel->broken)
		return false;
	for (int i = 0; i < parcel->n; i++)
	{
		if (parcel->messages[i].fate != UJOBS_SINK_BROKEN && parcel->messages[i].fate != UJOBS_SINK_UNTRIED)
			return true;
	}
	return false;
}

static bool
collect(UjobsOutlet *outlet)
{
	if (outlet->returned != NULL)
		return true;
	if (outlet->underway == 0)
		return false;
	outlet->returned = ujobs_courier_collect(outlet->link.courier);
	if (outlet->returned == NULL)
		return false;
	outlet->underway--;
	outlet->broken |= !was_tried(outlet->returned);
	if (!outlet->broken)
		ujobs_relay_link_works(&outlet->link);
	return true;
}

static bool
wants_to_read(const UjobsOutlet *outlet)
{
	return may_send(outlet) && !outlet->dry && outlet->returned == NULL;
}

static TimestampTz
next_round(const UjobsOutlet *outlet, TimestampTz now)
{
	if (outlet->returned != NULL)
		return outlet->record_at;
	if (wants_to_read(outlet))
		return Max(now, outlet->record_at);
	if (!outlet->link.ready)
		return ujobs_relay_link_next(&outlet->link);
	return outlet->underway < PARCELS_UNDERWAY ? start_over_at(outlet) : DT_NOEND;
}

/* Only when the courier has nothing of ours, so nothing is lost with it. */
static void
keep_link(UjobsOutlet *outlet, TimestampTz now)
{
	bool		was_ready = outlet->link.ready;

	if (ujobs_relay_link_keep(&outlet->link, now) && outlet->broken)
		ujobs_relay_link_drop(&outlet->link, now, "it did not answer");
	outlet->broken = false;
	if (outlet->link.ready && !was_ready)
		start_over(outlet);
}

TimestampTz
ujobs_outlet_round(UjobsOutlet *outlet, TimestampTz now)
{
	if (now < outlet->record_at)
		return outlet->record_at;
	/* Of what comes back meanwhile the bell tells: other sinks have their turn first. */
	for (int i = 0; i < PARCELS_UNDERWAY && collect(outlet); i++)
	{
		if (!take_turn(outlet))
			return outlet->record_at;
	}
	if (outlet->underway == 0 && outlet->retired)
		return DT_NOEND;
	if (outlet->underway == 0)
		keep_link(outlet, now);
	if (now >= start_over_at(outlet))
		start_over(outlet);
	if (wants_to_read(outlet))
		(void) take_turn(outlet);
	return next_round(outlet, now);
}

/* ---- the end ---- */

bool
ujobs_outlet_retire(UjobsOutlet *outlet)
{
	outlet->retired = true;
	return outlet->underway == 0 && outlet->returned == NULL;
}

void
ujobs_outlet_close(UjobsOutlet *outlet)
{
	ujobs_relay_link_close(&outlet->link);
	ujobs_parcel_free(outlet->returned);
	ujobs_flight_set(outlet->sink->id, NULL, 0);
}
