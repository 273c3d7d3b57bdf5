/*
 * definition_store.c: the session's cache of job definitions.
 *
 * An enqueue and every start of a job look a definition up, so it must cost
 * one hash probe.  Entries are keyed by id, with a table from live names to
 * ids beside it, all in one memory context.  Invalidation is PostgreSQL's
 * own: a session that changes a definition invalidates the relcache entry of the
 * definition table, and every session learns of it at its next transaction or
 * lock.  The callback only marks the cache stale; it is emptied at the next
 * look-up, so that a pointer stays good until its holder asks again.
 *
 * Rows are read with the latest snapshot, not the transaction's: the cache
 * outlives the transaction, and a definition seen through an old snapshot
 * would stay for ever.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "core/clock.h"
#include "core/error.h"
#include "core/invalidation.h"
#include "core/wakeup.h"
#include "model/schema_compile.h"
#include "model/retry.h"
#include "model/template.h"
#include "store/catalogue.h"
#include "store/definition_store.h"

typedef struct IdEntry
{
	int32		id;				/* hash key */
	UjobsDefinition *definition;
} IdEntry;

typedef struct NameEntry
{
	char		name[UJOBS_MAX_NAME_BYTES + 1]; /* hash key */
	UjobsDefinition *definition;
} NameEntry;

static MemoryContext cache_context = NULL;
static HTAB *by_id = NULL;
static HTAB *by_name = NULL;
static UjobsInvalidation invalidation = {.table = "definition", .roles = true};

/* ---- the cache's life ---- */

static HTAB *
make_table(const char *name, Size keysize, Size entrysize, int flags)
{
	HASHCTL		ctl = {0};

	ctl.keysize = keysize;
	ctl.entrysize = entrysize;
	ctl.hcxt = cache_context;
	return hash_create(name, 64, &ctl, HASH_ELEM | HASH_CONTEXT | flags);
}

/* Empties a stale cache. */
static void
cache_refresh(void)
{
	if (invalidation.fresh)
		return;
	if (cache_context == NULL)
		cache_context = AllocSetContextCreate(CacheMemoryContext, "ujobs definitions",
											  ALLOCSET_DEFAULT_SIZES);
	by_id = by_name = NULL;
	MemoryContextReset(cache_context);
	by_id = make_table("ujobs definitions by id", sizeof(int32), sizeof(IdEntry), HASH_BLOBS);
	by_name = make_table("ujobs definitions by name", UJOBS_MAX_NAME_BYTES + 1, sizeof(NameEntry),
						 HASH_STRINGS);
	ujobs_invalidation_begin(&invalidation);
}

void
ujobs_definition_forget(void)
{
	invalidation.fresh = false;
}

void
ujobs_definition_invalidate(void)
{
	UjobsHint	hint = {.kind = UJOBS_HINT_DEFINITIONS};

	ujobs_invalidation_send("definition");
	ujobs_wakeup_note(&hint);
	ujobs_wakeup_note_relay();

	/*
	 * Makes the change visible and delivers the message to ourselves now, so
	 * that an entry loaded from here on is dropped again at an abort.
	 */
	CommandCounterIncrement();
}

/* ---- decoding a row ---- */

const char *
ujobs_definition_kind_name(UjobsKind kind)
{
	switch (kind)
	{
		case UJOBS_KIND_ATOMIC:
			return "atomic";
		case UJOBS_KIND_DURABLE:
			return "durable";
		case UJOBS_KIND_EXTERNAL:
			return "external";
		case UJOBS_KIND_COMMAND:
			break;
	}
	return "command";
}

static UjobsKind
kind_decode(const char *name)
{
	for (UjobsKind kind = UJOBS_KIND_ATOMIC; kind < UJOBS_KIND_COMMAND; kind++)
	{
		if (strcmp(name, ujobs_definition_kind_name(kind)) == 0)
			return kind;
	}
	return UJOBS_KIND_COMMAND;
}

/*
 * Were the rows restored from another database, and not accepted yet?  Only
 * a certain "no" is remembered: it stays true as long as the store is here.
 */
