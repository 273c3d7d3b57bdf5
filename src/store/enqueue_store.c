/*
 * enqueue_store.c: insert a job, or find the live one that holds its key.
 *
 * The insert tells whether the key was free; only if it was not, the holder
 * is looked up with a snapshot taken afterwards.  At READ COMMITTED the
 * holder may end between the two: then the key is free and we begin again.
 *
 * Many jobs go in by large statements in order of their keys, and where that
 * many keys are free without statements (enqueue_direct.h).  Beginning again
 * there would mean to wait for a small key while holding greater ones, and two
 * sessions doing so could wait for each other.  So the whole pass is in a
 * subtransaction: when a holder came or ended, it is undone, which lets go of
 * all keys; the next one is all statements, and in the last the jobs go in one
 * by one, each settled before the next.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/sequence.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "core/error.h"
#include "core/hash.h"
#include "core/identity.h"
#include "core/slot.h"
#include "core/wakeup.h"
#include "store/catalogue.h"
#include "store/enqueue_direct.h"
#include "store/enqueue_store.h"

#define CHUNK 8192				/* rows of one statement: bounds its memory */

/*
 * A random (version 4) uuid.  Random bytes are drawn for many at a time: a
 * call of the generator costs a tenth of an enqueue, however few bytes it
 * gives.
 */
void
ujobs_enqueue_run_id(pg_uuid_t *id)
{
	static pg_uuid_t pool[256];
	static int	left = 0;

	if (left == 0)
	{
		if (!pg_strong_random(pool, sizeof(pool)))
			ereport(ERROR,
					(errcode(ERRCODE_INTERNAL_ERROR),
					 errmsg("could not generate random values")));
		left = lengthof(pool);
	}
	*id = pool[--left];
	id->data[6] = (id->data[6] & 0x0f) | 0x40;
	id->data[8] = (id->data[8] & 0x3f) | 0x80;
}

static void
announce(const UjobsEnqueueOptions *options, const UjobsEnqueueItem *item, const char *queue)
{
	UjobsHint	hint = {
		.id = item->result.id,
		.due_at = options->run_at,
		.definition_id = options->definition->id,
		.queue_hash = ujobs_hash_queue(queue),
		.tenant_hash = ujobs_hash_tenant(item->tenant),
		.priority = options->priority,
		.kind = UJOBS_HINT_JOB
	};

	ujobs_wakeup_note(&hint);
}

/* The arguments that all rows of a call share: $1 to $9 of both inserts. */
static void
bind_options(UjobsArgs *args, const UjobsEnqueueOptions *options)
{
	ujobs_query_bind(args, TimestampTzGetDatum(options->run_at));
	ujobs_query_bind(args, TimestampTzGetDatum(options->now));
	ujobs_query_bind(args, Int32GetDatum(options->definition->id));
	ujobs_query_bind(args, ObjectIdGetDatum(options->role));
	ujobs_query_bind(args, Int16GetDatum(options->priority));
	ujobs_query_bind(args, Int32GetDatum(ujobs_enqueue_direct_attempts(options)));
	ujobs_query_bind_text(args, options->queue);
	ujobs_query_bind_text(args, options->enqueued_by);
	ujobs_query_bind_text(args, options->traceparent);
}

static void
bind_key(UjobsArgs *args, const UjobsEnqueueOptions *options, const UjobsEnqueueItem *item)
{
	ujobs_query_bind(args, Int32GetDatum(options->definition->id));
	ujobs_query_bind_text(args, item->tenant);
	ujobs_query_bind_text(args, item->key);
}

static void
duplicate_error(const UjobsEnqueueOptions *options, const UjobsEnqueueItem *item, bool begun)
{
	ereport(ERROR,
			(ujobs_errcode(JOB_DUPLICATE),
			 errmsg("job \"%s\" already has a live job with key \"%s\"",
					options->definition->name, item->key),
			 begun
			 ? errdetail("Job " INT64_FORMAT " holds the key and has begun.", item->result.id)
			 : errdetail("Job " INT64_FORMAT " holds the key.", item->result.id),
			 begun
			 ? errhint("Only a job whose attempt has never begun can be replaced: use on_conflict => 'dedupe' to get the live job, or wait until it ends.")
			 : errhint("Use on_conflict => 'dedupe' to get the live job, or wait until it ends.")));
}

