/*
 * intake.c: from a message to a local job.
 *
 * All messages of a batch are tried in one subtransaction first.  If one
 * cannot become a job, it is undone and each is tried in its own: then what
 * is wrong with one parks that one.  The record of the message ids is written
 * by the same transaction as the jobs.
 */
#include "postgres.h"

#include "access/xact.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "core/error.h"
#include "core/json.h"
#include "model/schema_check.h"
#include "model/template.h"
#include "model/traceparent.h"
#include "run/intake.h"
#include "run/signature.h"
#include "store/definition_store.h"
#include "store/enqueue_store.h"
#include "store/inbox_store.h"
#include "store/queue_key_store.h"

#define MAX_ERROR_BYTES 8192	/* of a part of the reason why a message is parked */

/* ---- reading a message ---- */

static void
refuse(const char *member, const char *detail)
{
	ereport(ERROR,
			(ujobs_errcode(INVALID_OPTION),
			 errmsg("member \"%s\" of the message has an invalid value", member),
			 errdetail_internal("%s", detail)));
}

/* A member as text; NULL when it is absent or null. */
static char *
text_member(Jsonb *message, const char *name)
{
	JsonbValue	value;

	if (getKeyJsonValueFromContainer(&message->root, name, strlen(name), &value) == NULL ||
		value.type == jbvNull)
		return NULL;
	if (value.type == jbvString)
		return pnstrdup(value.val.string.val, value.val.string.len);
	if (value.type == jbvNumeric)
		return DatumGetCString(
			DirectFunctionCall1(numeric_out, NumericGetDatum(value.val.numeric)));
	refuse(name, "It is neither a string nor a number.");
	return NULL;
}

static Jsonb *
json_member(Jsonb *message, const char *name)
{
	JsonbValue	value;

	if (getKeyJsonValueFromContainer(&message->root, name, strlen(name), &value) == NULL)
		return NULL;
	return JsonbValueToJsonb(&value);
}

static int32
number_member(Jsonb *message, const char *name, int32 least, int32 most)
{
	char	   *text = text_member(message, name);
	int32		number;

	if (text == NULL)
		return 0;
	number = pg_strtoint32(text);
	if (number < least || number > most)
		refuse(name, psprintf("It is %d; it takes %d to %d.", number, least, most));
	return number;
}

static TimestampTz
instant_member(Jsonb *message, const char *name, TimestampTz if_absent)
{
	char	   *text = text_member(message, name);
	TimestampTz at;

	if (text == NULL)
		return if_absent;
	at = DatumGetTimestampTz(DirectFunctionCall3(timestamptz_in, CStringGetDatum(text),
												 ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1)));
	if (TIMESTAMP_NOT_FINITE(at))
		refuse(name, "It is infinite.");
	return at;
}

static char *
short_member(Jsonb *message, const char *name, int most)
{
	char	   *text = text_member(message, name);

	if (text != NULL && strlen(text) > most)
		refuse(name, psprintf("It has %zu bytes of %d.", strlen(text), most));
	return text;
}

static char *
traceparent_member(Jsonb *message)
{
	char	   *text = text_member(message, "traceparent");

	if (text == NULL || *text == '\0')
		return NULL;
	if (ujobs_traceparent_fault(text) != NULL)
		refuse("traceparent", psprintf("\"%s\" %s.", text, ujobs_traceparent_fault(text)));
	return text;
}

static const UjobsDefinition *
definition_of(Jsonb *message)
{
	char	   *name = JB_ROOT_IS_OBJECT(message) ? text_member(message, "name") : NULL;
	const UjobsDefinition *definition;

	if (name == NULL)
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("the message is not that of a job"),
				 errdetail("It is not a JSON object with a member \"name\".")));
	definition = ujobs_definition_by_name(name);
	if (definition == NULL)
		ereport(ERROR,
				(ujobs_errcode(JOB_UNKNOWN),
				 errmsg("job \"%s\" is not defined", name),
				 errhint("Define it here with ujobs.define_job: its messages become jobs then.")));
	return definition;
}

