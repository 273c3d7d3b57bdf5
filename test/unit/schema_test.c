/*
 * schema_test.c: JSON Schema by a table, by properties and at its limits.
 *
 * The standard's own test suite runs in test/tap; this is about what ujobs adds
 * (places, messages, refusals) and what holds for any schema and any input.
 *
 * sources: src/model/schema_*.c src/model/pattern.c src/model/uri.c src/core/error.c src/model/effort.c
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/memutils.h"

#include "unit.h"
#include "core/guc.h"
#include "model/schema_check.h"

int			ujobs_guc_max_schema_size = 1024 * 1024;
int			ujobs_guc_max_validation_steps = 1000000;

/* What does not fit, or NULL. */
static const char *
fault_of(const char *schema, const char *input)
{
	return ujobs_schema_check(ujobs_schema_compile(unit_jsonb(schema)), unit_jsonb(input));
}

static bool
same_text(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* ---- a table ---- */

static const char *const faults[][3] = {
	{"true", "1", NULL},
	{"false", "1", "at the root: is not allowed (input_schema)"},
	{"{}", "{\"a\": 1}", NULL},
	{"{\"type\": \"integer\"}", "1.0", NULL},
	{"{\"type\": \"integer\"}", "1.5",
	 "at the root: must be integer, not a number with a fraction (type)"},
	{"{\"type\": [\"string\", \"null\", \"boolean\"]}", "[]",
	 "at the root: must be null, boolean or string, not array (type)"},
	{"{\"const\": {\"a\": 1}}", "{\"a\": 1.0}", NULL},
	{"{\"const\": \"a\"}", "\"b\"", "at the root: must be \"a\" (const)"},
	{"{\"enum\": [1, \"x\", null]}", "2", "at the root: must be one of 1, \"x\", null (enum)"},
	{"{\"enum\": []}", "2", "at the root: must be one of no values (enum)"},
	{"{\"minimum\": 1}", "0.999", "at the root: must be >= 1 (minimum)"},
	{"{\"exclusiveMinimum\": 1}", "1", "at the root: must be > 1 (exclusiveMinimum)"},
	{"{\"maximum\": 1}", "1e3", "at the root: must be <= 1 (maximum)"},
	{"{\"exclusiveMaximum\": 1}", "1", "at the root: must be < 1 (exclusiveMaximum)"},
	{"{\"multipleOf\": 0.01}", "19.99", NULL},
	{"{\"multipleOf\": 0.01}", "19.999", "at the root: must be a multiple of 0.01 (multipleOf)"},
	{"{\"maxLength\": 2}", "\"äöü\"",
	 "at the root: must have at most 2 characters, has 3 (maxLength)"},
	{"{\"minLength\": 1}", "\"\"",
	 "at the root: must have at least 1 character, has 0 (minLength)"},
	{"{\"pattern\": \"^\\\\d+$\"}", "\"12\"", NULL},
	{"{\"pattern\": \"^\\\\d+$\"}", "\"1a\"", "at the root: must match \"^\\d+$\" (pattern)"},
	{"{\"maxItems\": 1}", "[1, 2]", "at the root: must have at most 1 item, has 2 (maxItems)"},
	{"{\"minItems\": 2}", "[1]", "at the root: must have at least 2 items, has 1 (minItems)"},
	{"{\"uniqueItems\": true}", "[1, 2, 1.0]",
	 "at the root: must have no two equal items, items 0 and 2 are (uniqueItems)"},
	{"{\"contains\": {\"const\": 1}}", "[2]",
	 "at the root: must have at least 1 item for the schema of \"contains\", has 0 (contains)"},
	{"{\"contains\": {\"const\": 1}, \"maxContains\": 1}", "[1, 1]",
	 "at the root: must have at most 1 item for the schema of \"contains\", has 2 (maxContains)"},
	{"{\"prefixItems\": [true, {\"type\": \"string\"}]}", "[1, 2]",
	 "at \"/1\": must be string, not number (type)"},
	{"{\"items\": {\"items\": {\"minimum\": 5}}}", "[[], [7, 4]]",
	 "at \"/1/1\": must be >= 5 (minimum)"},
	{"{\"required\": [\"a\", \"b\"]}", "{\"a\": 1}", "at the root: must have \"b\" (required)"},
	{"{\"maxProperties\": 0}", "{\"a\": 1}",
	 "at the root: must have at most 0 members, has 1 (maxProperties)"},
	{"{\"minProperties\": 1}", "{}",
	 "at the root: must have at least 1 member, has 0 (minProperties)"},
	{"{\"properties\": {\"a/b~\": {\"type\": \"null\"}}}", "{\"a/b~\": 1}",
	 "at \"/a~1b~0\": must be null, not number (type)"},
	{"{\"propertyNames\": {\"maxLength\": 1}}", "{\"ab\": 1}",
	 "at \"/ab\": its name must have at most 1 character, has 2 (maxLength)"},
	{"{\"patternProperties\": {\"^n\": {\"type\": \"number\"}}, \"additionalProperties\": false}",
	 "{\"n1\": 1, \"x\": 2}", "at \"/x\": is not allowed (additionalProperties)"},
	{"{\"dependentRequired\": {\"a\": [\"b\"]}}", "{\"a\": 1}",
	 "at the root: must have \"b\" because it has \"a\" (dependentRequired)"},
	{"{\"anyOf\": [{\"type\": \"string\"}, {\"minimum\": 3}]}", "1",
	 "at the root: must fit at least one of 2 schemas, fits none (anyOf)"},
	{"{\"oneOf\": [{\"type\": \"number\"}, {\"minimum\": 3}]}", "4",
	 "at the root: must fit exactly one of 2 schemas, fits numbers 1 and 2 (oneOf)"},
	{"{\"not\": {\"type\": \"number\"}}", "4",
	 "at the root: must not fit the schema of \"not\", but does (not)"},
	{"{\"if\": {\"minimum\": 3}, \"then\": {\"multipleOf\": 2}, \"else\": false}", "5",
	 "at the root: must be a multiple of 2 (multipleOf)"},
	{"{\"if\": {\"minimum\": 3}, \"then\": {\"multipleOf\": 2}, \"else\": false}", "1",
	 "at the root: is not allowed (else)"},
	{"{\"$defs\": {\"p\": {\"minimum\": 1}}, \"items\": {\"$ref\": \"#/$defs/p\"}}", "[1, 0]",
	 "at \"/1\": must be >= 1 (minimum)"},
	{"{\"properties\": {\"a\": true}, \"unevaluatedProperties\": false}", "{\"a\": 1, \"b\": 2}",
	 "at \"/b\": is not allowed (unevaluatedProperties)"},
	{"{\"prefixItems\": [true], \"unevaluatedItems\": false}", "[1, 2]",
	 "at \"/1\": is not allowed (unevaluatedItems)"},
	{"{\"minimum\": 5, \"maxLength\": 1, \"required\": [\"x\"], \"minItems\": 1}", "null", NULL},
	{"{\"allOf\": [{\"properties\": {\"a\": true}}], \"unevaluatedProperties\": false}",
	 "{\"a\": 1}", NULL},
	{"{\"anyOf\": [{\"prefixItems\": [true]}, {\"prefixItems\": [true, true]}], \"unevaluatedItems\": false}",
	 "[1, 2]", NULL},
	{"{\"anyOf\": [{\"prefixItems\": [true]}, {\"prefixItems\": [true, false]}], \"unevaluatedItems\": false}",
	 "[1, 2]", "at \"/1\": is not allowed (unevaluatedItems)"},
	{"{\"minItems\": 2, \"maxItems\": 2}", "[1, 2]", NULL},
	{"{\"minProperties\": 1, \"maxProperties\": 1}", "{\"a\": 1}", NULL},
	{"{\"minLength\": 2, \"maxLength\": 2}", "\"äö\"", NULL},
	{"{\"$defs\": {\"ä\": {\"minimum\": 1}}, \"$ref\": \"#/$defs/%C3%A4\"}", "0",
	 "at the root: must be >= 1 (minimum)"},
	/* which of several keywords is reported */
	{"{\"minItems\": 3, \"items\": false, \"uniqueItems\": true}", "[1, 1]",
	 "at the root: must have at least 3 items, has 2 (minItems)"},
	{"{\"items\": {\"maximum\": 0}, \"uniqueItems\": true}", "[1, 1]",
	 "at \"/0\": must be <= 0 (maximum)"},
	{"{\"required\": [\"b\"], \"properties\": {\"a\": false}}", "{\"a\": 1}",
	 "at the root: must have \"b\" (required)"},
};

static void
test_faults(void)
{
	for (int i = 0; i < lengthof(faults); i++)
	{
		const char *fault = fault_of(faults[i][0], faults[i][1]);

		if (!same_text(fault, faults[i][2]))
			unit_note("%s", fault ? fault : "it fits");
		unit_ok(same_text(fault, faults[i][2]), "schema: %s under %s", faults[i][1], faults[i][0]);
	}
}

static void
test_refusals(void)
{
	static const char *const cases[][2] = {
		{"1", "at the root: it is neither an object nor a boolean"},
		{"[]", "at the root: it is neither an object nor a boolean"},
		{"{\"minimun\": 1}", "at the root: keyword \"minimun\" is not known"},
		{"{\"minimum\": \"1\"}", "at the root: keyword \"minimum\" is not a number"},
		{"{\"multipleOf\": 0}", "at the root: keyword \"multipleOf\" is not greater than 0"},
		{"{\"maxLength\": -1}",
		 "at the root: keyword \"maxLength\" is not a whole number of 0 or more"},
		{"{\"maxLength\": 1.5}",
		 "at the root: keyword \"maxLength\" is not a whole number of 0 or more"},
		{"{\"type\": \"text\"}", "at the root: keyword \"type\" names no type"},
		{"{\"type\": []}", "at the root: keyword \"type\" is an empty array"},
		{"{\"items\": [true]}",
		 "at the root: keyword \"items\" is an array, as older drafts have it"},
		{"{\"allOf\": []}", "at the root: keyword \"allOf\" is an empty array"},
		{"{\"allOf\": [1]}",
		 "at the root: keyword \"allOf\" holds at \"/allOf/0\" something that is no schema"},
		{"{\"properties\": {\"a\": {\"required\": [1]}}}",
		 "at \"/properties/a\": keyword \"required\" holds a name that is not a string"},
		{"{\"$recursiveRef\": \"#\"}", "at the root: keyword \"$recursiveRef\" is not supported"},
		{"{\"$ref\": \"other.json\"}",
		 "at the root: keyword \"$ref\" leads to no schema of this document: \"other.json\""},
		{"{\"$ref\": \"#/$defs/a\"}",
		 "at the root: keyword \"$ref\" leads to no schema of this document: \"#/$defs/a\""},
		{"{\"$ref\": \"#\"}",
		 "at the root: keyword \"$ref\" leads in a circle that never comes to a member or an item"},
		{"{\"$defs\": {\"a\": {\"not\": {\"$ref\": \"#/$defs/a\"}}}}",
		 "at \"/$defs/a/not\": keyword \"$ref\" leads in a circle that never comes to a member or an item"},
		{"{\"$anchor\": \"1\"}", "at the root: keyword \"$anchor\" is not a plain name"},
		{"{\"$id\": \"a#b\"}", "at the root: keyword \"$id\" has a fragment"},
		{"{\"$schema\": \"http://json-schema.org/draft-07/schema#\"}",
		 "at the root: keyword \"$schema\" is \"http://json-schema.org/draft-07/schema#\""},
		{"{\"items\": {\"$anchor\": \"a\"}, \"contains\": {\"$anchor\": \"a\"}}",
		 "at \"/contains\": keyword \"$anchor\" gives a name that another schema has too: \"#a\""},
		{"{\"pattern\": \"(\"}",
		 "at the root: keyword \"pattern\" holds the pattern \"(\", which is refused by PostgreSQL's engine: parentheses () not balanced"},
		{"{\"pattern\": \"\\\\p{L}\"}",
		 "at the root: keyword \"pattern\" holds the pattern \"\\p{L}\", which has the escape \\p, but PostgreSQL's engine knows no Unicode properties"},
	};

	for (int i = 0; i < lengthof(cases); i++)
	{
		UnitError	error;

		unit_try(&error, ujobs_schema_compile(unit_jsonb(cases[i][0])));
		if (!error.raised || strcmp(error.detail, cases[i][1]) != 0)
			unit_note("%s", error.raised ? error.detail : "no error");
		unit_ok(error.raised && strcmp(error.sqlstate, "UJ003") == 0 &&
				strcmp(error.detail, cases[i][1]) == 0, "schema: refused is %s", cases[i][0]);
	}
}

static void
test_hints(void)
{
	static const char *const cases[][2] = {
		{"{\"tite\": 1}", "Did you mean \"title\"? "},
		{"{\"minimun\": 1}", "Did you mean \"minimum\"? "},
		{"{\"maxItem\": 1}", "Did you mean \"maxItems\"? "},
		{"{\"zzzzzzz\": 1}", "The name of a note of your own begins with \"x-\"."},
	};

	for (int i = 0; i < lengthof(cases); i++)
	{
		UnitError	error;

		unit_try(&error, ujobs_schema_compile(unit_jsonb(cases[i][0])));
		unit_ok(error.raised && strncmp(error.hint, cases[i][1], strlen(cases[i][1])) == 0,
				"schema: the hint for %s", cases[i][0]);
	}
}

static void
test_raising(void)
{
	UjobsSchema *schema = ujobs_schema_compile(unit_jsonb("{\"minimum\": 1}"));
	UnitError	error;

	unit_try(&error, ujobs_schema_check_or_raise(schema, "j", unit_jsonb("0"), 3));
	unit_ok(error.raised && strcmp(error.sqlstate, "UJ004") == 0 &&
			strcmp(error.detail, "input 3 of the call, at the root: must be >= 1 (minimum)") == 0,
			"schema: an input that does not fit raises");
	unit_try(&error, ujobs_schema_check_or_raise(schema, "j", unit_jsonb("1"), 0));
	unit_ok(!error.raised, "schema: one that fits does not");
}

/* ---- properties of random schemas and inputs ---- */

static const char *const scalars[] = {"null", "true", "false", "0", "1", "2.5", "-3", "\"\"",
	"\"a\"", "\"bb\""};

static void
append_input(StringInfo out, int depth)
{
	int			n = unit_random(4);
	bool		is_object = unit_random(2);

	if (depth == 0 || unit_random(2))
	{
		appendStringInfoString(out, scalars[unit_random(lengthof(scalars))]);
		return;
	}
	appendStringInfoChar(out, is_object ? '{' : '[');
	for (int i = 0; i < n; i++)
	{
		appendStringInfo(out, i > 0 ? ", " : "");
		if (is_object)
			appendStringInfo(out, "\"%c\": ", "abcd"[i]);
		append_input(out, depth - 1);
	}
	appendStringInfoChar(out, is_object ? '}' : ']');
}

static void append_schema(StringInfo out, int depth);

/* One keyword with schemas inside. */
static void
append_applicator(StringInfo out, int depth)
{
	static const char *const one[] = {"items", "contains", "additionalProperties", "propertyNames",
		"not", "unevaluatedItems", "unevaluatedProperties"};
	static const char *const many[] = {"allOf", "anyOf", "oneOf", "prefixItems"};

	if (unit_random(3) == 0)
	{
		appendStringInfoString(out, "\"properties\": {\"a\": ");
		append_schema(out, depth - 1);
		appendStringInfoString(out, ", \"b\": ");
		append_schema(out, depth - 1);
		appendStringInfoChar(out, '}');
	}
	else if (unit_random(2))
	{
		appendStringInfo(out, "\"%s\": ", one[unit_random(lengthof(one))]);
		append_schema(out, depth - 1);
	}
	else
	{
		appendStringInfo(out, "\"%s\": [", many[unit_random(lengthof(many))]);
		append_schema(out, depth - 1);
		appendStringInfoString(out, ", ");
		append_schema(out, depth - 1);
		appendStringInfoChar(out, ']');
	}
}

static void
append_schema(StringInfo out, int depth)
{
	static const char *const leaves[] = {"true", "false", "{}", "{\"type\": \"number\"}",
		"{\"type\": [\"object\", \"string\"]}", "{\"minimum\": 1}",
		"{\"maxLength\": 1}", "{\"minItems\": 2}", "{\"required\": [\"a\"]}", "{\"const\": 0}", "{\"enum\": [null, \"a\", []]}", "{\"uniqueItems\": true}",
	"{\"multipleOf\": 2}", "{\"pattern\": \"^a\"}", "{\"maxProperties\": 1}"};

	if (depth == 0 || unit_random(3) == 0)
	{
		appendStringInfoString(out, leaves[unit_random(lengthof(leaves))]);
		return;
	}
	appendStringInfoChar(out, '{');
	append_applicator(out, depth);
	appendStringInfoChar(out, '}');
}

/* %1$s is a schema: the other one must say the same. */
typedef struct Rewrite
{
	const char *name;
	const char *schema;
	bool		negated;
	bool		same_fault;
} Rewrite;

static const Rewrite rewrites[] = {
	{"itself in allOf", "{\"allOf\": [%1$s]}", false, true},
	{"itself in anyOf", "{\"anyOf\": [%1$s, %1$s]}"},
	{"itself and false in oneOf", "{\"oneOf\": [false, %1$s]}"},
	{"not not itself", "{\"not\": {\"not\": %1$s}}"},
	{"not itself", "{\"not\": %1$s}", true},
	{"a reference to itself", "{\"$defs\": {\"s\": %1$s}, \"$ref\": \"#/$defs/s\"}", false, true},
	{"an anchor of itself", "{\"$defs\": {\"s\": {\"$anchor\": \"x\", \"allOf\": [%1$s]}}, \"$ref\": \"#x\"}", false, true},
	{"a dynamic reference to itself", "{\"$defs\": {\"s\": {\"$dynamicAnchor\": \"x\", \"allOf\": [%1$s]}}, \"$dynamicRef\": \"#x\"}", false, true},
	{"then, when all fits", "{\"if\": true, \"then\": %1$s, \"else\": {\"not\": %1$s}}"},
	{"if, then nothing, else false", "{\"if\": %1$s, \"else\": false}"},
	{"itself and what is unevaluated", "{\"allOf\": [%1$s], \"unevaluatedProperties\": true, \"unevaluatedItems\": true}", false, true},
};

static bool
rewrite_agrees(const Rewrite *rewrite, const char *schema, const char *input)
{
	const char *plain = fault_of(schema, input);
	const char *other = fault_of(psprintf(rewrite->schema, schema), input);

	if (rewrite->same_fault && schema[0] == '{' ?
		same_text(plain, other) : (plain == NULL) == ((other == NULL) != rewrite->negated))
		return true;
	unit_note("%s under %s: %s; rewritten: %s", input, schema, plain ? plain : "fits", other ?
			  other : "fits");
	return false;
}

static void
test_rewrites(void)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "round",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);

	for (int i = 0; i < lengthof(rewrites); i++)
	{
		int			wrong = 0;

		for (int round = 0; round < 400; round++)
		{
			StringInfoData schema;
			StringInfoData input;

			MemoryContextReset(context);
			initStringInfo(&schema);
			initStringInfo(&input);
			append_schema(&schema, 3);
			append_input(&input, 3);
			wrong += !rewrite_agrees(&rewrites[i], schema.data, input.data);
		}
		unit_ok(wrong == 0, "schema: 400 random schemas say the same as %s", rewrites[i].name);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}