static bool
is_restored(void)
{
	static UjobsInvalidation own = {.table = "definition"};
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult result;
	bool		restored;

	if (own.fresh)
		return false;
	ujobs_identity_enter(&identity);
	if (!ActiveSnapshotSet())
		PushActiveSnapshot(GetLatestSnapshot());
	else
		PushActiveSnapshot(GetActiveSnapshot());
	ujobs_invalidation_begin(&own);
	ujobs_query_bind(&args, ObjectIdGetDatum(MyDatabaseId));
	result = ujobs_query_read(ujobs_catalogue_statement(UJOBS_SQL_DEFINITION_RESTORED), &args);
	restored = result.rows > 0 && DatumGetBool(ujobs_query_result_datum(&result, 0, 0));
	own.fresh &= result.rows > 0 && !restored;
	PopActiveSnapshot();
	ujobs_identity_leave(&identity);
	return restored;
}

Oid
ujobs_definition_role(Oid oid, const char *name)
{
	char	   *current;
	Oid			named;

	if (!is_restored())
		return oid;
	current = GetUserNameFromId(oid, true);
	if (current != NULL && strcmp(current, name) == 0)
		return oid;
	named = get_role_oid(name, true);
	return OidIsValid(named) ? named : oid;
}

static int64
interval_decode(const UjobsResult *result, int column, int64 if_null)
{
	Datum		value = ujobs_query_result_datum(result, 0, column);

	return value == (Datum) 0 ? if_null : ujobs_clock_interval_us(DatumGetIntervalP(value));
}

/* The columns of DEFINITION_COLUMNS, in order. */
static UjobsDefinition *
definition_decode(const UjobsResult *r)
{
	MemoryContext into = cache_context;
	UjobsDefinition *d = palloc0(sizeof(UjobsDefinition));

	d->id = DatumGetInt32(ujobs_query_result_datum(r, 0, 0));
	d->name = ujobs_query_result_text(r, 0, 1, into);
	d->kind = kind_decode(ujobs_query_result_text(r, 0, 2, into));
	d->handler = ujobs_query_result_text(r, 0, 3, into);
	d->owner_name = pstrdup(NameStr(*DatumGetName(ujobs_query_result_datum(r, 0, 5))));
	d->owner = ujobs_definition_role(DatumGetObjectId(ujobs_query_result_datum(r, 0, 4)),
									 d->owner_name);
	d->key_template = ujobs_query_result_text(r, 0, 6, into);
	d->tenant_template = ujobs_query_result_text(r, 0, 7, into);
	d->input_schema = ujobs_query_result_jsonb(r, 0, 8, into);
	ujobs_retry_parse(ujobs_query_result_jsonb(r, 0, 9, into), &d->retry);
	d->queue = ujobs_query_result_text(r, 0, 10, into);
	d->priority = DatumGetInt16(ujobs_query_result_datum(r, 0, 11));
	d->concurrency = DatumGetInt32(ujobs_query_result_datum(r, 0, 12));
	d->timeout = interval_decode(r, 13, 0);
	d->step_timeout = interval_decode(r, 14, 0);
	d->batch = DatumGetInt32(ujobs_query_result_datum(r, 0, 15));
	d->retention = interval_decode(r, 16, -1);
	d->dropped = DatumGetBool(ujobs_query_result_datum(r, 0, 17));
	d->key_parsed = ujobs_template_parse(d->key_template, "idempotency_key");
	if (d->tenant_template != NULL)
		d->tenant_parsed = ujobs_template_parse(d->tenant_template, "tenant");
	return d;
}

static void
grants_decode(UjobsDefinition *d, const UjobsResult *r)
{
	d->enqueuers = palloc(Max(r->rows, 1) * sizeof(Oid));
	d->workers = palloc(Max(r->rows, 1) * sizeof(Oid));
	for (uint64 i = 0; i < r->rows; i++)
	{
		char		privilege = DatumGetChar(ujobs_query_result_datum(r, i, 0));
		Oid			role = DatumGetObjectId(ujobs_query_result_datum(r, i, 1));

		if (OidIsValid(role))
			role = ujobs_definition_role(role,
										 NameStr(*DatumGetName(ujobs_query_result_datum(r, i, 2))));
		if (privilege == 'e')
			d->enqueuers[d->n_enqueuers++] = role;
		else
			d->workers[d->n_workers++] = role;
	}
}

