/*
 * publisher.c: reading the outbox of a sink, sending, recording.
 *
 * At most two batches are in flight, so that one can be recorded and the
 * next one prepared while the thread sends the other.  One transaction
 * records a batch and reads the next one; none is open while the relay
 * waits.
 *
 * `position` is the id up to which rows have been looked at.  A commit moves
 * it back to its least id, a delivered message asks for the next one of its
 * key, and now and then all is looked at from the start, which finds rows
 * whose next try has come, what commits could not tell of (a prepared
 * transaction, replication), and whatever was dropped after an error.
 *
 * The table itself says what must wait for an earlier message of its key (see
 * relay_store.h).  Two sets beside it hold what is in the batches: rows,
 * so that none is sent twice when position goes back, and keys, in case an
 * earlier row was committed after a later one was sent.  A third one has
 * the keys that have later rows, to save looking for those.
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/in_flight.h"
#include "core/guc.h"
#include "core/session_stats.h"
#include "core/sink_module.h"
#include "store/relay_store.h"
#include "worker/relay/publisher.h"
#include "worker/relay/delivery.h"
#include "worker/worker.h"

#define BATCH_MESSAGES 1000
#define BATCH_BYTES (8 * 1024 * 1024)
#define BATCHES_IN_FLIGHT 2
#define READS_AT_ONCE 10		/* of rows that are passed over, before other sinks are served */
#define MOST_HELD 100000		/* keys that are remembered */
#define PASSING_SHARE 20		/* of the time goes into rows that may not be sent */
#define RECORD_AGAIN_MS 500

struct UjobsPublisher
{
	const UjobsRelaySink *sink;
	UjobsSinkConnection connection;
	UjobsSinkReport report;
	MemoryContext memory;		/* of one transaction */
	HTAB	   *rows;			/* ids of what is in a batch */
	HTAB	   *keys;			/* hashes of their keys */
	HTAB	   *held;			/* hashes of keys of which rows were passed over; NULL: of any */
	UjobsSinkBatch *returned;		/* not yet recorded */
	UjobsSinkBatch *filling;		/* read in this transaction */
	int			in_flight;		/* batches that the thread has */
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