/* ---- one ---- */

static bool
insert_one(const UjobsEnqueueOptions *options, UjobsEnqueueItem *item)
{
	UjobsArgs	args = {0};
	UjobsResult result;

	bind_options(&args, options);
	ujobs_query_bind_text(&args, item->tenant);
	ujobs_query_bind_text(&args, item->key);
	ujobs_query_bind(&args, UUIDPGetDatum(&item->result.run_id));
	ujobs_query_bind_jsonb(&args, item->input);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_ENQUEUE_INSERT), &args);
	if (result.rows == 0)
		return false;
	item->result.id = DatumGetInt64(ujobs_query_result_datum(&result, 0, 0));
	return true;
}

/* id and run_id are the first columns of every look-up. */
static void
take_holder(UjobsEnqueueItem *item, const UjobsResult *result, uint64 row)
{
	item->result.id = DatumGetInt64(ujobs_query_result_datum(result, row, 0));
	memcpy(&item->result.run_id, DatumGetUUIDP(ujobs_query_result_datum(result, row, 1)),
		   sizeof(pg_uuid_t));
	item->result.deduped = true;
}

static bool
find_holder(const UjobsEnqueueOptions *options, UjobsEnqueueItem *item)
{
	UjobsArgs	args = {0};
	UjobsResult result;

	bind_key(&args, options, item);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_ENQUEUE_HOLDER), &args);
	if (result.rows == 0)
		return false;
	take_holder(item, &result, 0);
	if (options->on_conflict == UJOBS_CONFLICT_ERROR)
		duplicate_error(options, item, false);
	return true;
}

/*
 * The row is locked first, then the slots are asked: an executor that takes
 * the job after that reads either the old row, and then its settlement fails
 * on the revision, or the new one.
 */
static bool
replace_holder(UjobsIdentity *identity, const UjobsEnqueueOptions *options, UjobsEnqueueItem *item)
{
	UjobsArgs	args = {0};
	UjobsArgs	change = {0};
	UjobsResult result;
	char	   *queue;

	bind_key(&args, options, item);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_ENQUEUE_HOLDER_LOCK), &args);
	if (result.rows == 0)
		return false;
	take_holder(item, &result, 0);
	if (!DatumGetBool(ujobs_query_result_datum(&result, 0, 2)) ||
		item->result.id == options->own_job || ujobs_slot_find_running(item->result.id, NULL) >= 0)
		duplicate_error(options, item, true);
	queue = ujobs_query_result_text(&result, 0, 3, identity->caller);

	ujobs_query_bind(&change, Int64GetDatum(item->result.id));
	ujobs_query_bind_jsonb(&change, item->input);
	ujobs_query_bind(&change, TimestampTzGetDatum(options->run_at));
	ujobs_query_bind(&change, Int16GetDatum(options->priority));
	ujobs_query_bind_text(&change, options->traceparent);
	(void) ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_ENQUEUE_REPLACE), &change);
	announce(options, item, queue);
	return true;
}

static bool
settle_holder(UjobsIdentity *identity, const UjobsEnqueueOptions *options, UjobsEnqueueItem *item)
{
	if (options->on_conflict == UJOBS_CONFLICT_REPLACE)
		return replace_holder(identity, options, item);
	return find_holder(options, item);
}

/* Inserts, or finds the holder, as often as one comes or goes in between. */
static void
insert_or_settle(const UjobsEnqueueOptions *options, UjobsEnqueueItem *item)
{
	UjobsIdentity identity;

	ujobs_identity_enter(&identity);
	while (!insert_one(options, item))
	{
		if (settle_holder(&identity, options, item))
			break;
		CHECK_FOR_INTERRUPTS();
	}
	ujobs_identity_leave(&identity);
}

