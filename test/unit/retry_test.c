/*
 * retry_test.c: delays against a slow way to compute them, decisions, and policies as read.
 *
 * sources: src/model/retry.c src/core/error.c src/core/json.c src/core/clock.c
 */
#include "postgres.h"

#include "unit.h"
#include "core/error.h"
#include "core/guc.h"
#include "model/retry.h"

#define YEAR_US (INT64CONST(360) * USECS_PER_DAY)
#define LONGEST (10000 * YEAR_US)	/* the longest delay that a policy takes */

/* In place of core/guc.c. */
bool		ujobs_guc_clock_set = false;
TimestampTz ujobs_guc_clock_instant = 0;

/* ---- delays ---- */

/* In 128 bits, step by step. */
static int64
slow_delay(const UjobsRetry *policy, int32 attempt)
{
	__int128	delay = policy->delay;

	for (int32 n = 1; n < attempt && delay <= policy->max_delay && delay > 0; n++)
	{
		if (policy->backoff == UJOBS_BACKOFF_EXPONENTIAL)
			delay *= 2;
		else if (policy->backoff == UJOBS_BACKOFF_LINEAR)
			delay += policy->delay;
		else
			break;
	}
	return Min(delay, policy->max_delay);
}

/* Small and large ones alike. */
static int64
random_delay(void)
{
	int64		delay =
		((int64) unit_random(PG_UINT32_MAX) << 31 | unit_random(PG_UINT32_MAX)) >> unit_random(62);

	return unit_random(20) == 0 ? 0 : unit_random(20) == 0 ? LONGEST : Min(delay, LONGEST);
}

static int32
random_attempt(void)
{
	static const int32 edges[] = {PG_INT32_MIN, -1, 0, 1, 2, 61, 62, 63, 64, 65, 1000000};

	return unit_random(2) ? edges[unit_random(lengthof(edges))] : 1 + (int32) unit_random(100);
}

static void
test_delays(void)
{
	int			wrong = 0;
	int			shrunk = 0;

	for (int round = 0; round < 20000; round++)
	{
		UjobsRetry	policy = {.delay = random_delay(), .max_delay = random_delay(),
			.backoff = unit_random(3)};
		int32		attempt = random_attempt();
		int64		delay = ujobs_retry_delay(&policy, attempt);

		if (delay != slow_delay(&policy, attempt))
		{
			unit_note("backoff %d, delay " INT64_FORMAT " up to " INT64_FORMAT
					  ", attempt %d: " INT64_FORMAT,
					  policy.backoff, policy.delay, policy.max_delay, attempt, delay);
			wrong++;
		}
		shrunk += ujobs_retry_delay(&policy, Max(attempt, 1) + 1) < delay;
	}
	unit_ok(wrong == 0, "retry: a slow computation agrees with 20000 random delays");
	unit_ok(shrunk == 0, "retry: no delay is less than the one before");
}

static void
test_last_attempt(void)
{
	UjobsRetry	policy = {.delay = 1, .max_delay = LONGEST};
	bool		good = true;

	for (policy.backoff = UJOBS_BACKOFF_EXPONENTIAL; policy.backoff <= UJOBS_BACKOFF_FIXED;
		 policy.backoff++)
	{
		int64		delay = ujobs_retry_delay(&policy, PG_INT32_MAX);
		int64		expected[] = {LONGEST, PG_INT32_MAX, 1};

		good &= delay == expected[policy.backoff];
	}
	unit_ok(good, "retry: the delay after the greatest attempt does not overflow");
}

/* ---- decisions ---- */

static void
test_jitter(void)
{
	const double edges[] = {0, 0x1p-53, 0.5, 1 - 0x1p-53};
	int			wrong = 0;

	for (int round = 0; round < 20000; round++)
	{
		UjobsRetry	policy = {.delay = random_delay(), .max_delay = random_delay(), .jitter = true};
		UjobsFailure failure = {.retry_after = -1, .random = edges[unit_random(lengthof(edges))]};
		int32		attempt = random_attempt();
		int64		full = ujobs_retry_delay(&policy, attempt);
		UjobsRetryDecision decision;

		if (unit_random(2))
			failure.random = unit_random(1000000) / 1e6;
		decision = ujobs_retry_decide(&policy, attempt, PG_INT32_MAX, &failure);
		wrong += decision.outcome != UJOBS_OUTCOME_RETRY || decision.delay < full / 2 ||
			decision.delay > full;
		wrong += failure.random == 0 && decision.delay != full / 2;
	}
	unit_ok(wrong == 0, "retry: with jitter a delay is between one half and the whole");
}

