/*
 * template_test.c: keys and tenants rendered from inputs, and what is refused.
 *
 * sources: src/model/template.c src/core/error.c
 */
#include "postgres.h"

#include "unit.h"
#include "model/template.h"

static const char *
rendered(const char *template, Jsonb *input)
{
	return ujobs_template_render(ujobs_template_parse(template, "idempotency_key"), input,
								 "idempotency_key", 1000);
}

static void
test_rendering(void)
{
	static const char *const cases[][2] = {
		{"", ""},
		{"fixed", "fixed"},
		{"{s}", "text"},
		{"a{s}b{s}c", "atextbtextc"},
		{"{s}{n}", "text12.50"},
		{"{n}", "12.50"},
		{"{big}", "123456789012345678901234567890"},
		{"{yes}/{no}", "true/false"},
		{"{o.p.q}", "deep"},
		{"{o.list}x", NULL},
		{"{empty}", ""},
		{"{ö}", "ü"},
		{"{a b}", "spaced"},
		{"{{", "{"},
		{"}}", "}"},
		{"{{s}}", "{s}"},
		{"{{{s}}}", "{text}"},
		{"}", "}"},
		{"a}b", "a}b"},
		{"{{{{", "{{"},
		{"{s}}}", "text}"},
	};
	Jsonb	   *input = unit_jsonb("{\"s\": \"text\", \"n\": 12.50, \"big\": 123456789012345678901234567890, \"yes\": true, \"no\": false, "
								   "\"o\": {\"p\": {\"q\": \"deep\"}, \"list\": [1]}, \"empty\": \"\", \"ö\": \"ü\", \"a b\": \"spaced\"}");

	for (int i = 0; i < lengthof(cases); i++)
	{
		UnitError	error;
		const char *text = NULL;

		unit_try(&error, text = rendered(cases[i][0], input));
		if (cases[i][1] == NULL)
			unit_ok(error.raised && strcmp(error.sqlstate, "UJ002") == 0,
					"template: no value for '%s'", cases[i][0]);
		else
			unit_ok(!error.raised && strcmp(text, cases[i][1]) == 0, "template: '%s' is '%s'",
					cases[i][0], cases[i][1]);
	}
}

/* Any text is its own rendering when its braces are doubled. */
static void
test_escapes(void)
{
	int			wrong = 0;
	Jsonb	   *input = unit_jsonb("{}");

	for (int round = 0; round < 5000; round++)
	{
		char		text[21];
		char		escaped[41];
		char	   *out = escaped;
		int			length = unit_random(20);

		for (int i = 0; i < length; i++)
		{
			text[i] = "{}a."[unit_random(4)];
			*out++ = text[i];
			if (text[i] == '{' || text[i] == '}')
				*out++ = text[i];
		}
		text[length] = *out = '\0';
		wrong += strcmp(rendered(escaped, input), text) != 0;
	}
	unit_ok(wrong == 0, "template: 5000 random texts with doubled braces render as they are");
}

static void
test_missing(void)
{
	static const char *const cases[][3] = {
		{"{a}", "{}", "The value at \"a\" is absent."},
		{"{a}", "{\"a\": null}", "The value at \"a\" is null."},
		{"{a}", "{\"a\": [1]}", "The value at \"a\" is an array."},
		{"{a}", "{\"a\": {}}", "The value at \"a\" is an object."},
		{"{a.b}", "{\"a\": \"x\"}", "The value at \"a.b\" is absent."},
		{"{a.b}", "{\"a\": null}", "The value at \"a.b\" is absent."},
		{"{a.0}", "{\"a\": [1]}", "The value at \"a.0\" is absent."},
		{"{a}", "[\"a\"]", "The value at \"a\" is absent."},
		{"{a}", "\"a\"", "The value at \"a\" is absent."},
		{"{A}", "{\"a\": 1}", "The value at \"A\" is absent."},
	};

	for (int i = 0; i < lengthof(cases); i++)
	{
		UnitError	error;
		Jsonb	   *input = unit_jsonb(cases[i][1]);

		unit_try(&error, rendered(cases[i][0], input));
		unit_ok(error.raised && strcmp(error.sqlstate, "UJ002") == 0 &&
				strcmp(error.detail, cases[i][2]) == 0,
				"template: '%s' over %s: %s", cases[i][0], cases[i][1], cases[i][2]);
	}
}

static void
test_refusals(void)
{
	static const char *const cases[][2] = {
		{"{", "In \"{\" a brace is not closed."},
		{"a{b", "In \"a{b\" a brace is not closed."},
		{"{}", "In \"{}\" a path or an element of it is empty."},
		{"{.a}", "In \"{.a}\" a path or an element of it is empty."},
		{"{a.}", "In \"{a.}\" a path or an element of it is empty."},
		{"{a..b}", "In \"{a..b}\" a path or an element of it is empty."},
	};

	for (int i = 0; i < lengthof(cases); i++)
	{
		UnitError	error;

		unit_try(&error, ujobs_template_parse(cases[i][0], "tenant"));
		unit_ok(error.raised && strcmp(error.sqlstate, "UJ003") == 0 &&
				strcmp(error.detail, cases[i][1]) == 0 &&
				strcmp(error.message, "option \"tenant\" is not a valid template") == 0,
				"template: refused is '%s'", cases[i][0]);
	}
}

static void
test_length(void)
{
	UjobsTemplate *template = ujobs_template_parse("{a}{a}", "tenant");
	Jsonb	   *input = unit_jsonb("{\"a\": \"12345\"}");
	UnitError	error;

	unit_ok(strlen(ujobs_template_render(template, input, "tenant", 10)) == 10,
			"template: as long as may be");
	unit_try(&error, ujobs_template_render(template, input, "tenant", 9));
	unit_ok(error.raised && strcmp(error.sqlstate, "UJ003") == 0 &&
			strstr(error.detail, "10 bytes; at most 9") != NULL, "template: one byte too long");
}

void
unit_main(void)
{
	test_rendering();
	test_escapes();
	test_missing();
	test_refusals();
	test_length();
}
