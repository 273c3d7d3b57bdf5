/*
 * schema_value.c: the keywords that look at one value and at no other schema.
 *
 * Its type, constants, limits of numbers, strings and sizes; and the message
 * about the first keyword that a value does not satisfy.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

#include "model/effort.h"
#include "model/schema_value.h"

#define SHOWN_BYTES 200			/* of the values that a message lists */

/* An item of an array and its index, to be sorted. */
typedef struct IndexedItem
{
	JsonbValue	value;
	int			index;
} IndexedItem;

/* ---- the message ---- */

/* As a JSON pointer. */
static void
append_place(StringInfo out, const UjobsSchemaPlace *place)
{
	if (place == NULL)
		return;
	append_place(out, place->outer);
	if (place->key == NULL)
		appendStringInfo(out, "/%d", place->index);
	else
		ujobs_schema_node_append_step(out, place->key, place->length);
}

bool
ujobs_schema_value_fail(const UjobsSchemaVisit *visit, const char *keyword, const char *rule,...)
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
	static const char *const names[] = {"null", "boolean", "object", "array", "number", "string",
		"integer"};
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
	int			allowed = v->node->types;
	int			types = types_of(v->value);

	if (allowed == 0 || (allowed & types) != 0)
		return true;
	if ((allowed & UJOBS_TYPE_INTEGER) != 0 && types == UJOBS_TYPE_NUMBER &&
		ujobs_schema_is_integer(v->value->val.numeric))
		return true;
	if (v->run->quiet > 0)
		return false;
	return ujobs_schema_value_fail(v, "type", "must be %s, not %s", types_text(allowed),
								   types == UJOBS_TYPE_NUMBER &&
								   (allowed & UJOBS_TYPE_INTEGER) != 0 ?
								   "a number with a fraction" : types_text(types));
}

/* ---- values ---- */

/* By kind first; any order will do that puts equal values together. */
static int
compare_values(const JsonbValue *a, const JsonbValue *b)
{
	int			order = types_of(a) - types_of(b);

	ujobs_effort_spend(1);
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
			return order != 0 ? order : memcmp(a->val.string.val, b->val.string.val,
											   a->val.string.len);
		case jbvNumeric:
			return DatumGetInt32(DirectFunctionCall2(numeric_cmp, NumericGetDatum(a->val.numeric),
													 NumericGetDatum(b->val.numeric)));
		default:
			ujobs_effort_spend(Min(a->val.binary.len, b->val.binary.len) / 32);
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

	if (v->node->constant == NULL || compare_values(v->node->constant, v->value) == 0)
		return true;
	if (v->run->quiet > 0)
		return false;
	initStringInfo(&out);
	append_value(&out, v->node->constant);
	cut(&out);
	return ujobs_schema_value_fail(v, "const", "must be %s", out.data);
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
		if (compare_values(lfirst(cell), v->value) == 0)
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
	return ujobs_schema_value_fail(v, "enum", "must be one of %s", out.len > 0 ?
								   out.data : "no values");
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
	return ujobs_schema_value_fail(v, keyword, "must be %s%s %s", most > 0 ? ">" : "<",
								   least * most == 0 ? "=" : "", number_text(limit));
}

static bool
check_multiple(const UjobsSchemaVisit *v)
{
	Datum		rest;
	Datum		zero;

	if (v->node->multiple_of == NULL)
		return true;
	/* A division of n digits by m; a number of few bytes may have many. */
	ujobs_effort_spend((int64) strlen(number_text(v->value->val.numeric)) *
					   VARSIZE_ANY(v->node->multiple_of) / 256);
	rest = DirectFunctionCall2(numeric_mod, NumericGetDatum(v->value->val.numeric),
							   NumericGetDatum(v->node->multiple_of));
	zero = DirectFunctionCall1(int4_numeric, Int32GetDatum(0));
	if (DatumGetBool(DirectFunctionCall2(numeric_eq, rest, zero)))
		return true;
	return ujobs_schema_value_fail(v, "multipleOf", "must be a multiple of %s",
								   number_text(v->node->multiple_of));
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
			return ujobs_schema_value_fail(v, "maxLength",
										   "must have at most " INT64_FORMAT " character%s, has %d",
										   n->max_length, ujobs_schema_plural(n->max_length),
										   length);
		if (length < n->min_length)
			return ujobs_schema_value_fail(
				v, "minLength", "must have at least " INT64_FORMAT " character%s, has %d",
				n->min_length, ujobs_schema_plural(n->min_length), length);
	}
	if (n->pattern != NULL && !ujobs_pattern_matches(n->pattern, text, bytes))
		return ujobs_schema_value_fail(v, "pattern", "must match \"%s\"",
									   ujobs_pattern_source(n->pattern));
	return true;
}

