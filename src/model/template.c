/*
 * template.c: keys and tenants from the input.
 *
 * A template is a list of parts, each literal text or a path into the input.
 * It is parsed once, when its definition is loaded; rendering walks the
 * input's jsonb without making text of the whole.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "nodes/pg_list.h"
#include "utils/builtins.h"
#include "utils/numeric.h"

#include "core/error.h"
#include "model/template.h"

typedef struct Part
{
	char	   *text;			/* the literal, or the path as written */
	int			depth;			/* elements of the path; 0 = literal */
	char	  **path;
} Part;

struct UjobsTemplate
{
	int			n;
	Part	   *part;
};

static void
template_error(const char *template, const char *option, const char *reason)
{
	ereport(ERROR,
			(ujobs_errcode(INVALID_OPTION),
			 errmsg("option \"%s\" is not a valid template", option),
			 errdetail("In \"%s\" %s.", template, reason),
			 errhint("Write paths into the input in braces, such as 'onboard:{orgId}' or '{a.b.c}', and '{{' for a literal brace.")));
}

/* Splits "a.b.c" at its dots. */
static void
path_split(Part *part, const char *template, const char *option)
{
	char	   *element = pstrdup(part->text);

	part->depth = 1;
	for (const char *p = element; *p; p++)
		part->depth += (*p == '.');
	part->path = palloc(part->depth * sizeof(char *));
	for (int i = 0; i < part->depth; i++)
	{
		char	   *dot = strchr(element, '.');

		if (dot != NULL)
			*dot = '\0';
		if (*element == '\0')
			template_error(template, option, "a path or an element of it is empty");
		part->path[i] = element;
		element = dot + 1;
	}
}

static void
add_literal(UjobsTemplate *t, StringInfo literal)
{
	if (literal->len == 0)
		return;
	t->part[t->n].text = pstrdup(literal->data);
	t->part[t->n].depth = 0;
	t->n++;
	resetStringInfo(literal);
}

UjobsTemplate *
ujobs_template_parse(const char *text, const char *option)
{
	UjobsTemplate *t = palloc0(sizeof(UjobsTemplate));
	StringInfoData literal;
	int			most = 1;

	for (const char *p = text; *p; p++)
		most += (*p == '{') ? 2 : 0;
	t->part = palloc0(most * sizeof(Part));
	initStringInfo(&literal);
	for (const char *p = text; *p; p++)
	{
		const char *end;

		if (*p != '{' || p[1] == '{')
		{
			if ((*p == '{' || *p == '}') && p[1] == *p)
				p++;
			appendStringInfoChar(&literal, *p);
			continue;
		}
		end = strchr(p, '}');
		if (end == NULL)
			template_error(text, option, "a brace is not closed");
		add_literal(t, &literal);
		t->part[t->n].text = pnstrdup(p + 1, end - p - 1);
		path_split(&t->part[t->n], text, option);
		t->n++;
		p = end;
	}
	add_literal(t, &literal);
	pfree(literal.data);
	return t;
}

/* The value at the path, or NULL when it is absent. */
static JsonbValue *
path_find(const Part *part, Jsonb *input, JsonbValue *value)
{
	JsonbContainer *container = &input->root;

	for (int i = 0; i < part->depth; i++)
	{
		if (!JsonContainerIsObject(container))
			return NULL;
		if (getKeyJsonValueFromContainer(container, part->path[i], strlen(part->path[i]),
										 value) == NULL)
			return NULL;
		if (i == part->depth - 1)
			break;
		if (value->type != jbvBinary)
			return NULL;
		container = value->val.binary.data;
	}
	return value;
}

static void
path_missing(const Part *part, const JsonbValue *value, const char *option)
{
	const char *what = "is absent";

	if (value != NULL && value->type == jbvNull)
		what = "is null";
	else if (value != NULL)
		what = JsonContainerIsArray(value->val.binary.data) ? "is an array" : "is an object";
	ereport(ERROR,
			(ujobs_errcode(KEY_PATH_MISSING),
			 errmsg("the input has no usable value at \"%s\" for the template of \"%s\"",
					part->text, option), errdetail("The value at \"%s\" %s.", part->text, what),
			 errhint("Put a string, number or boolean at that path of the input, or change the template.")));
}

static void
append_path(StringInfo out, const Part *part, Jsonb *input, const char *option)
{
	JsonbValue	buffer;
	JsonbValue *value = path_find(part, input, &buffer);

	if (value == NULL)
		path_missing(part, NULL, option);
	switch (value->type)
	{
		case jbvString:
			appendBinaryStringInfo(out, value->val.string.val, value->val.string.len);
			break;
		case jbvNumeric:
			appendStringInfoString(out, DatumGetCString(DirectFunctionCall1(numeric_out,
																			NumericGetDatum(value->val.numeric))));
			break;
		case jbvBool:
			appendStringInfoString(out, value->val.boolean ? "true" : "false");
			break;
		default:
			path_missing(part, value, option);
	}
}

char *
ujobs_template_render(const UjobsTemplate *t, Jsonb *input, const char *option, int max_bytes)
{
	StringInfoData out;

	initStringInfo(&out);
	for (int i = 0; i < t->n; i++)
	{
		if (t->part[i].depth == 0)
			appendStringInfoString(&out, t->part[i].text);
		else
			append_path(&out, &t->part[i], input, option);
	}
	if (out.len > max_bytes)
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("option \"%s\" is too long", option),
				 errdetail("Rendered over the input it has %d bytes; at most %d are allowed.",
						   out.len, max_bytes),
				 errhint("Build it from shorter values, such as an id or a digest.")));
	return out.data;
}