/* Arithmetic in C says the same. */
static void
test_numbers(void)
{
	int			wrong = 0;

	for (int round = 0; round < 1000; round++)
	{
		int			least = (int) unit_random(20) - 10;
		int			most = (int) unit_random(20) - 10;
		int			divisor = 1 + unit_random(5);
		int			value = (int) unit_random(30) - 15;
		bool		exclusive = unit_random(2);
		char	   *schema = psprintf("{\"%s\": %d, \"%s\": %d, \"multipleOf\": %d}", exclusive ?
									  "exclusiveMinimum" : "minimum", least,
									  exclusive ? "exclusiveMaximum" : "maximum", most, divisor);
		bool		fits = value >= least + exclusive && value <= most - exclusive &&
			value % divisor == 0;

		wrong += (fault_of(schema, psprintf("%d", value)) == NULL) != fits;
	}
	unit_ok(wrong == 0, "schema: limits of 1000 random numbers");
}

/* Each item against each other says the same. */
static void
test_unique(void)
{
	static const char *const items[] = {"1", "1.0", "\"1\"", "null", "[1]", "[1.00]",
		"{\"a\": 1, \"b\": []}", "{\"b\": [], \"a\": 1.0}", "true", "\"true\""};
	static const int kinds[] = {0, 0, 1, 2, 3, 3, 4, 4, 5, 6};
	int			wrong = 0;

	for (int round = 0; round < 1000; round++)
	{
		int			a = unit_random(lengthof(items));
		int			b = unit_random(lengthof(items));
		int			c = unit_random(lengthof(items));
		bool		unique = kinds[a] != kinds[b] && kinds[b] != kinds[c] && kinds[a] != kinds[c];
		char	   *input = psprintf("[%s, %s, %s]", items[a], items[b], items[c]);

		wrong += (fault_of("{\"uniqueItems\": true}", input) == NULL) != unique;
	}
	unit_ok(wrong == 0, "schema: uniqueItems of 1000 random arrays");
}

