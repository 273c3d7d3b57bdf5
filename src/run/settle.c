/*
 * settle.c: step 7 of the walk, the part that thinks.
 *
 * Whether and when comes from model/retry; this file turns an exception into
 * its words and the decision into a verdict that the store can write.
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "mb/pg_wchar.h"
#include "utils/jsonb.h"

#include "core/clock.h"
#include "core/error.h"
#include "core/json.h"
#include "model/retry.h"
#include "run/current.h"
#include "run/settle.h"
#include "store/definition_store.h"

#define CAP_MESSAGE 8192
#define CAP_DETAIL 4096
#define CAP_CONTEXT 4096

/*
 * How soon a job without handler or owner is looked at again: soon when they
 * are few, and no more than a thousand a second when they are many.
 */
#define MISSING_RECHECK_US (INT64CONST(3) * USECS_PER_SEC)
#define MISSING_SPACING_US INT64CONST(1000)

/* At most cap bytes of it; empty ones are left out. */
static void
add_text(UjobsJson *json, const char *key, const char *text, int cap)
{
	int			length = text == NULL ? 0 : strlen(text);

	if (length > cap)
		length = pg_mbcliplen(text, length, cap);
	if (length > 0)
		ujobs_json_text_of(json, key, text, length);
}

static Jsonb *
add_error(UjobsJson *json, const char *key, const ErrorData *error)
{
	const UjobsErrorInfo *info = ujobs_error_find(error->sqlerrcode);

	ujobs_json_begin_object(json, key);
	add_text(json, "sqlstate", unpack_sql_state(error->sqlerrcode), 5);
	add_text(json, "name", info ? info->name : NULL, 64);
	add_text(json, "message", error->message ? error->message : "missing error text", CAP_MESSAGE);
	add_text(json, "detail", error->detail, CAP_DETAIL);
	add_text(json, "hint", error->hint || info == NULL ? error->hint : info->fix, CAP_DETAIL);
	add_text(json, "context", error->context, CAP_CONTEXT);
	add_text(json, "schema", error->schema_name, NAMEDATALEN);
	add_text(json, "table", error->table_name, NAMEDATALEN);
	add_text(json, "constraint", error->constraint_name, NAMEDATALEN);
	return ujobs_json_end(json);
}

Jsonb *
ujobs_settle_error(const ErrorData *error)
{
	UjobsJson	json = {0};

	return add_error(&json, NULL, error);
}

/* UJ022 around the last error: every attempt failed. */
static Jsonb *
exhausted_error(const ErrorData *error, int32 attempt)
{
	UjobsJson	json = {0};
	char	   *last = pstrdup(error->message ? error->message : "missing error text");

	if (strlen(last) > CAP_MESSAGE)
		last[pg_mbcliplen(last, strlen(last), CAP_MESSAGE)] = '\0';
	ujobs_json_begin_object(&json, NULL);
	ujobs_json_text(&json, "sqlstate", "UJ022");
	ujobs_json_text(&json, "name", "X_JOB_MAX_ATTEMPTS");
	ujobs_json_text(&json, "message", attempt == 1 ? psprintf("the only attempt failed: %s", last) :
					psprintf("all %d attempts failed: %s", attempt, last));
	(void) add_error(&json, "cause", error);
	return ujobs_json_end(&json);
}

/* The attempt that was to begin does not. */
static int32
attempt_before(const UjobsJob *job)
{
	return job->resumed ? job->attempt : job->attempt - 1;
}

void
ujobs_settle_failure(const UjobsDefinition *definition, const UjobsJob *job,
					 const ErrorData *error, TimestampTz now, UjobsVerdict *verdict)
{
	UjobsFailure failure = {
		.sqlerrcode = error->sqlerrcode,
		.retry_after = ujobs_current_asked_delay(error->sqlerrcode),
		.hopeless = ujobs_current_gave_up(),
		.random = pg_prng_double(&pg_global_prng_state)
	};
	UjobsRetryDecision decision;

	memset(verdict, 0, sizeof(*verdict));
	if (definition == NULL || definition->dropped)
	{
		ujobs_settle_dropped(job, verdict);
		return;
	}
	decision = ujobs_retry_decide(&definition->retry, job->attempt, job->max_attempts, &failure);
	verdict->outcome = decision.outcome;
	verdict->attempt = job->attempt;
	verdict->due_at = ujobs_clock_add(now, decision.delay);
	verdict->retention = ujobs_job_retention(definition, decision.outcome);
	verdict->error = decision.exhausted ? exhausted_error(error, job->attempt) :
										  ujobs_settle_error(error);
	if (decision.outcome == UJOBS_OUTCOME_CANCELLED)
		verdict->reason = "dropped";
}

void
ujobs_settle_log(const UjobsJob *job, const UjobsVerdict *verdict)
{
	const UjobsDefinition *definition;
	JsonbValue	message;
	bool		known;

	if (verdict->outcome != UJOBS_OUTCOME_DEAD || verdict->error == NULL)
		return;
	definition = ujobs_definition_by_id(job->definition_id);
	known = getKeyJsonValueFromContainer(&verdict->error->root, "message", 7, &message) != NULL &&
		message.type == jbvString;
	ereport(LOG,
			(errmsg("job " INT64_FORMAT " \"%s\" is a dead letter after attempt %d: %.*s", job->id,
					definition != NULL ? definition->name : "", verdict->attempt,
					known ? message.val.string.len : 0, known ? message.val.string.val : ""),
			 errhidestmt(true), errhidecontext(true)));
}

static TimestampTz
missing_recheck(TimestampTz now)
{
	static TimestampTz last = 0;
	TimestampTz due = ujobs_clock_add(now, MISSING_RECHECK_US);

	if (ujobs_clock_is_virtual())
		return due;
	last = Max(due, last + MISSING_SPACING_US);
	return last;
}

void
ujobs_settle_missing(const UjobsJob *job, const char *what, TimestampTz now, UjobsVerdict *verdict)
{
	ErrorData  *error = ujobs_settle_make_error(UJOBS_ERRCODE(HANDLER_MISSING), what);

	error->detail = pstrdup("The job waits, counting no attempt, until it is there again.");
	memset(verdict, 0, sizeof(*verdict));
	verdict->outcome = UJOBS_OUTCOME_SUSPENDED;
	verdict->attempt = attempt_before(job);
	verdict->due_at = missing_recheck(now);
	verdict->reason = psprintf("UJ025: %s", what);
	verdict->error = ujobs_settle_error(error);
}

void
ujobs_settle_dropped(const UjobsJob *job, UjobsVerdict *verdict)
{
	memset(verdict, 0, sizeof(*verdict));
	verdict->outcome = UJOBS_OUTCOME_CANCELLED;
	verdict->attempt = attempt_before(job);
	verdict->retention = ujobs_job_retention(NULL, UJOBS_OUTCOME_CANCELLED);
	verdict->reason = "the job's definition was dropped";
}

void
ujobs_settle_not_ours(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_QUERY_CANCELED),
			 errmsg("the job was cancelled or changed while it ran")));
}

ErrorData *
ujobs_settle_make_error(int sqlerrcode, const char *message)
{
	ErrorData  *error = palloc0(sizeof(ErrorData));

	error->elevel = ERROR;
	error->sqlerrcode = sqlerrcode;
	error->message = pstrdup(message);
	error->assoc_context = CurrentMemoryContext;
	return error;
}