	return hash_create(name, BATCHES_IN_FLIGHT * BATCH_MESSAGES, &control,
					   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
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
note_held(UjobsPublisher *publisher, const char *key)
{
	uint64		hash;

	if (key == NULL || publisher->held == NULL)
		return;
	hash = key_hash(key);
	(void) hash_search(publisher->held, &hash, HASH_ENTER, NULL);
	if (hash_get_num_entries(publisher->held) <= MOST_HELD)
		return;
	hash_destroy(publisher->held);
	publisher->held = NULL;
}

static bool
may_be_held(const UjobsPublisher *publisher, const char *key)
{
	return key != NULL && (publisher->held == NULL || set_has(publisher->held, key_hash(key)));
}

static void
forget_held(UjobsPublisher *publisher)
{
	if (publisher->held != NULL && hash_get_num_entries(publisher->held) == 0)
		return;
	if (publisher->held != NULL)
		hash_destroy(publisher->held);
	publisher->held = make_set("ujobs keys held", publisher->sink->memory);
}

static void
start_over(UjobsPublisher *publisher)
{
	forget_held(publisher);
	publisher->position = 0;
	publisher->dry = false;
	publisher->floor = 0;
	publisher->first = 0;
	publisher->from_start = true;
	publisher->started_at = GetCurrentTimestamp();
	publisher->passing_us = 0;
	publisher->soonest = DT_NOEND;
}

/* When to look at all rows again. */
static TimestampTz
start_over_at(const UjobsPublisher *publisher)
{
	TimestampTz due = publisher->started_at + (int64) ujobs_guc_poll_interval * 1000;

	return Max(Min(due, publisher->soonest),
			   publisher->started_at + publisher->passing_us * PASSING_SHARE);
}

UjobsPublisher *
ujobs_publisher_open(const UjobsRelaySink *sink)
{
	UjobsPublisher *publisher = MemoryContextAllocZero(sink->memory, sizeof(UjobsPublisher));

	publisher->sink = sink;
	publisher->connection.sink = sink;
	publisher->memory = AllocSetContextCreate(sink->memory, "ujobs publisher",
											  ALLOCSET_DEFAULT_SIZES);
	publisher->rows = make_set("ujobs rows in flight", sink->memory);
	publisher->keys = make_set("ujobs keys in flight", sink->memory);
	start_over(publisher);
	return publisher;
}

static void
go_back(UjobsPublisher *publisher, int64 id)
{
	if (id - 1 < publisher->position)
		publisher->position = id - 1;
	publisher->dry = false;
}

void
ujobs_publisher_hint(UjobsPublisher *publisher, int64 id)
{
	publisher->floor = Min(publisher->floor, id);
	go_back(publisher, id);
}

/* ---- batches ---- */

static void
show_in_flight(UjobsPublisher *publisher)
{
	HASH_SEQ_STATUS scan;
	uint64	   *id;
	int64	   *ids = MemoryContextAlloc(publisher->memory, hash_get_num_entries(publisher->rows) * sizeof(int64) + 1);
	int			n = 0;

	hash_seq_init(&scan, publisher->rows);
	while ((id = hash_seq_search(&scan)) != NULL)
		ids[n++] = (int64) *id;
	ujobs_in_flight_set(publisher->sink->id, ids, n);
}

/* Into the sets (HASH_ENTER), or out of them (HASH_REMOVE). */
static void
mark_batch(UjobsPublisher *publisher, const UjobsSinkBatch *batch, HASHACTION action)
{
	for (int i = 0; i < batch->n; i++)
	{
		const char *key = batch->messages[i].key;
		uint64		id = (uint64) batch->rows[i];
		uint64		hash;

		(void) hash_search(publisher->rows, &id, action, NULL);
		if (key == NULL)
			continue;
		hash = key_hash(key);
		(void) hash_search(publisher->keys, &hash, action, NULL);
	}
}

static UjobsSinkPair *
copy_headers(UjobsSinkBatch *batch, Jsonb *headers, int *n)
{
	const UjobsSinkPair *from = ujobs_sink_module_pairs(headers, n);
	UjobsSinkPair *to = ujobs_sink_batch_pairs(batch, *n);

	for (int i = 0; i < *n; i++)
	{
		to[i].name = ujobs_sink_batch_text(batch, from[i].name, strlen(from[i].name));
		to[i].value = ujobs_sink_batch_text(batch, from[i].value, strlen(from[i].value));
	}
	return to;
}

static void
add_row(UjobsPublisher *publisher, const UjobsRelayRow *row)
{
	UjobsSinkBatch *batch = publisher->filling;
	UjobsSinkMessage *message = ujobs_sink_batch_add(batch, row->id, row->attempts);
	uint64		id = (uint64) row->id;
	uint64		hash;

	message->id = ujobs_sink_batch_text(batch, row->message_id, strlen(row->message_id));
	message->topic = ujobs_sink_batch_text(batch, row->topic, strlen(row->topic));
	message->is_job = row->is_job;
	message->payload = ujobs_sink_batch_text(batch, row->payload, row->payload_size);
	message->payload_size = row->payload_size;
	if (JB_ROOT_COUNT(row->headers) > 0)
		message->headers = copy_headers(batch, row->headers, &message->n_headers);
	(void) hash_search(publisher->rows, &id, HASH_ENTER, NULL);
	if (row->key == NULL)
		return;
	message->key = ujobs_sink_batch_text(batch, row->key, strlen(row->key));
	hash = key_hash(row->key);
	(void) hash_search(publisher->keys, &hash, HASH_ENTER, NULL);
}

/* ---- reading ---- */

static void
take_rows(UjobsPublisher *publisher, const UjobsRelayRow *rows, int n)
{
	for (int i = 0; i < n; i++)
	{
		const UjobsRelayRow *row = &rows[i];

		if (set_has(publisher->rows, (uint64) row->id))
			continue;
		if (!row->ready || (row->key != NULL && set_has(publisher->keys, key_hash(row->key))))
			note_held(publisher, row->key);
		else
			add_row(publisher, row);
	}
}

static int64
budget_left(const UjobsPublisher *publisher)
{
	return BATCH_BYTES - (int64) publisher->filling->bytes;
}

/* The messages that those of the returned batch held back. */
static void
read_followers(UjobsPublisher *publisher, UjobsRelayRead *read)
{
	const UjobsSinkBatch *batch = publisher->returned;
	const char **keys = palloc(batch->n * sizeof(char *));
	UjobsRelayRow *rows;
	int			n = 0;

	for (int i = 0; i < batch->n; i++)
	{
		if (batch->messages[i].fate == UJOBS_SINK_DELIVERED &&
			may_be_held(publisher, batch->messages[i].key))
			keys[n++] = batch->messages[i].key;
	}
	if (n == 0)
		return;
	n = ujobs_relay_read_keys(read, keys, n, &rows);
	take_rows(publisher, rows, n);
	for (int i = 0; i < n; i++)
	{
		if (!rows[i].ready)
			go_back(publisher, rows[i].id);
	}
}

/*
 * Messages that the module left for later are read again, in the time that
 * passing others may take.
 */
static void
read_untried_again(UjobsPublisher *publisher, TimestampTz now)
{
	const UjobsSinkBatch *batch = publisher->returned;

	for (int i = 0; i < batch->n; i++)
	{
		if (batch->messages[i].fate != UJOBS_SINK_UNTRIED)
			continue;
		if (now >= publisher->started_at + publisher->passing_us * PASSING_SHARE)
			go_back(publisher, batch->rows[i]);
		else
			publisher->soonest = Min(publisher->soonest, now);
	}
}

static void
note_rows(UjobsPublisher *publisher, const UjobsRelayRow *rows, int n, TimestampTz now)
{
	if (publisher->first == 0)
		publisher->first = rows[0].id;
	publisher->position = rows[n - 1].id;
	for (int i = 0; i < n; i++)
	{
		if (!rows[i].ready && rows[i].due_at > now)
			publisher->soonest = Min(publisher->soonest, rows[i].due_at);
	}
}

/* Nothing more after position. */
static void
note_end(UjobsPublisher *publisher)
{
	publisher->dry = true;
	if (publisher->from_start && publisher->first != 0)
		publisher->floor = publisher->first;
	publisher->from_start = false;
}

static bool
read_once(UjobsPublisher *publisher, UjobsRelayRead *read)
{
	TimestampTz begin = GetCurrentTimestamp();
	int			before = publisher->filling->n;
	UjobsRelayRow *rows;
	int			n;

	read->after = publisher->position;
	read->max = BATCH_MESSAGES - before;
	read->budget = budget_left(publisher);
	if (read->max <= 0 || read->budget <= 0)
		return false;
	n = ujobs_relay_read(read, &rows);
	if (n == 0)
	{
		note_end(publisher);
		return false;
	}
	take_rows(publisher, rows, n);
	note_rows(publisher, rows, n, read->now);
	publisher->passing_us += (GetCurrentTimestamp() - begin) *
							 (n - (publisher->filling->n - before)) / n;
	return true;
}

static void
read_on(UjobsPublisher *publisher, UjobsRelayRead *read)
{
	for (int i = 0; i < READS_AT_ONCE && !publisher->dry; i++)
	{
		if (!read_once(publisher, read))
			break;
	}
}

static bool
may_send(const UjobsPublisher *publisher)
{
	return publisher->connection.ready && !publisher->broken && !publisher->retired &&
		   publisher->in_flight < BATCHES_IN_FLIGHT;
}

/* One transaction: what came back, then what is next. */
static void
record_and_read(void *arg)
{
	UjobsPublisher *publisher = arg;
	UjobsRelayRead read = {.sink_id = publisher->sink->id, .floor = publisher->floor, .now = GetCurrentTimestamp()};

	MemoryContextSwitchTo(publisher->memory);
	if (publisher->returned != NULL)
	{
		TimestampTz again;

		mark_batch(publisher, publisher->returned, HASH_REMOVE);
		again = ujobs_delivery_record(publisher->sink, publisher->returned, read.now);
		publisher->soonest = Min(publisher->soonest, again);
	}
	if (!may_send(publisher))
	{
		if (publisher->returned != NULL)
			start_over(publisher); /* those that it held back are found from there */
		return;
	}
	publisher->filling = ujobs_sink_batch_new(BATCH_MESSAGES);
	read.budget = BATCH_BYTES;
	if (publisher->returned != NULL)
	{
		read_untried_again(publisher, read.now);
		read_followers(publisher, &read);
	}
	read_on(publisher, &read);
}

/* ---- one run ---- */

static void
recover(UjobsPublisher *publisher)
{
	if (publisher->filling != NULL)
	{
		mark_batch(publisher, publisher->filling, HASH_REMOVE);
		ujobs_sink_batch_free(publisher->filling);
		publisher->filling = NULL;
	}
	if (publisher->returned != NULL)
		mark_batch(publisher, publisher->returned, HASH_ENTER);
	publisher->record_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), RECORD_AGAIN_MS);
	start_over(publisher);
}