void
ujobs_enqueue_one(const UjobsEnqueueOptions *options, UjobsEnqueueItem *item)
{
	item->result.id = 0;
	item->result.deduped = false;
	if (options->run_id != NULL)
		item->result.run_id = *options->run_id;
	else
		ujobs_enqueue_run_id(&item->result.run_id);
	if (!ujobs_enqueue_direct_one(options, item))
		insert_or_settle(options, item);
	if (!item->result.deduped)
		announce(options, item, options->queue);
}

/* ---- many ---- */

static int
item_compare(const void *a, const void *b)
{
	const UjobsEnqueueItem *x = *(UjobsEnqueueItem *const *) a;
	const UjobsEnqueueItem *y = *(UjobsEnqueueItem *const *) b;
	int			order = strcmp(x->tenant, y->tenant);

	if (order == 0)
		order = strcmp(x->key, y->key);
	if (order == 0)
		order = x < y ? -1 : 1; /* of one key, the first of the call leads */
	return order;
}

static bool
same_key(const UjobsEnqueueItem *a, const UjobsEnqueueItem *b)
{
	return strcmp(a->key, b->key) == 0 && strcmp(a->tenant, b->tenant) == 0;
}

/* The items of a call by key: of one key, the first leads and the others follow. */
typedef struct Batch
{
	UjobsEnqueueItem *items;	/* as given */
	int			n;
	UjobsEnqueueItem **order;	/* all, by key */
	UjobsEnqueueItem **leaders; /* one of each key, by key */
	int			n_leaders;
} Batch;

static UjobsEnqueueItem **
pointers_alloc(int n)
{
	return MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * sizeof(UjobsEnqueueItem *));
}

static void
batch_order(Batch *batch, UjobsEnqueueItem *items, int n)
{
	batch->items = items;
	batch->n = n;
	batch->n_leaders = 0;
	batch->order = pointers_alloc(n);
	batch->leaders = pointers_alloc(n);
	for (int i = 0; i < n; i++)
		batch->order[i] = &items[i];
	qsort(batch->order, n, sizeof(UjobsEnqueueItem *), item_compare);
	for (int i = 0; i < n; i++)
	{
		if (i == 0 || !same_key(batch->order[i - 1], batch->order[i]))
			batch->leaders[batch->n_leaders++] = batch->order[i];
	}
}

/* Ids of the leaders in the order of the call, so that jobs alike start in that order. */
static void
draw_ids(Batch *batch)
{
	Oid			sequence = ujobs_enqueue_direct_sequence();

	for (int i = 0; i < batch->n; i++)
		batch->items[i].result.deduped = true;
	for (int i = 0; i < batch->n_leaders; i++)
		batch->leaders[i]->result.deduped = false;
	for (int i = 0; i < batch->n; i++)
	{
		UjobsEnqueued *result = &batch->items[i].result;

		if (result->deduped)
			continue;
		result->id = nextval_internal(sequence, false);
		ujobs_enqueue_run_id(&result->run_id);
	}
}

/* Followers share what their leader got. */
static void
share_results(Batch *batch)
{
	for (int i = 1; i < batch->n; i++)
	{
		if (!same_key(batch->order[i - 1], batch->order[i]))
			continue;
		batch->order[i]->result = batch->order[i - 1]->result;
		batch->order[i]->result.deduped = true;
	}
}

static void
followers_error(const UjobsEnqueueOptions *options, const Batch *batch)
{
	for (int i = 1; i < batch->n; i++)
	{
		const UjobsEnqueueItem *item = batch->order[i];

		if (!same_key(batch->order[i - 1], item))
			continue;
		ereport(ERROR,
				(ujobs_errcode(JOB_DUPLICATE),
				 errmsg("two inputs for job \"%s\" have the key \"%s\"",
						options->definition->name, item->key),
				 errdetail("They are inputs %d and %d of the call.",
						   (int) (batch->order[i - 1] - batch->items) + 1,
						   (int) (item - batch->items) + 1),
				 errhint("Use on_conflict => 'dedupe' to let them share a job.")));
	}
}