static void
item_of(const UjobsDefinition *d, Jsonb *message, UjobsEnqueueItem *item)
{
	const UjobsSchema *schema = ujobs_definition_schema(d);

	item->input = json_member(message, "input");
	if (item->input == NULL)
		item->input = DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum("{}")));
	if (schema != NULL)
		ujobs_schema_check_or_raise(schema, d->name, item->input, 0);
	item->tenant = short_member(message, "tenantId", UJOBS_MAX_TENANT_BYTES);
	if (item->tenant == NULL && d->tenant_parsed != NULL &&
		json_member(message, "tenantId") == NULL)
		item->tenant = ujobs_template_render(d->tenant_parsed, item->input, "tenant",
											 UJOBS_MAX_TENANT_BYTES);
	if (item->tenant == NULL)
		item->tenant = "";
	item->key = short_member(message, "idempotencyKey", UJOBS_MAX_KEY_BYTES);
	if (item->key == NULL || *item->key == '\0')
		item->key = ujobs_template_render(d->key_parsed, item->input, "idempotency_key",
										  UJOBS_MAX_KEY_BYTES);
}

/* Returns the id of the job that it became. */
static int64
become_job(Jsonb *message, const char *queue, TimestampTz now)
{
	const UjobsDefinition *d = definition_of(message);
	char	   *run_id = text_member(message, "runId");
	bool		own_priority = json_member(message, "priority") != NULL;
	UjobsEnqueueOptions options = {
		.definition = d,
		.queue = queue,
		.enqueued_by = text_member(message, "enqueuedBy"),
		.traceparent = traceparent_member(message),
		.now = now,
		.run_at = instant_member(message, "runAt", now),
		.role = d->owner,
		.priority = own_priority ? number_member(message, "priority", PG_INT16_MIN, PG_INT16_MAX) :
								   d->priority,
		.on_conflict = UJOBS_CONFLICT_DEDUPE,
		.max_attempts = number_member(message, "maxAttempts", 1, PG_INT32_MAX)};
	UjobsEnqueueItem item;

	if (run_id != NULL)
		options.run_id = DatumGetUUIDP(DirectFunctionCall1(uuid_in, CStringGetDatum(run_id)));
	item_of(d, message, &item);
	ujobs_enqueue_one(&options, &item);
	return item.result.id;
}

/* ---- what went wrong ---- */

/* Is it the message's own fault, so that only another definition can mend it? */
static bool
is_own_fault(int sqlerrcode)
{
	switch (ERRCODE_TO_CATEGORY(sqlerrcode))
	{
		case MAKE_SQLSTATE('2', '2', '0', '0', '0'):
		case MAKE_SQLSTATE('2', '3', '0', '0', '0'):
		case MAKE_SQLSTATE('4', '2', '0', '0', '0'):
		case MAKE_SQLSTATE('5', '4', '0', '0', '0'):
			return true;
	}
	return ujobs_error_find(sqlerrcode) != NULL;
}

static bool
is_passing(int sqlerrcode)
{
	return sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE ||
		ERRCODE_TO_CATEGORY(sqlerrcode) == ERRCODE_TRANSACTION_ROLLBACK;
}

static void
add_member(UjobsJson *json, const char *name, const char *text)
{
	int			length = text == NULL ? 0 : strlen(text);

	if (text != NULL)
		ujobs_json_text_of(json, name, text,
						   length > MAX_ERROR_BYTES ? pg_mbcliplen(text, length, MAX_ERROR_BYTES) :
													  length);
}

static Jsonb *
describe(const ErrorData *error)
{
	const UjobsErrorInfo *info = ujobs_error_find(error->sqlerrcode);
	UjobsJson	json = {0};

	ujobs_json_begin_object(&json, NULL);
	add_member(&json, "sqlstate", unpack_sql_state(error->sqlerrcode));
	add_member(&json, "name", info == NULL ? NULL : info->name);
	add_member(&json, "message", error->message);
	add_member(&json, "detail", error->detail);
	add_member(&json, "hint", error->hint);
	return ujobs_json_end(&json);
}

/* ---- trying ---- */

/* One message of a batch. */
typedef struct Attempt
{
	UjobsIntake *intake;
	const UjobsQueueKeys *keys; /* it must be signed with one of these; NULL: it need not be */
	Jsonb	   *message;		/* NULL: not JSON */
	Jsonb	   *error;			/* why it is parked */
} Attempt;