/* ---- limits ---- */

/* n times before, then the middle, n times after. */
static char *
nested(int n, const char *before, const char *middle, const char *after)
{
	StringInfoData out;

	initStringInfo(&out);
	for (int i = 0; i < n; i++)
		appendStringInfoString(&out, before);
	appendStringInfoString(&out, middle);
	for (int i = 0; i < n; i++)
		appendStringInfoString(&out, after);
	return out.data;
}

static void
test_depth(void)
{
	UjobsSchema *recursive = ujobs_schema_compile(
		unit_jsonb("{\"items\": {\"$ref\": \"#\"}, \"type\": \"array\"}"));
	Jsonb	   *deep = unit_jsonb(nested(3000, "[", "", "]"));
	Jsonb	   *schema = unit_jsonb(nested(3000, "{\"items\": ", "false", "}"));
	Jsonb	   *chain = unit_jsonb(nested(3000, "{\"not\": ", "false", "}"));
	UnitError	error;

	unit_ok(ujobs_schema_check(recursive, unit_jsonb(nested(100, "[", "", "]"))) == NULL,
			"schema: a hundred levels");
	unit_stack_limit(100);
	unit_try(&error, ujobs_schema_check(recursive, deep));
	unit_ok(error.raised && strcmp(error.sqlstate, "54001") == 0,
			"schema: an input too deep for the stack is an error");
	unit_try(&error, ujobs_schema_compile(schema));
	unit_ok(error.raised && strcmp(error.sqlstate, "54001") == 0, "schema: so is a schema");
	unit_try(&error, ujobs_schema_compile(chain));
	unit_ok(error.raised && strcmp(error.sqlstate, "54001") == 0,
			"schema: and one of schemas for one value");
	unit_stack_limit(UNIT_STACK);
}

static void
test_large_counts(void)
{
	unit_ok(fault_of("{\"maxLength\": 1e30, \"minLength\": 0}", "\"abc\"") == NULL,
			"schema: a count beyond 64 bits is the greatest");
	unit_ok(fault_of("{\"minLength\": 1e30}", "\"abc\"") != NULL, "schema: also as a least one");
	unit_ok(fault_of("{\"minimum\": 1e-400}", "0") != NULL &&
			fault_of("{\"maximum\": 123456789012345678901234567890}",
					 "123456789012345678901234567890") == NULL, "schema: numbers have no limit");
	unit_ok(strlen(fault_of(psprintf("{\"const\": \"%s\"}", nested(5000, "ä", "", "")), "1")) < 300,
			"schema: a message shows the beginning of a long value");
}

void
unit_main(void)
{
	test_faults();
	test_refusals();
	test_hints();
	test_raising();
	test_rewrites();
	test_numbers();
	test_unique();
	test_depth();
	test_large_counts();
}
