/*
 * schema_check.c: whether an input fits.
 *
 * A visit is one value under one schema: first the keywords that look at the
 * value, then those that look at its members, then the schemas applied to the
 * same value, last what those left unevaluated.  The first thing that does
 * not fit ends it; its place and rule are kept, unless not to fit is a normal
 * answer (below not, anyOf, oneOf, if and contains).
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

#include "core/error.h"
#include "model/schema_node.h"

#define SHOWN_BYTES 200			/* of the values that a message lists */

/* ---- what does not fit ---- */

static void
append_place(StringInfo out, const UjobsSchemaPlace *place)
{
	if (place == NULL)
		return;
	append_place(out, place->outer);
	appendStringInfoChar(out, '/');
	if (place->key == NULL)
		appendStringInfo(out, "%d", place->index);
	for (int i = 0; i < place->length; i++)
	{
		if (place->key[i] == '~' || place->key[i] == '/')
			appendStringInfoString(out, place->key[i] == '~' ? "~0" : "~1");
		else
			appendStringInfoChar(out, place->key[i]);
	}
}

bool
ujobs_schema_fail(const UjobsSchemaVisit *visit, const char *keyword, const char *rule,...)
{
	StringInfoData out;
	va_list		args;
	int			needed;

	if (visit->run->quiet > 0 || visit->run->fault != NULL)
		return false;
	initStringInfo(&out);
	appendStringInfoString(&out, visit->place == NULL ? "at the root" : "at \"");
	append_place(&out, visit->place);
	appendStringInfoString(&out, visit->place == NULL ? ": " : "\": ");
	if (visit->place != NULL && visit->place->is_name)
		appendStringInfoString(&out, "its name ");
	do
	{
		va_start(args, rule);
		needed = appendStringInfoVA(&out, rule, args);
		va_end(args);
		if (needed > 0)
			enlargeStringInfo(&out, needed);
	} while (needed > 0);
	appendStringInfo(&out, " (%s)", keyword);
	visit->run->fault = out.data;
	return false;
}

/* ---- types ---- */

static int
types_of(const JsonbValue *value)
{
	switch (value->type)
	{
		case jbvNull:
			return UJOBS_TYPE_NULL;
		case jbvBool:
			return UJOBS_TYPE_BOOLEAN;
		case jbvString:
			return UJOBS_TYPE_STRING;
		case jbvNumeric:
			return UJOBS_TYPE_NUMBER;
		default:
			return ujobs_schema_object(value) != NULL ? UJOBS_TYPE_OBJECT : UJOBS_TYPE_ARRAY;
	}
}

static const char *
types_text(int types)
{
	static const char *const names[] = {"null", "boolean", "object", "array", "number", "string", "integer"};
	StringInfoData out;

	initStringInfo(&out);
	for (int i = 0; i < lengthof(names); i++)
	{
		if ((types & (1 << i)) == 0)
			continue;
		types &= ~(1 << i);
		appendStringInfo(&out, "%s%s", out.len == 0 ? "" : types == 0 ? " or " : ", ", names[i]);
	}
	return out.data;
}

static bool
check_type(const UjobsSchemaVisit *v)
{
	int			wanted = v->node->types;
	int			types = types_of(v->value);

	if (wanted == 0 || (wanted & types) != 0)
		return true;
	if ((wanted & UJOBS_TYPE_INTEGER) != 0 && types == UJOBS_TYPE_NUMBER &&
		ujobs_schema_is_integer(v->value->val.numeric))
		return true;
	if (v->run->quiet > 0)
		return false;
	return ujobs_schema_fail(v, "type", "must be %s, not %s", types_text(wanted),
							 types == UJOBS_TYPE_NUMBER && (wanted & UJOBS_TYPE_INTEGER) != 0 ?
							 "a number with a fraction" : types_text(types));
}

/* ---- values ---- */

/* By kind first; any order will do that puts equal values together. */
int
ujobs_schema_compare(const JsonbValue *a, const JsonbValue *b)
{
	int			order = types_of(a) - types_of(b);

	if (order != 0)
		return order;
	switch (a->type)
	{
		case jbvNull:
			return 0;
		case jbvBool:
			return a->val.boolean - b->val.boolean;
		case jbvString:
			order = a->val.string.len - b->val.string.len;
			return order != 0 ? order : memcmp(a->val.string.val, b->val.string.val, a->val.string.len);
		case jbvNumeric:
			return DatumGetInt32(DirectFunctionCall2(numeric_cmp, NumericGetDatum(a->val.numeric),
													 NumericGetDatum(b->val.numeric)));
		default:
			return compareJsonbContainers(a->val.binary.data, b->val.binary.data);
	}
}