typedef void (*Work) (Attempt *attempts, int n, TimestampTz now);

/* In a subtransaction; the error that undid it, or NULL. */
static ErrorData *
try_work(Work work, Attempt *attempts, int n, TimestampTz now)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		work(attempts, n, now);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return error;
}

/* Read before anything else, and apart: what is no JSON is kept as a string. */
static Jsonb *
parsed(const char *payload, size_t size)
{
	char	   *text = pg_any_to_server(payload, size, PG_UTF8);

	return DatumGetJsonbP(DirectFunctionCall1(
		jsonb_in, CStringGetDatum(text == payload ? pnstrdup(payload, size) : text)));
}

/* Who holds the queue's key wrote it, under this id: so it cannot be sent again as another one. */
static void
check_signature(const UjobsIntake *m, Jsonb *message, const UjobsQueueKeys *keys)
{
	const char *why;
	char	   *text;
	char	   *id;

	text = m->payload != NULL ? unconstify(char *, m->payload) :
		JsonbToCString(NULL, &message->root, VARSIZE(message));
	if (!ujobs_signature_check(text, m->payload != NULL ? m->payload_size : strlen(text),
							   keys->key, keys->n, &why))
		ereport(ERROR,
				(ujobs_errcode(MESSAGE_FORGED),
				 errmsg("a message of queue \"%s\" is not from a producer of it", m->queue),
				 errdetail("%s.", why),
				 errhint("Give its producer the key: ujobs.queue_key here, ujobs.set_queue_key there.")));
	id = JB_ROOT_IS_OBJECT(message) ? text_member(message, "id") : NULL;
	if (id == NULL || strcmp(id, m->message_id) != 0)
		ereport(ERROR,
				(ujobs_errcode(MESSAGE_FORGED),
				 errmsg("a message of queue \"%s\" is not from a producer of it", m->queue),
				 errdetail("It was signed with the id \"%s\" and sent with the id \"%s\".",
						   id != NULL ? id : "", m->message_id)));
}

static void
become_jobs(Attempt *attempts, int n, TimestampTz now)
{
	for (int i = 0; i < n; i++)
	{
		UjobsIntake *m = attempts[i].intake;

		if (attempts[i].message == NULL)
			attempts[i].message = parsed(m->payload, m->payload_size);
		if (attempts[i].keys != NULL)
			check_signature(m, attempts[i].message, attempts[i].keys);
		m->job_id = become_job(attempts[i].message, m->queue, now);
		m->fate = UJOBS_INTAKE_JOB;
	}
}

/* The body of a parked message that is no JSON, as far as it is text at all. */
static Jsonb *
as_string(const char *payload, size_t size)
{
	int			valid = pg_encoding_verifymbstr(PG_UTF8, payload, size);
	JsonbValue	value = {.type = jbvString};

	value.val.string.val = pg_any_to_server(pnstrdup(payload, valid), valid, PG_UTF8);
	value.val.string.len = strlen(value.val.string.val);
	return JsonbValueToJsonb(&value);
}

static void
try_one(Attempt *attempt, TimestampTz now)
{
	UjobsIntake *m = attempt->intake;
	ErrorData  *error = try_work(become_jobs, attempt, 1, now);

	if (error == NULL)
		return;
	m->job_id = 0;
	m->fate = UJOBS_INTAKE_LATER;
	if (is_passing(error->sqlerrcode))
		return;
	if (!is_own_fault(error->sqlerrcode))
		ReThrowError(error);
	m->fate = UJOBS_INTAKE_PARKED;
	attempt->error = describe(error);
	if (attempt->message == NULL)
		attempt->message = as_string(m->payload, m->payload_size);
}

static void
try_all(Attempt *attempts, int n, TimestampTz now)
{
	if (n > 1 && try_work(become_jobs, attempts, n, now) == NULL)
		return;
	for (int i = 0; i < n; i++)
		try_one(&attempts[i], now);
}

/* ---- batches ---- */

static int
by_id(const void *a, const void *b)
{
	return strcmp((*(UjobsIntake *const *) a)->message_id, (*(UjobsIntake *const *) b)->message_id);
}

