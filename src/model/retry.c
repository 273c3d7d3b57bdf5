/*
 * retry.c: the retry policy, from what a user wrote to a decision.
 */
#include "postgres.h"

#include <math.h>

#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/numeric.h"

#include "core/clock.h"
#include "core/error.h"
#include "core/json.h"
#include "model/retry.h"

#define US_PER_MS INT64CONST(1000)
#define MAX_ATTEMPTS 1000000
#define MAX_SHOWN_BYTES 60
#define MAX_DELAY_MS (INT64CONST(10000) * MONTHS_PER_YEAR * DAYS_PER_MONTH * 24 * 3600 * 1000)
#define MAX_DELAY_TEXT "10000 years"

void
ujobs_retry_default(UjobsRetry *policy)
{
	memset(policy, 0, sizeof(*policy));
	policy->attempts = 3;
	policy->backoff = UJOBS_BACKOFF_EXPONENTIAL;
	policy->delay = USECS_PER_SEC;
	policy->max_delay = USECS_PER_HOUR;
	policy->jitter = true;
	policy->dead_letter = true;
}

/* ---- reading what a user wrote ---- */

/* A value as a person would write it, for DETAIL; a long one is cut. */
static char *
value_text(const JsonbValue *value)
{
	JsonbValue	copy = *value;
	char	   *text = JsonbToCString(NULL, &JsonbValueToJsonb(&copy)->root, 0);
	int			length = strlen(text);
	int			shown = pg_mbcliplen(text, length, MAX_SHOWN_BYTES);

	return shown < length ? psprintf("%.*s...", shown, text) : text;
}

static void
option_error(const char *key, const JsonbValue *value, const char *expected)
{
	ereport(ERROR,
			(ujobs_errcode(INVALID_OPTION),
			 errmsg("option \"retry\" has an invalid value for \"%s\"", key),
			 errdetail("\"%s\" is %s; it takes %s.", key, value_text(value), expected),
			 errhint("Write retry like {\"attempts\": 3, \"backoff\": \"exponential\", \"delay\": \"1s\", \"maxDelay\": \"1h\"}.")));
}

static int64
number_round(const JsonbValue *value)
{
	double		number = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow,
															NumericGetDatum(value->val.numeric)));

	if (number > (double) MAX_DELAY_MS)
		return MAX_DELAY_MS + 1;
	if (number < 0)
		return -1;
	return (int64) rint(number);
}

/* Interval text as ms; -1 when it is negative or cannot be understood. */
static int64
interval_text_ms(const char *text)
{
	char		buffer[256];
	char	   *field[MAXDATEFIELDS];
	int			ftype[MAXDATEFIELDS];
	int			nf;
	int			dtype;
	int			failed;
	struct pg_itm_in itm;
	Interval	interval;
	int64		us;

	if (ParseDateTime(text, buffer, sizeof(buffer), field, ftype, MAXDATEFIELDS, &nf) != 0)
		return -1;
	memset(&itm, 0, sizeof(itm));
	failed = DecodeInterval(field, ftype, nf, INTERVAL_FULL_RANGE, &dtype, &itm);
	if (failed == DTERR_BAD_FORMAT)
	{
		char	   *copy = pstrdup(text);

		failed = DecodeISO8601Interval(copy, &dtype, &itm);
	}
	if (failed != 0 || dtype != DTK_DELTA || itmin2interval(&itm, &interval) != 0)
		return -1;
	us = ujobs_clock_interval_us(&interval);
	return us < 0 ? -1 : Min((us + US_PER_MS / 2) / US_PER_MS, MAX_DELAY_MS + 1);
}

/* A duration in us: interval text, or a number of ms. */
static int64
parse_duration(const char *key, const JsonbValue *value)
{
	int64		ms = -1;

	if (value->type == jbvNumeric)
		ms = number_round(value);
	else if (value->type == jbvString)
		ms = interval_text_ms(pnstrdup(value->val.string.val, value->val.string.len));
	if (ms < 0 || ms > MAX_DELAY_MS)
		option_error(
			key, value,
			"an interval such as \"30s\", or a number of milliseconds, from 0 to " MAX_DELAY_TEXT);
	return ms * US_PER_MS;
}