typedef struct DecisionCase
{
	const char *name;
	UjobsFailure failure;
	int32		attempt;
	bool		dead_letter;
	UjobsOutcomeKind outcome;
	int64		delay;
	bool		exhausted;
} DecisionCase;

static void
test_decisions(void)
{
	char		terminal[3][6] = {"23514", "22"};
	UjobsRetry	policy = {.delay = 1000, .max_delay = 5000, .terminal = terminal, .n_terminal = 2};
	const int	plain = ERRCODE_RAISE_EXCEPTION;
	const DecisionCase cases[] = {
		{"a failure is tried again", {plain, -1}, 1, true, UJOBS_OUTCOME_RETRY, 1000},
		{"the delay grows", {plain, -1}, 2, true, UJOBS_OUTCOME_RETRY, 2000},
		{"up to its limit", {plain, -1}, 4, true, UJOBS_OUTCOME_RETRY, 5000},
		{"the last attempt ends the job", {plain, -1}, 5, true, UJOBS_OUTCOME_DEAD, 0, true},
		{"also one too many", {plain, -1}, 6, true, UJOBS_OUTCOME_DEAD, 0, true},
		{"without dead letters it is cancelled", {plain, -1}, 5, false, UJOBS_OUTCOME_CANCELLED, 0,
			true},
		{"a terminal code ends it at once", {ERRCODE_CHECK_VIOLATION, -1}, 1, true,
			UJOBS_OUTCOME_DEAD},
		{"a terminal class too", {ERRCODE_DIVISION_BY_ZERO, -1}, 1, true, UJOBS_OUTCOME_DEAD},
		{"another code of the class of a terminal code does not", {ERRCODE_UNIQUE_VIOLATION, -1}, 1,
			true, UJOBS_OUTCOME_RETRY, 1000},
		{"a hopeless failure ends it", {plain, -1, true}, 1, true, UJOBS_OUTCOME_DEAD},
		{"a terminal error of its own ends it", {UJOBS_ERRCODE(JOB_FAILED), -1}, 1, false,
			UJOBS_OUTCOME_CANCELLED},
		{"a terminal error at the last attempt did not exhaust them", {ERRCODE_CHECK_VIOLATION, -1},
			5, true, UJOBS_OUTCOME_DEAD},
		{"the handler's delay counts", {UJOBS_ERRCODE(RETRY_AFTER), 7}, 4, true,
			UJOBS_OUTCOME_RETRY, 7},
		{"also none", {UJOBS_ERRCODE(RETRY_AFTER), 0}, 1, true, UJOBS_OUTCOME_RETRY, 0},
		{"up to the limit", {UJOBS_ERRCODE(RETRY_AFTER), PG_INT64_MAX}, 1, true,
			UJOBS_OUTCOME_RETRY, 5000},
		{"and not beyond the last attempt", {UJOBS_ERRCODE(RETRY_AFTER), 7}, 5, true,
			UJOBS_OUTCOME_DEAD, 0, true}, };

	for (int i = 0; i < lengthof(cases); i++)
	{
		UjobsRetryDecision d;

		policy.dead_letter = cases[i].dead_letter;
		d = ujobs_retry_decide(&policy, cases[i].attempt, 5, &cases[i].failure);
		unit_ok(d.outcome == cases[i].outcome && d.delay == cases[i].delay &&
				d.exhausted == cases[i].exhausted, "retry: %s", cases[i].name);
	}
}

/* ---- policies as read ---- */

static const char *
normal_form(const char *given)
{
	UjobsRetry	policy;

	ujobs_retry_parse(given ? unit_jsonb(given) : NULL, &policy);
	return JsonbToCString(NULL, &ujobs_retry_to_jsonb(&policy)->root, 0);
}