/* ---- objects ---- */

/* A count of items or members; a limit of -1 is none. */
static bool
check_size(const UjobsSchemaVisit *v, const char *unit, const char *const keyword[2], int64 most,
		   int64 least)
{
	int			size = JsonContainerSize(v->value->val.binary.data);

	if (most >= 0 && size > most)
		return ujobs_schema_value_fail(v, keyword[0],
									   "must have at most " INT64_FORMAT " %s%s, has %d",
									   most, unit, ujobs_schema_plural(most), size);
	if (size < least)
		return ujobs_schema_value_fail(v, keyword[1],
									   "must have at least " INT64_FORMAT " %s%s, has %d",
									   least, unit, ujobs_schema_plural(least), size);
	return true;
}

bool
ujobs_schema_value_has_member(const UjobsSchemaVisit *v, const UjobsSchemaName *name)
{
	JsonbValue	value;

	Assert(ujobs_schema_object(v->value) != NULL);
	return getKeyJsonValueFromContainer(v->value->val.binary.data, name->text, name->length,
										&value) != NULL;
}

static bool
check_required(const UjobsSchemaVisit *v)
{
	for (int i = 0; i < v->node->required.n; i++)
	{
		const UjobsSchemaName *name = &v->node->required.name[i];

		if (!ujobs_schema_value_has_member(v, name))
			return ujobs_schema_value_fail(v, "required", "must have \"%.*s\"", name->length,
										   name->text);
	}
	return true;
}

static bool
check_object(const UjobsSchemaVisit *v)
{
	static const char *const keyword[2] = {"maxProperties", "minProperties"};

	return check_size(v, "member", keyword, v->node->max_properties, v->node->min_properties) &&
		check_required(v);
}

/* ---- arrays ---- */

static bool
check_array(const UjobsSchemaVisit *v)
{
	static const char *const keyword[2] = {"maxItems", "minItems"};

	return check_size(v, "item", keyword, v->node->max_items, v->node->min_items);
}

static int
compare_items(const void *a, const void *b)
{
	const IndexedItem *x = a;
	const IndexedItem *y = b;
	int			order = compare_values(&x->value, &y->value);

	return order != 0 ? order : x->index - y->index;
}

bool
ujobs_schema_value_check_unique(const UjobsSchemaVisit *v)
{
	int			n = JsonContainerSize(v->value->val.binary.data);
	JsonbIterator *iterator;
	IndexedItem *items;
	bool		fits = true;

	Assert(ujobs_schema_array(v->value) != NULL);
	if (!v->node->unique_items || n < 2)
		return true;
	iterator = JsonbIteratorInit(v->value->val.binary.data);
	items = MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(IndexedItem));
	for (int i = 0; i < n && ujobs_schema_next_item(&iterator, &items[i].value); i++)
		items[i].index = i;
	qsort(items, n, sizeof(IndexedItem), compare_items);
	for (int i = 1; i < n && fits; i++)
	{
		if (compare_values(&items[i - 1].value, &items[i].value) == 0)
			fits = ujobs_schema_value_fail(v, "uniqueItems",
										   "must have no two equal items, items %d and %d are",
										   items[i - 1].index, items[i].index);
	}
	pfree(items);
	return fits;
}

/* ---- all of them ---- */

bool
ujobs_schema_value_check(const UjobsSchemaVisit *v)
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
			return check_object(v);
		case UJOBS_TYPE_ARRAY:
			return check_array(v);
		default:
			return true;
	}
}