static void
append_value(StringInfo out, const JsonbValue *value)
{
	Jsonb	   *jsonb = JsonbValueToJsonb(unconstify(JsonbValue *, value));

	appendStringInfoString(out, JsonbToCString(NULL, &jsonb->root, VARSIZE(jsonb)));
}

static void
cut(StringInfo out)
{
	if (out->len <= SHOWN_BYTES)
		return;
	out->len = pg_mbcliplen(out->data, out->len, SHOWN_BYTES);
	out->data[out->len] = '\0';
	appendStringInfoString(out, "...");
}

static bool
check_constant(const UjobsSchemaVisit *v)
{
	StringInfoData out;

	if (v->node->constant == NULL || ujobs_schema_compare(v->node->constant, v->value) == 0)
		return true;
	if (v->run->quiet > 0)
		return false;
	initStringInfo(&out);
	append_value(&out, v->node->constant);
	cut(&out);
	return ujobs_schema_fail(v, "const", "must be %s", out.data);
}

static bool
check_values(const UjobsSchemaVisit *v)
{
	StringInfoData out;
	ListCell   *cell;

	if (!v->node->has_values)
		return true;
	foreach(cell, v->node->values)
	{
		if (ujobs_schema_compare(lfirst(cell), v->value) == 0)
			return true;
	}
	if (v->run->quiet > 0)
		return false;
	initStringInfo(&out);
	foreach(cell, v->node->values)
	{
		if (out.len > SHOWN_BYTES)
			break;
		appendStringInfoString(&out, out.len > 0 ? ", " : "");
		append_value(&out, lfirst(cell));
	}
	cut(&out);
	return ujobs_schema_fail(v, "enum", "must be one of %s", out.len > 0 ? out.data : "no values");
}

/* ---- numbers and strings ---- */

static char *
number_text(Numeric number)
{
	return DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(number)));
}

/* Comparing the value with the limit must give an order in [least, most]. */
static bool
check_limit(const UjobsSchemaVisit *v, const char *keyword, Numeric limit, int least, int most)
{
	int			order;

	if (limit == NULL)
		return true;
	order = DatumGetInt32(DirectFunctionCall2(numeric_cmp, NumericGetDatum(v->value->val.numeric),
											  NumericGetDatum(limit)));
	if (order >= least && order <= most)
		return true;
	if (v->run->quiet > 0)
		return false;
	return ujobs_schema_fail(v, keyword, "must be %s%s %s", most > 0 ? ">" : "<",
							 least * most == 0 ? "=" : "", number_text(limit));
}

static bool
check_multiple(const UjobsSchemaVisit *v)
{
	Datum		rest;
	Datum		zero;

	if (v->node->multiple_of == NULL)
		return true;
	rest = DirectFunctionCall2(numeric_mod, NumericGetDatum(v->value->val.numeric),
							   NumericGetDatum(v->node->multiple_of));
	zero = DirectFunctionCall1(int4_numeric, Int32GetDatum(0));
	if (DatumGetBool(DirectFunctionCall2(numeric_eq, rest, zero)))
		return true;
	return ujobs_schema_fail(v, "multipleOf", "must be a multiple of %s", number_text(v->node->multiple_of));
}

static bool
check_number(const UjobsSchemaVisit *v)
{
	const UjobsSchemaNode *n = v->node;

	return check_limit(v, "minimum", n->minimum, 0, 1) &&
		check_limit(v, "exclusiveMinimum", n->exclusive_minimum, 1, 1) &&
		check_limit(v, "maximum", n->maximum, -1, 0) &&
		check_limit(v, "exclusiveMaximum", n->exclusive_maximum, -1, -1) &&
		check_multiple(v);
}