/* Tenants and keys of the items: the arrays that both bulk statements take. */
static void
bind_keys(UjobsArgs *args, UjobsEnqueueItem **items, int n)
{
	Datum	   *values = palloc(n * sizeof(Datum));

	for (int i = 0; i < n; i++)
		values[i] = CStringGetTextDatum(items[i]->tenant);
	ujobs_query_bind_array(args, TEXTOID, values, NULL, n);
	for (int i = 0; i < n; i++)
		values[i] = CStringGetTextDatum(items[i]->key);
	ujobs_query_bind_array(args, TEXTOID, values, NULL, n);
}

/* The arrays of insert_many, in its order. */
static void
bind_items(UjobsArgs *args, UjobsEnqueueItem **items, int n)
{
	Datum	   *values = palloc(n * sizeof(Datum));

	bind_keys(args, items, n);
	for (int i = 0; i < n; i++)
		values[i] = UUIDPGetDatum(&items[i]->result.run_id);
	ujobs_query_bind_array(args, UUIDOID, values, NULL, n);
	for (int i = 0; i < n; i++)
		values[i] = JsonbPGetDatum(items[i]->input);
	ujobs_query_bind_array(args, JSONBOID, values, NULL, n);
	for (int i = 0; i < n; i++)
		values[i] = Int64GetDatum(items[i]->result.id);
	ujobs_query_bind_array(args, INT8OID, values, NULL, n);
}

/*
 * Inserts the items, which are in order of their keys and have ids.  Those
 * whose key is taken are returned in `taken`, which has space for all of them.
 */
static int
insert_chunk(const UjobsEnqueueOptions *options, UjobsEnqueueItem **items, int n,
			 UjobsEnqueueItem **taken)
{
	UjobsArgs	args = {0};
	UjobsResult result;
	uint64		row = 0;
	int			n_taken = 0;

	bind_options(&args, options);
	bind_items(&args, items, n);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_ENQUEUE_INSERT_MANY), &args);

	/* Rows come back in the order they went in; what is missing was taken. */
	for (int i = 0; i < n; i++)
	{
		if (row < result.rows &&
			DatumGetInt64(ujobs_query_result_datum(&result, row, 0)) == items[i]->result.id)
		{
			row++;
			announce(options, items[i], options->queue);
		}
		else
			taken[n_taken++] = items[i];
	}
	return n_taken;
}

/* False when one of the holders is gone meanwhile. */
static bool
find_holders(const UjobsEnqueueOptions *options, UjobsEnqueueItem **items, int n)
{
	UjobsArgs	args = {0};
	UjobsResult result;

	ujobs_query_bind(&args, Int32GetDatum(options->definition->id));
	bind_keys(&args, items, n);
	result = ujobs_query_run(ujobs_catalogue_statement(UJOBS_SQL_ENQUEUE_HOLDERS), &args);
	if (result.rows < n)
		return false;
	for (uint64 row = 0; row < result.rows; row++)
	{
		UjobsEnqueueItem *item =
			items[DatumGetInt64(ujobs_query_result_datum(&result, row, 2)) - 1];

		take_holder(item, &result, row);
		if (options->on_conflict == UJOBS_CONFLICT_ERROR)
			duplicate_error(options, item, false);
	}
	return true;
}

/* Leaders in order of their keys, by one statement; false when a holder ended meanwhile. */
static bool
pass_by_statement(const UjobsEnqueueOptions *options, UjobsEnqueueItem **leaders, int n)
{
	UjobsIdentity identity;
	UjobsEnqueueItem **taken;
	int			n_taken;
	bool		complete = true;

	/* A section for each chunk: its end frees what the statements returned. */
	ujobs_identity_enter(&identity);
	taken = pointers_alloc(n);
	n_taken = insert_chunk(options, leaders, n, taken);
	if (n_taken > 0)
		complete = find_holders(options, taken, n_taken);
	ujobs_identity_leave(&identity);
	return complete;
}