/* Those that are in the inbox, or twice in the batch, are known. */
static int
sort_out(UjobsIntake *messages, int n, Attempt *attempts)
{
	UjobsIntake **order = palloc(n * sizeof(UjobsIntake *));
	const char **ids = palloc(n * sizeof(char *));
	bool	   *known = palloc(n * sizeof(bool));
	int			left = 0;

	for (int i = 0; i < n; i++)
	{
		messages[i].fate = UJOBS_INTAKE_JOB;
		messages[i].job_id = 0;
		order[i] = &messages[i];
		ids[i] = messages[i].message_id;
	}
	qsort(order, n, sizeof(UjobsIntake *), by_id);
	ujobs_inbox_known(ids, known, n);
	for (int i = 0; i < n; i++)
	{
		if (known[i])
			messages[i].fate = UJOBS_INTAKE_KNOWN;
		if (i > 0 && by_id(&order[i - 1], &order[i]) == 0)
			order[i]->fate = UJOBS_INTAKE_KNOWN;
	}
	for (int i = 0; i < n; i++)
	{
		if (messages[i].fate != UJOBS_INTAKE_KNOWN)
			attempts[left++].intake = &messages[i];
	}
	return left;
}

static void
record(const Attempt *attempts, int n, TimestampTz now)
{
	UjobsInboxRow *rows = palloc0(Max(n, 1) * sizeof(UjobsInboxRow));
	int			n_rows = 0;

	for (int i = 0; i < n; i++)
	{
		const UjobsIntake *m = attempts[i].intake;
		UjobsInboxRow *row = &rows[n_rows];

		if (m->fate == UJOBS_INTAKE_LATER)
			continue;
		row->message_id = m->message_id;
		row->queue = m->queue;
		row->sink_id = m->sink_id;
		row->job_id = m->job_id;
		row->message = m->fate == UJOBS_INTAKE_PARKED ? attempts[i].message : NULL;
		row->error = attempts[i].error;
		n_rows++;
	}
	if (n_rows > 0)
		ujobs_inbox_insert(rows, n_rows, now);
}

/* NULL: messages that its queue gets from its sink need not be signed. */
static const UjobsQueueKeys *
keys_of(const UjobsIntake *m)
{
	UjobsQueueKeys *keys;

	if (ujobs_queue_key_allows_unsigned(m->queue, m->sink_id))
		return NULL;
	keys = palloc(sizeof(UjobsQueueKeys));
	*keys = ujobs_queue_key_all(m->queue);
	return keys;
}

void
ujobs_intake_take(UjobsIntake *messages, int n, TimestampTz now)
{
	Attempt    *attempts = palloc0(Max(n, 1) * sizeof(Attempt));
	const UjobsQueueKeys *keys;
	int			left;

	Assert(IsTransactionState());
	if (n == 0)
		return;
	left = sort_out(messages, n, attempts);
	if (left == 0)
		return;
	keys = keys_of(&messages[0]);
	for (int i = 0; i < left; i++)
		attempts[i].keys = keys;
	try_all(attempts, left, now);
	record(attempts, left, now);
}

/* Was that the reason for which it was parked?  Others were looked at after the signature. */
static bool
was_forged(Jsonb *error)
{
	char	   *code = error == NULL ? NULL : text_member(error, "sqlstate");

	return code == NULL ||
		   strcmp(code, unpack_sql_state(UJOBS_ERRCODE(MESSAGE_FORGED))) == 0;
}

char *
ujobs_intake_retry_parked(const char *after, int max, TimestampTz now)
{
	int			n;
	UjobsInboxRow *rows = ujobs_inbox_parked(after, max, &n);

	Assert(IsTransactionState());
	for (int i = 0; i < n; i++)
	{
		UjobsIntake intake = {.message_id = rows[i].message_id, .queue = rows[i].queue, .sink_id = rows[i].sink_id};
		Attempt		attempt = {
			.intake = &intake,
			.message = rows[i].message,
			.keys = was_forged(rows[i].error) ? keys_of(&intake) : NULL
		};

		try_one(&attempt, now);
		if (intake.fate == UJOBS_INTAKE_LATER)
			continue;
		rows[i].job_id = intake.job_id;
		rows[i].error = attempt.error;
		ujobs_inbox_settle(&rows[i]);
	}
	return n == 0 ? NULL : pstrdup(rows[n - 1].message_id);
}