static bool
check_string(const UjobsSchemaVisit *v)
{
	const UjobsSchemaNode *n = v->node;
	const char *text = v->value->val.string.val;
	int			bytes = v->value->val.string.len;
	int			length;

	if (n->max_length >= 0 || n->min_length > 0)
	{
		length = pg_mbstrlen_with_len(text, bytes);
		if (n->max_length >= 0 && length > n->max_length)
			return ujobs_schema_fail(v, "maxLength", "must have at most " INT64_FORMAT " character%s, has %d",
									 n->max_length, ujobs_schema_plural(n->max_length), length);
		if (length < n->min_length)
			return ujobs_schema_fail(v, "minLength", "must have at least " INT64_FORMAT " character%s, has %d",
									 n->min_length, ujobs_schema_plural(n->min_length), length);
	}
	if (n->pattern != NULL && !ujobs_pattern_matches(n->pattern, text, bytes))
		return ujobs_schema_fail(v, "pattern", "must match \"%s\"", ujobs_pattern_source(n->pattern));
	return true;
}

static bool
check_value(const UjobsSchemaVisit *v)
{
	if (!check_type(v) || !check_constant(v) || !check_values(v))
		return false;
	switch (types_of(v->value))
	{
		case UJOBS_TYPE_NUMBER:
			return check_number(v);
		case UJOBS_TYPE_STRING:
			return check_string(v);
		case UJOBS_TYPE_OBJECT:
			return ujobs_schema_visit_object(v);
		case UJOBS_TYPE_ARRAY:
			return ujobs_schema_visit_array(v);
		default:
			return true;
	}
}

/* ---- schemas for the same value ---- */

static int
size_of(const JsonbValue *value)
{
	return value->type == jbvBinary ? JsonContainerSize(value->val.binary.data) : 0;
}

bool
ujobs_schema_visit_same(const UjobsSchemaVisit *visit, const UjobsSchemaNode *node)
{
	UjobsSchemaVisit inner = *visit;
	int			n = size_of(visit->value);
	bool		fits;

	inner.node = node;
	if (visit->seen != NULL)
		inner.seen = palloc0(Max(n, 1) * sizeof(bool));
	fits = ujobs_schema_visit(&inner);
	if (visit->seen != NULL)
	{
		for (int i = 0; fits && i < n; i++)
			visit->seen[i] |= inner.seen[i];
		pfree(inner.seen);
	}
	return fits;
}

static bool
try_same(const UjobsSchemaVisit *v, const UjobsSchemaNode *node)
{
	bool		fits;

	v->run->quiet++;
	fits = ujobs_schema_visit_same(v, node);
	v->run->quiet--;
	return fits;
}

static bool
apply_all(const UjobsSchemaVisit *v)
{
	for (int i = 0; i < v->node->all_of.n; i++)
	{
		if (!ujobs_schema_visit_same(v, v->node->all_of.node[i]))
			return false;
	}
	return true;
}

static bool
apply_any(const UjobsSchemaVisit *v)
{
	const UjobsSchemaNodes *any = &v->node->any_of;
	bool		fits = any->n == 0;

	/* All are asked when it matters what they evaluate. */
	for (int i = 0; i < any->n && (!fits || v->seen != NULL); i++)
		fits |= try_same(v, any->node[i]);
	return fits || ujobs_schema_fail(v, "anyOf", "must fit at least one of %d schemas, fits none", any->n);
}

static bool
apply_one(const UjobsSchemaVisit *v)
{
	const UjobsSchemaNodes *one = &v->node->one_of;
	int			fits = -1;

	for (int i = 0; i < one->n; i++)
	{
		if (!try_same(v, one->node[i]))
			continue;
		if (fits >= 0)
			return ujobs_schema_fail(v, "oneOf", "must fit exactly one of %d schemas, fits numbers %d and %d",
									 one->n, fits + 1, i + 1);
		fits = i;
	}
	return one->n == 0 || fits >= 0 ||
		ujobs_schema_fail(v, "oneOf", "must fit exactly one of %d schemas, fits none", one->n);
}

static bool
apply_negated(const UjobsSchemaVisit *v)
{
	UjobsSchemaVisit blind = *v;

	if (v->node->negated == NULL)
		return true;
	blind.seen = NULL;			/* what does not fit evaluates nothing */
	return !try_same(&blind, v->node->negated) ||
		ujobs_schema_fail(v, "not", "must not fit the schema of \"not\", but does");
}

static bool
apply_condition(const UjobsSchemaVisit *v)
{
	const UjobsSchemaNode *n = v->node;
	const UjobsSchemaNode *next;

	if (n->condition == NULL)
		return true;
	next = try_same(v, n->condition) ? n->consequence : n->alternative;
	return next == NULL || ujobs_schema_visit_same(v, next);
}