static void
send_filled(UjobsPublisher *publisher)
{
	UjobsSinkBatch *batch = publisher->filling;

	publisher->filling = NULL;
	if (batch == NULL)
		return;
	if (batch->n == 0)
	{
		ujobs_sink_batch_free(batch);
		return;
	}
	ujobs_connection_send(publisher->connection.thread, batch);
	publisher->in_flight++;
}

static bool
run_transaction(UjobsPublisher *publisher)
{
	ErrorData  *error;

	ujobs_session_stats_activity("publish messages");
	MemoryContextSwitchTo(publisher->memory);
	error = ujobs_worker_try(record_and_read, publisher);
	ujobs_sink_connection_report(
		&publisher->report,
		psprintf("record or read messages for sink \"%s\"", publisher->sink->name), error);
	if (error != NULL)
		recover(publisher);
	else
	{
		ujobs_sink_batch_free(publisher->returned);
		publisher->returned = NULL;
		send_filled(publisher);
		show_in_flight(publisher);
	}
	MemoryContextReset(publisher->memory);
	return error == NULL;
}

/* Did it make any progress?  A module may leave some for later. */
static bool
was_tried(const UjobsSinkBatch *batch)
{
	if (batch->broken)
		return false;
	for (int i = 0; i < batch->n; i++)
	{
		if (batch->messages[i].fate != UJOBS_SINK_BROKEN &&
			batch->messages[i].fate != UJOBS_SINK_UNTRIED)
			return true;
	}
	return false;
}