static void
test_reading(void)
{
	static const char *const same[][2] = {
		{"{}", "{}"},
		{"{\"delay\": \"30s\"}", "{\"delay\": 30000}"},
		{"{\"delay\": \"1 minute 30 seconds\"}", "{\"delay\": 90000}"},
		{"{\"delay\": \"PT1M30S\"}", "{\"delay\": 90000}"},
		{"{\"delay\": \"1 mon\"}", "{\"delay\": 2592000000}"},
		{"{\"delay\": 1.4}", "{\"delay\": 1}"},
		{"{\"maxDelay\": \"10000 years\"}", "{\"maxDelay\": 311040000000000}"},
		{"{\"attempts\": 3.0}", "{\"attempts\": 3}"},
		{"{\"terminal\": []}", "{}"},
		{"{\"backoff\": \"exponential\", \"jitter\": true, \"deadLetter\": true}", "{}"},
	};
	bool		good = true;
	const char *all = "{\"delay\": 7, \"jitter\": false, \"backoff\": \"linear\", \"attempts\": 9, "
		"\"maxDelay\": 11, \"terminal\": [\"23514\", \"22\"], \"deadLetter\": false}";

	for (int i = 0; i < lengthof(same); i++)
	{
		bool		equal = strcmp(normal_form(same[i][0]), normal_form(same[i][1])) == 0;

		if (!equal)
			unit_note("%s becomes %s, %s becomes %s", same[i][0], normal_form(same[i][0]),
					  same[i][1], normal_form(same[i][1]));
		good &= equal;
	}
	unit_ok(good, "retry: policies that mean the same have one normal form");
	unit_ok(
		strcmp(normal_form(NULL),
			   "{\"delay\": 1000, \"jitter\": true, \"backoff\": \"exponential\", \"attempts\": 3, "
			   "\"maxDelay\": 3600000, \"terminal\": [], \"deadLetter\": true}") == 0,
		"retry: the defaults");
	unit_ok(strcmp(normal_form(all), all) == 0, "retry: a normal form is its own normal form");
}

static void
test_refusals(void)
{
	static const char *const refused[][2] = {
		{"[]", "It is []."},
		{"1", "It is 1."},
		{"{\"delai\": 1}", "The keys are attempts"},
		{"{\"attempts\": 0}", "\"attempts\" is 0; it takes a whole number"},
		{"{\"attempts\": 1.5}", "\"attempts\" is 1.5;"},
		{"{\"attempts\": 1000001}", "\"attempts\" is 1000001;"},
		{"{\"attempts\": \"3\"}", "\"attempts\" is \"3\";"},
		{"{\"attempts\": 1e400}", "\"attempts\" is 1000"},
		{"{\"delay\": -1}", "\"delay\" is -1; it takes an interval"},
		{"{\"delay\": \"-1s\"}", "\"delay\" is \"-1s\";"},
		{"{\"delay\": \"soon\"}", "\"delay\" is \"soon\";"},
		{"{\"delay\": \"infinity\"}", "\"delay\" is \"infinity\";"},
		{"{\"delay\": \"\"}", "\"delay\" is \"\";"},
		{"{\"delay\": \"10001 years\"}", "from 0 to 10000 years"},
		{"{\"delay\": 311040000000001}", "from 0 to 10000 years"},
		{"{\"delay\": 1e300}", "from 0 to 10000 years"},
		{"{\"maxDelay\": null}", "\"maxDelay\" is null;"},
		{"{\"backoff\": \"Linear\"}", "\"backoff\" is \"Linear\";"},
		{"{\"jitter\": 1}", "it takes true or false"},
		{"{\"deadLetter\": \"yes\"}", "it takes true or false"},
		{"{\"terminal\": \"22\"}", "it takes an array"},
		{"{\"terminal\": {\"22\": 1}}", "it takes an array"},
		{"{\"terminal\": [\"2\"]}", "it takes SQLSTATEs"},
		{"{\"terminal\": [\"23a14\"]}", "it takes SQLSTATEs"},
		{"{\"terminal\": [22]}", "it takes SQLSTATEs"},
	};

	for (int i = 0; i < lengthof(refused); i++)
	{
		UnitError	error;
		UjobsRetry	policy;
		Jsonb	   *given = unit_jsonb(refused[i][0]);

		unit_try(&error, ujobs_retry_parse(given, &policy));
		if (!error.raised || strstr(error.detail, refused[i][1]) == NULL)
			unit_note("%s: %s", refused[i][0], error.raised ? error.detail : "no error");
		unit_ok(error.raised && strcmp(error.sqlstate, "UJ003") == 0 &&
				strstr(error.detail, refused[i][1]) != NULL, "retry: refused is %s", refused[i][0]);
	}
}

void
unit_main(void)
{
	test_delays();
	test_last_attempt();
	test_jitter();
	test_decisions();
	test_reading();
	test_refusals();
}
