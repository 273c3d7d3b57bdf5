/*
 * mutation_test.c: schemas, patterns, inputs, templates and signed messages, changed at random.
 *
 * Whatever a text has become, it is taken, or refused by an error that is meant for it; with
 * UJOBS_FUZZ_SECONDS for so long, else a fixed number of times.
 *
 * sources: src/model/schema_*.c src/model/pattern.c src/model/uri.c src/model/template.c src/model/effort.c src/run/signature.c src/core/error.c
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

#include "unit.h"
#include "core/guc.h"
#include "model/schema_check.h"
#include "model/template.h"
#include "run/signature.h"

#define ROUNDS 4000
#define MOST_BYTES 4000

int			ujobs_guc_max_schema_size = 65536;
int			ujobs_guc_max_validation_steps = 20000;

static const char *const schemas[] = {
	"{\"type\": \"object\", \"required\": [\"a\"], \"properties\": {\"a\": {\"type\": [\"integer\", \"string\"], \"minimum\": 1, \"pattern\": \"^x{1,3}(?=y)\"}}}",
	"{\"$ref\": \"#/$defs/n\", \"$defs\": {\"n\": {\"anyOf\": [{\"$ref\": \"#/$defs/n\"}, {\"items\": {\"$ref\": \"#\"}}], \"uniqueItems\": true}}}",
	"{\"allOf\": [{\"if\": {\"const\": 1}, \"then\": {\"multipleOf\": 0.1}, \"else\": {\"enum\": [null, {}, []]}}], \"unevaluatedProperties\": false}",
	"{\"patternProperties\": {\"^[a-z]+\\\\d$\": {\"oneOf\": [true, false]}}, \"dependentRequired\": {\"a\": [\"b\"]}, \"contains\": {}, \"minContains\": 2}",
	"{\"$id\": \"http://e/x\", \"$anchor\": \"t\", \"$dynamicRef\": \"#t\", \"not\": {\"propertyNames\": {\"maxLength\": 3}}}"
};
static const char *const inputs[] = {
	"{\"a\": \"xxy\", \"b\": [1, 2, 2], \"c9\": {\"a\": 1e3}}",
	"[[[[]], 1], 1.10, \"\\u00e4\", null, {\"a\": {\"a\": {}}}]",
	"\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxy\"", "0.30000000000000000000004", "{}"
};
static const char *const templates[] = {
	"onboard:{orgId}:{a.b.c}", "{a}{b}", "{{literal}}:{x}", "k", "{a.0.b}"
};

/* One change: a byte, a copy of a part, a part gone, or a token put in. */
static void
mutate(char *text, int *length)
{
	static const char *const tokens[] = {"{", "}", "[", "]", "\"", ":", ",", "\\", "$ref", "#/", "{1,99}", "(", ")*", "1e99", "\\u0000", ".", "-1", "null"};
	int			at = unit_random(*length + 1);
	int			n = unit_random(20);

	switch (unit_random(4))
	{
		case 0:
			if (at < *length)
				text[at] = (char) (1 + unit_random(126));
			break;
		case 1:
			n = Min(n, *length - at);
			memmove(text + at, text + at + n, *length - at - n);
			*length -= n;
			break;
		case 2:
			n = Min(n, *length - at);
			if (*length + n >= MOST_BYTES)
				break;
			memmove(text + at + n, text + at, *length - at);
			*length += n;
			break;
		default:
			{
				const char *token = tokens[unit_random(lengthof(tokens))];

				n = strlen(token);
				if (*length + n >= MOST_BYTES)
					break;
				memmove(text + at + n, text + at, *length - at);
				memcpy(text + at, token, n);
				*length += n;
			}
	}
	text[*length] = '\0';
}

static char *
mutated(const char *seed)
{
	char	   *text = palloc(MOST_BYTES + strlen(seed) + 1);
	int			length = strlen(seed);

	strcpy(text, seed);
	for (int i = unit_random(6); i > 0; i--)
		mutate(text, &length);
	return text;
}