static void
pass_directly(const UjobsEnqueueOptions *options, UjobsEnqueueItem **leaders, int n)
{
	UjobsIdentity identity;

	ujobs_identity_enter(&identity);
	ujobs_enqueue_direct_insert(options, leaders, n);
	ujobs_identity_leave(&identity);
	for (int i = 0; i < n; i++)
		announce(options, leaders[i], options->queue);
}

/*
 * All leaders, the first key first: long stretches of free keys directly, all
 * else by statements.  `taken` is NULL when nothing goes directly.  False when
 * a holder ended meanwhile.
 */
static bool
pass_in_bulk(const UjobsEnqueueOptions *options, const Batch *batch, const bool *taken)
{
	int			next;
	bool		complete = true;

	for (int i = 0; i < batch->n_leaders && complete; i = next)
	{
		bool		directly =
			taken != NULL && ujobs_enqueue_direct_stretch(taken, batch->n_leaders, i, &next);

		if (directly)
			pass_directly(options, batch->leaders + i, next - i);
		else
		{
			next = Min(taken != NULL ? next : batch->n_leaders, i + CHUNK);
			complete = pass_by_statement(options, batch->leaders + i, next - i);
		}
		CHECK_FOR_INTERRUPTS();
	}
	return complete;
}

/* One after another: a key is settled before the next is touched. */
static void
pass_one_by_one(const UjobsEnqueueOptions *options, UjobsEnqueueItem **items, int n)
{
	for (int i = 0; i < n; i++)
	{
		UjobsIdentity identity;
		UjobsEnqueueItem *taken;

		ujobs_identity_enter(&identity);
		while (insert_chunk(options, &items[i], 1, &taken) == 1 &&
			   !settle_holder(&identity, options, items[i]))
			CHECK_FOR_INTERRUPTS();
		ujobs_identity_leave(&identity);
	}
}

/*
 * The bulk pass in a subtransaction, which is undone when it returns false or
 * raises.  A session that takes a key after the look makes what goes directly
 * fail: that is false too.
 */
static bool
try_in_bulk(const UjobsEnqueueOptions *options, const Batch *batch, const bool *taken)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;
	volatile bool complete = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		complete = pass_in_bulk(options, batch, taken);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	if (complete)
		ReleaseCurrentSubTransaction();
	else
		RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	if (error != NULL && !(taken != NULL && error->sqlerrcode == ERRCODE_UNIQUE_VIOLATION))
		ReThrowError(error);
	return complete;
}

/* What the look at the keys found, or NULL when it is not worth it. */
static bool *
look_at_keys(const UjobsEnqueueOptions *options, const Batch *batch)
{
	UjobsIdentity identity;
	bool	   *taken;

	if (batch->n_leaders < UJOBS_ENQUEUE_DIRECT_LEAST)
		return NULL;
	ujobs_identity_enter(&identity);
	MemoryContextSwitchTo(identity.caller);
	taken = ujobs_enqueue_direct_look(options, batch->leaders, batch->n_leaders);
	ujobs_identity_leave(&identity);
	return taken;
}

void
ujobs_enqueue_many(const UjobsEnqueueOptions *options, UjobsEnqueueItem *items, int n)
{
	Batch		batch;
	bool	   *taken;
	bool		complete;

	batch_order(&batch, items, n);
	if (options->on_conflict == UJOBS_CONFLICT_ERROR)
		followers_error(options, &batch);
	draw_ids(&batch);

	/* Replacing locks rows; of one key the last input stays, as if they came one by one. */
	if (options->on_conflict == UJOBS_CONFLICT_REPLACE)
	{
		pass_one_by_one(options, batch.order, batch.n);
		return;
	}
	taken = look_at_keys(options, &batch);
	complete = try_in_bulk(options, &batch, taken);
	if (!complete && taken != NULL)
	{
		draw_ids(&batch);
		complete = try_in_bulk(options, &batch, NULL);
	}
	if (!complete)
	{
		draw_ids(&batch);
		pass_one_by_one(options, batch.leaders, batch.n_leaders);
	}
	share_results(&batch);
}