static int32
parse_attempts(const char *key, const JsonbValue *value)
{
	double		number = -1;

	if (value->type == jbvNumeric)
		number = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow,
													NumericGetDatum(value->val.numeric)));
	if (number < 1 || number > MAX_ATTEMPTS || number != floor(number))
		option_error(key, value, "a whole number from 1 to 1000000");
	return (int32) number;
}

static bool
parse_boolean(const char *key, const JsonbValue *value)
{
	if (value->type != jbvBool)
		option_error(key, value, "true or false");
	return value->val.boolean;
}

static bool
string_is(const JsonbValue *value, const char *word)
{
	return value->type == jbvString && value->val.string.len == strlen(word) &&
		memcmp(value->val.string.val, word, value->val.string.len) == 0;
}

const char *
ujobs_retry_backoff_name(UjobsBackoff backoff)
{
	switch (backoff)
	{
		case UJOBS_BACKOFF_LINEAR:
			return "linear";
		case UJOBS_BACKOFF_FIXED:
			return "fixed";
		case UJOBS_BACKOFF_EXPONENTIAL:
			break;
	}
	return "exponential";
}

static UjobsBackoff
parse_backoff(const char *key, const JsonbValue *value)
{
	for (UjobsBackoff b = UJOBS_BACKOFF_EXPONENTIAL; b <= UJOBS_BACKOFF_FIXED; b++)
	{
		if (string_is(value, ujobs_retry_backoff_name(b)))
			return b;
	}
	option_error(key, value, "\"exponential\", \"linear\" or \"fixed\"");
	return UJOBS_BACKOFF_FIXED; /* not reached */
}

static bool
is_sqlstate(const JsonbValue *value)
{
	if (value->type != jbvString || (value->val.string.len != 5 && value->val.string.len != 2))
		return false;
	for (int i = 0; i < value->val.string.len; i++)
	{
		char		c = value->val.string.val[i];

		if (!(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z'))
			return false;
	}
	return true;
}

static void
parse_terminal(const char *key, const JsonbValue *value, UjobsRetry *policy)
{
	JsonbContainer *array;
	int			n;

	if (value->type != jbvBinary || !JsonContainerIsArray(value->val.binary.data))
		option_error(key, value,
					 "an array of SQLSTATEs or two-character classes, such as [\"23514\", \"22\"]");
	array = value->val.binary.data;
	n = JsonContainerSize(array);
	policy->terminal = palloc0(Max(n, 1) * sizeof(*policy->terminal));
	for (int i = 0; i < n; i++)
	{
		JsonbValue *element = getIthJsonbValueFromContainer(array, i);

		if (!is_sqlstate(element))
			option_error(
				key, value,
				"SQLSTATEs or two-character classes in digits and capital letters, such as \"23514\" or \"22\"");
		memcpy(policy->terminal[i], element->val.string.val, element->val.string.len);
	}
	policy->n_terminal = n;
}

static void
parse_option(const char *key, const JsonbValue *value, UjobsRetry *policy)
{
	if (strcmp(key, "attempts") == 0)
		policy->attempts = parse_attempts(key, value);
	else if (strcmp(key, "backoff") == 0)
		policy->backoff = parse_backoff(key, value);
	else if (strcmp(key, "delay") == 0)
		policy->delay = parse_duration(key, value);
	else if (strcmp(key, "maxDelay") == 0)
		policy->max_delay = parse_duration(key, value);
	else if (strcmp(key, "jitter") == 0)
		policy->jitter = parse_boolean(key, value);
	else if (strcmp(key, "deadLetter") == 0)
		policy->dead_letter = parse_boolean(key, value);
	else if (strcmp(key, "terminal") == 0)
		parse_terminal(key, value, policy);
	else
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("option \"retry\" has an unknown key \"%s\"", key),
				 errdetail("The keys are attempts, backoff, delay, maxDelay, jitter, deadLetter and terminal."),
				 errhint("Correct the spelling, or leave the key out.")));
}