static bool
collect(UjobsPublisher *publisher)
{
	if (publisher->returned != NULL)
		return true;
	if (publisher->in_flight == 0)
		return false;
	publisher->returned = ujobs_connection_collect(publisher->connection.thread);
	if (publisher->returned == NULL)
		return false;
	publisher->in_flight--;
	publisher->broken |= !was_tried(publisher->returned);
	if (!publisher->broken)
		ujobs_sink_connection_works(&publisher->connection);
	return true;
}

static bool
wants_to_read(const UjobsPublisher *publisher)
{
	return may_send(publisher) && !publisher->dry && publisher->returned == NULL;
}

static TimestampTz
next_run(const UjobsPublisher *publisher, TimestampTz now)
{
	if (publisher->returned != NULL)
		return publisher->record_at;
	if (wants_to_read(publisher))
		return Max(now, publisher->record_at);
	if (!publisher->connection.ready)
		return ujobs_sink_connection_next(&publisher->connection);
	return publisher->in_flight < BATCHES_IN_FLIGHT ? start_over_at(publisher) : DT_NOEND;
}

/* Only when the thread has no batch, so nothing is lost with it. */
static void
keep_connection(UjobsPublisher *publisher, TimestampTz now)
{
	bool		was_ready = publisher->connection.ready;

	if (ujobs_sink_connection_keep(&publisher->connection, now) && publisher->broken)
		ujobs_sink_connection_drop(&publisher->connection, now, "it did not answer");
	publisher->broken = false;
	if (publisher->connection.ready && !was_ready)
		start_over(publisher);
}

TimestampTz
ujobs_publisher_run(UjobsPublisher *publisher, TimestampTz now)
{
	Assert(!IsTransactionState());
	if (now < publisher->record_at)
		return publisher->record_at;
	/* What comes back meanwhile wakes the process again: other sinks are served first. */
	for (int i = 0; i < BATCHES_IN_FLIGHT && collect(publisher); i++)
	{
		if (!run_transaction(publisher))
			return publisher->record_at;
	}
	if (publisher->in_flight == 0 && publisher->retired)
		return DT_NOEND;
	if (publisher->in_flight == 0)
		keep_connection(publisher, now);
	if (now >= start_over_at(publisher))
		start_over(publisher);
	if (wants_to_read(publisher))
		(void) run_transaction(publisher);
	return next_run(publisher, now);
}

/* ---- the end ---- */

bool
ujobs_publisher_retire(UjobsPublisher *publisher)
{
	publisher->retired = true;
	return publisher->in_flight == 0 && publisher->returned == NULL;
}

void
ujobs_publisher_close(UjobsPublisher *publisher)
{
	ujobs_sink_connection_close(&publisher->connection);
	ujobs_sink_batch_free(publisher->returned);
	ujobs_in_flight_set(publisher->sink->id, NULL, 0);
}