/* ---- loading ---- */

static void
cache_enter(UjobsDefinition *d)
{
	IdEntry    *entry = hash_search(by_id, &d->id, HASH_ENTER, NULL);

	entry->definition = d;
	if (!d->dropped)
	{
		NameEntry  *named = hash_search(by_name, d->name, HASH_ENTER, NULL);

		named->definition = d;
	}
}

/* Reads one row and its grants with the latest snapshot; NULL when there is none. */
static const UjobsDefinition *
cache_load(UjobsStatementId statement, Datum key)
{
	UjobsIdentity identity;
	UjobsArgs	args = {0};
	UjobsResult row;
	UjobsDefinition *d = NULL;

	ujobs_identity_enter(&identity);
	PushActiveSnapshot(GetLatestSnapshot());
	ujobs_query_bind(&args, key);
	row = ujobs_query_read(ujobs_catalogue_statement(statement), &args);
	if (row.rows > 0)
	{
		MemoryContext old = MemoryContextSwitchTo(cache_context);
		UjobsArgs	id = {0};
		UjobsResult grants;

		d = definition_decode(&row);
		MemoryContextSwitchTo(old);
		ujobs_query_bind(&id, Int32GetDatum(d->id));
		grants = ujobs_query_read(ujobs_catalogue_statement(UJOBS_SQL_DEFINITION_GRANTS), &id);
		MemoryContextSwitchTo(cache_context);
		grants_decode(d, &grants);
		MemoryContextSwitchTo(old);
		cache_enter(d);
	}
	PopActiveSnapshot();
	ujobs_identity_leave(&identity);
	return d;
}

const UjobsDefinition *
ujobs_definition_by_name(const char *name)
{
	NameEntry  *entry;

	if (strlen(name) > UJOBS_MAX_NAME_BYTES)
		return NULL;
	cache_refresh();
	entry = hash_search(by_name, name, HASH_FIND, NULL);
	if (entry != NULL)
		return entry->definition;
	return cache_load(UJOBS_SQL_DEFINITION_BY_NAME, CStringGetTextDatum(name));
}

const UjobsDefinition *
ujobs_definition_by_id(int32 id)
{
	IdEntry    *entry;

	cache_refresh();
	entry = hash_search(by_id, &id, HASH_FIND, NULL);
	if (entry != NULL)
		return entry->definition;
	return cache_load(UJOBS_SQL_DEFINITION_BY_ID, Int32GetDatum(id));
}

/*
 * Not with the row: executors and dispatchers never need it, and a schema that
 * this server cannot compile any more must not keep queued jobs from running.
 */
const UjobsSchema *
ujobs_definition_schema(const UjobsDefinition *definition)
{
	UjobsDefinition *d = unconstify(UjobsDefinition *, definition);
	MemoryContext context;
	MemoryContext caller;

	if (d->input_schema == NULL || d->schema != NULL)
		return d->schema;
	context = AllocSetContextCreate(CurrentMemoryContext, "ujobs input schema",
									ALLOCSET_SMALL_SIZES);
	caller = MemoryContextSwitchTo(context);
	d->schema = ujobs_schema_compile(d->input_schema);
	MemoryContextSwitchTo(caller);
	MemoryContextSetParent(context, cache_context);
	return d->schema;
}

/* ---- who may ---- */

bool
ujobs_definition_may_control(const UjobsDefinition *definition, Oid role)
{
	return superuser_arg(role) || has_privs_of_role(role, definition->owner);
}

static bool
is_granted(const Oid *roles, int n, Oid role)
{
	for (int i = 0; i < n; i++)
	{
		if (!OidIsValid(roles[i]) || has_privs_of_role(role, roles[i]))
			return true;
	}
	return false;
}

bool
ujobs_definition_may_enqueue(const UjobsDefinition *definition, Oid role)
{
	return ujobs_definition_may_control(definition, role) ||
		is_granted(definition->enqueuers, definition->n_enqueuers, role);
}

bool
ujobs_definition_may_work(const UjobsDefinition *definition, Oid role)
{
	return ujobs_definition_may_control(definition, role) ||
		is_granted(definition->workers, definition->n_workers, role);
}