void
ujobs_retry_parse(Jsonb *given, UjobsRetry *policy)
{
	JsonbIterator *it;
	JsonbValue	key;
	JsonbValue	value;

	ujobs_retry_default(policy);
	if (given == NULL)
		return;
	if (!JB_ROOT_IS_OBJECT(given))
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("option \"retry\" is not an object"),
				 errdetail("It is %s.", JsonbToCString(NULL, &given->root, VARSIZE(given))),
				 errhint("Write retry like {\"attempts\": 3, \"backoff\": \"exponential\", \"delay\": \"1s\", \"maxDelay\": \"1h\"}.")));
	it = JsonbIteratorInit(&given->root);
	(void) JsonbIteratorNext(&it, &key, true);	/* WJB_BEGIN_OBJECT */
	while (JsonbIteratorNext(&it, &key, true) == WJB_KEY)
	{
		(void) JsonbIteratorNext(&it, &value, true);
		parse_option(pnstrdup(key.val.string.val, key.val.string.len), &value, policy);
	}
}

/* ---- the normal form ---- */

Jsonb *
ujobs_retry_to_jsonb(const UjobsRetry *policy)
{
	UjobsJson	json = {0};

	ujobs_json_begin_object(&json, NULL);
	ujobs_json_number(&json, "attempts", policy->attempts);
	ujobs_json_text(&json, "backoff", ujobs_retry_backoff_name(policy->backoff));
	ujobs_json_number(&json, "delay", policy->delay / US_PER_MS);
	ujobs_json_number(&json, "maxDelay", policy->max_delay / US_PER_MS);
	ujobs_json_boolean(&json, "jitter", policy->jitter);
	ujobs_json_boolean(&json, "deadLetter", policy->dead_letter);
	ujobs_json_begin_array(&json, "terminal");
	for (int i = 0; i < policy->n_terminal; i++)
		ujobs_json_text(&json, NULL, policy->terminal[i]);
	(void) ujobs_json_end(&json);
	return ujobs_json_end(&json);
}

/* ---- deciding ---- */

int64
ujobs_retry_delay(const UjobsRetry *policy, int32 attempt)
{
	int64		n = Max(attempt, 1);
	int64		limit = policy->max_delay;

	Assert(policy->delay >= 0 && limit >= 0);
	if (policy->delay == 0)
		return 0;
	switch (policy->backoff)
	{
		case UJOBS_BACKOFF_FIXED:
			return Min(policy->delay, limit);
		case UJOBS_BACKOFF_LINEAR:
			return n > limit / policy->delay ? limit : policy->delay * n;
		case UJOBS_BACKOFF_EXPONENTIAL:
			break;
	}
	/* delay * 2^(n-1) > limit, without computing it */
	if (n > 62 || policy->delay > (limit >> (n - 1)))
		return limit;
	return policy->delay << (n - 1);
}

static bool
is_terminal(const UjobsRetry *policy, int sqlerrcode)
{
	const UjobsErrorInfo *info = ujobs_error_find(sqlerrcode);
	char		sqlstate[6];

	if (info != NULL && info->terminal)
		return true;
	strlcpy(sqlstate, unpack_sql_state(sqlerrcode), sizeof(sqlstate));
	for (int i = 0; i < policy->n_terminal; i++)
	{
		const char *t = policy->terminal[i];

		if (strncmp(t, sqlstate, strlen(t)) == 0)
			return true;
	}
	return false;
}

UjobsRetryDecision
ujobs_retry_decide(const UjobsRetry *policy, int32 attempt, int32 max_attempts,
				   const UjobsFailure *failure)
{
	UjobsRetryDecision decision = {0};
	bool		terminal = failure->hopeless || is_terminal(policy, failure->sqlerrcode);

	Assert(failure->random >= 0 && failure->random < 1);
	if (terminal || attempt >= max_attempts)
	{
		/* without dead letters an ended job is cancelled, also after a terminal error */
		decision.outcome = policy->dead_letter ? UJOBS_OUTCOME_DEAD : UJOBS_OUTCOME_CANCELLED;
		decision.exhausted = !terminal;
		return decision;
	}
	decision.outcome = UJOBS_OUTCOME_RETRY;
	if (failure->retry_after >= 0)
		decision.delay = Min(failure->retry_after, policy->max_delay);
	else
	{
		decision.delay = ujobs_retry_delay(policy, attempt);
		if (policy->jitter)
			decision.delay = decision.delay / 2 + (int64) (decision.delay / 2 * failure->random);
	}
	return decision;
}