static bool
is_meant(const UnitError *error)
{
	static const char *const meant[] = {"UJ002", "UJ003", "UJ027", "22P02", "22P05", "22023", "22003", "54001", "54000", "2201B", "22021"};

	for (int i = 0; i < lengthof(meant); i++)
	{
		if (strcmp(error->sqlstate, meant[i]) == 0)
			return true;
	}
	return !error->raised;
}

static void
check_schema(Jsonb *schema, Jsonb *input)
{
	(void) ujobs_schema_check(ujobs_schema_compile(schema), input);
}

static void
check_template(const char *template, Jsonb *input)
{
	(void) ujobs_template_render(ujobs_template_parse(template, "key"), input, "key", 1000);
}

/* A text that is not the one that was signed has no valid signature. */
static bool
signature_holds(Jsonb *message, bytea *key)
{
	Jsonb	   *with = ujobs_signature_add(message, key);
	char	   *text = JsonbToCString(NULL, &with->root, VARSIZE(with));
	char	   *other = mutated(text);
	const char *why;

	if (!ujobs_signature_check(text, strlen(text), &key, 1, &why))
		return false;
	return strcmp(text, other) == 0 ||
		!ujobs_signature_check(other, strlen(other), &key, 1, &why) ||
		strncmp(text, other, strlen(text) - 92) == 0;	/* blanks around the signature alone */
}

typedef struct Counts
{
	int			rounds;
	int			strange;
	int			schemas;		/* that were valid */
	int			forged;
} Counts;

static void
one_round(Counts *counts, bytea *key)
{
	char	   *schema_text = mutated(schemas[unit_random(lengthof(schemas))]);
	char	   *input_text = mutated(inputs[unit_random(lengthof(inputs))]);
	char	   *template = mutated(templates[unit_random(lengthof(templates))]);
	Jsonb	   *volatile schema = NULL;
	Jsonb	   *volatile input = NULL;
	UnitError	error;

	unit_try(&error, schema = unit_jsonb(schema_text));
	unit_try(&error, input = unit_jsonb(input_text));
	if (input == NULL)
		input = unit_jsonb(inputs[0]);
	unit_try(&error, check_template(template, input));
	if (!is_meant(&error) && ++counts->strange < 5)
		unit_note("template %s: %s %s", template, error.sqlstate, error.message);
	if (schema == NULL)
		return;
	unit_try(&error, check_schema(schema, input));
	counts->schemas += !error.raised;
	if (!is_meant(&error) && ++counts->strange < 5)
		unit_note("schema %s, input %s: %s %s", schema_text, input_text, error.sqlstate, error.message);
	counts->forged += !signature_holds(unit_jsonb(psprintf("{\"id\": \"1\", \"input\": %s}", schema_text)), key);
}

void
unit_main(void)
{
	const char *seconds = getenv("UJOBS_FUZZ_SECONDS");
	TimestampTz end = GetCurrentTimestamp() + (seconds != NULL ? atoi(seconds) : 0) * USECS_PER_SEC;
	MemoryContext round = AllocSetContextCreate(TopMemoryContext, "round", ALLOCSET_DEFAULT_SIZES);
	bytea	   *key = palloc0(VARHDRSZ + UJOBS_KEY_BYTES);
	Counts		counts = {0};

	SET_VARSIZE(key, VARHDRSZ + UJOBS_KEY_BYTES);
	CurrentResourceOwner = ResourceOwnerCreate(NULL, "mutation_test"); /* OpenSSL's contexts are its */
	unit_random_seed(seconds != NULL ? (uint64) GetCurrentTimestamp() : 42);
	while (seconds != NULL ? GetCurrentTimestamp() < end : counts.rounds < ROUNDS)
	{
		MemoryContextSwitchTo(round);
		one_round(&counts, key);
		MemoryContextSwitchTo(TopMemoryContext);
		MemoryContextReset(round);
		counts.rounds++;
	}
	unit_ok(counts.strange == 0, "every answer is meant for its text: %d are not", counts.strange);
	unit_ok(counts.schemas > counts.rounds / 100, "schemas were checked: %d in %d rounds", counts.schemas, counts.rounds);
	unit_ok(counts.forged == 0, "a message that was changed has no valid signature: %d have", counts.forged);
}