/* ---- references ---- */

/* The outermost resource in scope that has the anchor decides. */
static const UjobsSchemaNode *
dynamic_target(const UjobsSchemaVisit *v)
{
	const UjobsSchemaNode *target = v->node->dynamic_reference;
	ListCell   *cell;

	if (v->node->dynamic_name == NULL)
		return target;
	for (const UjobsSchemaScope *scope = v->scope; scope != NULL; scope = scope->outer)
	{
		foreach(cell, scope->resource->dynamic)
		{
			const UjobsSchemaAnchor *anchor = lfirst(cell);

			if (strcmp(anchor->name, v->node->dynamic_name) == 0)
				target = anchor->node;
		}
	}
	return target;
}

static bool
apply_references(const UjobsSchemaVisit *v)
{
	if (v->node->reference != NULL && !ujobs_schema_visit_same(v, v->node->reference))
		return false;
	return v->node->dynamic_reference == NULL || ujobs_schema_visit_same(v, dynamic_target(v));
}

/* ---- the visit ---- */

static bool
apply_unevaluated(const UjobsSchemaVisit *v)
{
	if (ujobs_schema_object(v->value) != NULL)
		return ujobs_schema_visit_unevaluated_members(v);
	return ujobs_schema_array(v->value) == NULL || ujobs_schema_visit_unevaluated_items(v);
}

static bool
visit_boolean(const UjobsSchemaVisit *v)
{
	return v->node->verdict || ujobs_schema_fail(v, v->node->keyword, "is not allowed");
}

bool
ujobs_schema_visit(const UjobsSchemaVisit *given)
{
	UjobsSchemaVisit v = *given;
	UjobsSchemaScope scope = {given->scope, given->node->resource};
	bool		fits;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (v.node->is_boolean)
		return visit_boolean(&v);
	if (v.scope == NULL || v.scope->resource != scope.resource)
		v.scope = &scope;
	if (v.seen == NULL && v.value->type == jbvBinary &&
		(v.node->unevaluated_items != NULL || v.node->unevaluated_properties != NULL))
		v.seen = palloc0(Max(size_of(v.value), 1) * sizeof(bool));
	fits = check_value(&v) && apply_references(&v) && apply_all(&v) && apply_any(&v) && apply_one(&v) &&
		apply_negated(&v) && apply_condition(&v) && apply_unevaluated(&v);
	if (v.seen != given->seen)
		pfree(v.seen);
	return fits;
}

bool
ujobs_schema_visit_inner(const UjobsSchemaVisit *visit, const UjobsSchemaNode *node,
						 const JsonbValue *value, const UjobsSchemaPlace *place)
{
	UjobsSchemaVisit inner = *visit;

	inner.node = node;
	inner.value = value;
	inner.place = place;
	inner.seen = NULL;
	return ujobs_schema_visit(&inner);
}

bool
ujobs_schema_try_inner(const UjobsSchemaVisit *visit, const UjobsSchemaNode *node,
					   const JsonbValue *value, const UjobsSchemaPlace *place)
{
	bool		fits;

	visit->run->quiet++;
	fits = ujobs_schema_visit_inner(visit, node, value, place);
	visit->run->quiet--;
	return fits;
}

char *
ujobs_schema_check(const UjobsSchema *schema, Jsonb *input)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext context = AllocSetContextCreate(caller, "ujobs schema check", ALLOCSET_DEFAULT_SIZES);
	UjobsSchemaRun run = {0};
	JsonbValue	value;
	UjobsSchemaVisit visit = {.run = &run, .node = schema->root, .value = &value};
	char	   *fault = NULL;

	MemoryContextSwitchTo(context);
	ujobs_schema_root_value(input, &value);
	if (!ujobs_schema_visit(&visit))
		fault = MemoryContextStrdup(caller, run.fault);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return fault;
}

void
ujobs_schema_require(const UjobsSchema *schema, const char *job, Jsonb *input, int number)
{
	char	   *fault = ujobs_schema_check(schema, input);

	if (fault == NULL)
		return;
	ereport(ERROR,
			(errcode(UJOBS_ERRCODE(INPUT_INVALID)),
			 errmsg("the input does not fit the schema of job \"%s\"", job),
			 number > 0 ? errdetail("input %d of the call, %s", number, fault)
			 : errdetail_internal("%s", fault),
			 errhint("Correct the input; ujobs.describe_job shows the schema.")));
}
