/*
 * schema_compile.c: a JSON schema becomes nodes.
 *
 * The document is walked once from its root; every place where the standard
 * has a schema becomes a node, filled by one reader for each keyword of draft
 * 2020-12.  A typing error that is silently taken for an annotation would let
 * wrong inputs pass, so a keyword that is not in the list is refused, unless
 * its name begins with "x-".  Annotations are read too, to find values of the
 * wrong kind.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/varlena.h"

#include "core/error.h"
#include "core/guc.h"
#include "model/schema_compile.h"
#include "model/schema_node.h"
#include "model/schema_reference.h"

/* What a reader gets: one member of a schema object. */
typedef struct Slot
{
	UjobsSchemaReader *reader;
	UjobsSchemaNode *node;
	const char *keyword;
	void	   *field;			/* of the node, where the value goes */
} Slot;

typedef struct Keyword
{
	const char *name;
	void		(*read) (const Slot *slot, const JsonbValue *value);
	int			field;			/* its offset in a node; 0 = none */
	const char *advice;			/* of one that is not supported */
} Keyword;

static UjobsSchemaNode *read_schema_at(UjobsSchemaReader *reader, const UjobsSchemaNode *outer,
									   const char *keyword,
									   const UjobsSchemaName *step, const JsonbValue *value);

static void
refuse(const Slot *slot, const char *reason, const char *hint)
{
	ujobs_schema_node_refuse(slot->node, slot->keyword, reason, hint);
}

/* ---- containers ---- */

static JsonbContainer *
need_array(const Slot *slot, const JsonbValue *value)
{
	JsonbContainer *array = ujobs_schema_array(value);

	if (array == NULL)
		refuse(slot, "is not an array", "Give it an array.");
	return array;
}

static JsonbContainer *
need_object(const Slot *slot, const JsonbValue *value)
{
	JsonbContainer *object = ujobs_schema_object(value);

	if (object == NULL)
		refuse(slot, "is not an object", "Give it an object.");
	return object;
}

/* ---- annotations, and keywords read before ---- */

static void
read_any(const Slot *slot, const JsonbValue *value)
{
}

static void
read_string(const Slot *slot, const JsonbValue *value)
{
	if (value->type != jbvString)
		refuse(slot, "is not a string", "Give it a string.");
}

static void
read_boolean(const Slot *slot, const JsonbValue *value)
{
	if (value->type != jbvBool)
		refuse(slot, "is not a boolean", "Give it true or false.");
	if (slot->field != NULL)
		*(bool *) slot->field = value->val.boolean;
}

static void
read_array(const Slot *slot, const JsonbValue *value)
{
	(void) need_array(slot, value);
}

static void
read_unsupported(const Slot *slot, const JsonbValue *value)
{
}

/* ---- numbers ---- */

static bool
is_positive(Numeric number)
{
	Datum		zero = DirectFunctionCall1(int4_numeric, Int32GetDatum(0));

	return DatumGetBool(DirectFunctionCall2(numeric_gt, NumericGetDatum(number), zero));
}

static void
read_number(const Slot *slot, const JsonbValue *value)
{
	if (value->type != jbvNumeric)
		refuse(slot, "is not a number", "Give it a number.");
	*(Numeric *) slot->field = value->val.numeric;
}

static void
read_divisor(const Slot *slot, const JsonbValue *value)
{
	read_number(slot, value);
	if (!is_positive(value->val.numeric))
		refuse(slot, "is not greater than 0", "Give it a number greater than 0.");
}

/* A count beyond 64 bits is as good as the greatest. */
static void
read_count(const Slot *slot, const JsonbValue *value)
{
	Datum		most = DirectFunctionCall1(int8_numeric, Int64GetDatum(PG_INT64_MAX));
	Datum		zero = DirectFunctionCall1(int4_numeric, Int32GetDatum(0));
	Datum		number;

	if (value->type != jbvNumeric || !ujobs_schema_is_integer(value->val.numeric) ||
		DatumGetBool(DirectFunctionCall2(numeric_lt, NumericGetDatum(value->val.numeric), zero)))
		refuse(slot, "is not a whole number of 0 or more", "Give it such a number.");
	number = DirectFunctionCall2(numeric_smaller, NumericGetDatum(value->val.numeric), most);
	*(int64 *) slot->field = DatumGetInt64(DirectFunctionCall1(numeric_int8, number));
}

/* ---- types and values ---- */

static int
type_bit(const Slot *slot, const JsonbValue *value)
{
	static const struct
	{
		const char *name;
		int			bit;
	}			types[] =
	{
		{"null", UJOBS_TYPE_NULL}, {"boolean", UJOBS_TYPE_BOOLEAN}, {"object", UJOBS_TYPE_OBJECT},
		{"array", UJOBS_TYPE_ARRAY}, {"number", UJOBS_TYPE_NUMBER}, {"string", UJOBS_TYPE_STRING},
		{"integer", UJOBS_TYPE_INTEGER}
	};

	for (int i = 0; value->type == jbvString && i < lengthof(types); i++)
	{
		if (strlen(types[i].name) == value->val.string.len &&
			memcmp(types[i].name, value->val.string.val, value->val.string.len) == 0)
			return types[i].bit;
	}
	refuse(slot, "names no type",
		   "The types are null, boolean, object, array, number, string and integer.");
	return 0;
}

static void
read_type(const Slot *slot, const JsonbValue *value)
{
	JsonbContainer *array = ujobs_schema_array(value);
	JsonbIterator *iterator;
	JsonbValue	item;

	if (array == NULL)
	{
		slot->node->types = type_bit(slot, value);
		return;
	}
	iterator = JsonbIteratorInit(array);
	while (ujobs_schema_next_item(&iterator, &item))
		slot->node->types |= type_bit(slot, &item);
	if (slot->node->types == 0)
		refuse(slot, "is an empty array", "Name at least one type.");
}

static void
read_constant(const Slot *slot, const JsonbValue *value)
{
	slot->node->constant = value;
}

static void
read_values(const Slot *slot, const JsonbValue *value)
{
	JsonbIterator *iterator = JsonbIteratorInit(need_array(slot, value));
	JsonbValue	item;

	slot->node->has_values = true;
	while (ujobs_schema_next_item(&iterator, &item))
	{
		JsonbValue *kept = palloc(sizeof(JsonbValue));

		*kept = item;
		slot->node->values = lappend(slot->node->values, kept);
	}
}

static UjobsPattern *
compile_pattern(const Slot *slot, const char *source, int length)
{
	char	   *fault = NULL;
	UjobsPattern *pattern = ujobs_pattern_compile(source, length, &fault);

	if (pattern == NULL)
		refuse(slot, psprintf("holds the pattern \"%.*s\", which %s", length, source, fault),
			   "Write the pattern so that ECMA 262 and PostgreSQL's engine agree on it; see docs/input-schema.md.");
	return pattern;
}

static void
read_pattern(const Slot *slot, const JsonbValue *value)
{
	read_string(slot, value);
	slot->node->pattern = compile_pattern(slot, value->val.string.val, value->val.string.len);
}

/* ---- names ---- */

static void
fill_names(const Slot *slot, const JsonbValue *value, UjobsSchemaNames *names)
{
	JsonbContainer *array = need_array(slot, value);
	JsonbIterator *iterator = JsonbIteratorInit(array);
	JsonbValue	item;

	names->name = palloc(Max(JsonContainerSize(array), 1) * sizeof(UjobsSchemaName));
	while (ujobs_schema_next_item(&iterator, &item))
	{
		if (item.type != jbvString)
			refuse(slot, "holds a name that is not a string", "Give it an array of strings.");
		names->name[names->n].text = item.val.string.val;
		names->name[names->n++].length = item.val.string.len;
	}
}

static void
read_names(const Slot *slot, const JsonbValue *value)
{
	fill_names(slot, value, slot->field);
}

/* ---- schemas ---- */

static void
read_schema(const Slot *slot, const JsonbValue *value)
{
	UjobsSchemaNode *node;

	if (ujobs_schema_array(value) != NULL && strcmp(slot->keyword, "items") == 0)
		refuse(slot, "is an array, as older drafts have it",
			   "Use prefixItems for the first items.");
	node = read_schema_at(slot->reader, slot->node, slot->keyword, NULL, value);
	if (slot->field != NULL)
		*(UjobsSchemaNode **) slot->field = node;
}

static void
read_schemas(const Slot *slot, const JsonbValue *value)
{
	UjobsSchemaNodes *nodes = slot->field;
	JsonbContainer *array = need_array(slot, value);
	JsonbIterator *iterator = JsonbIteratorInit(array);
	JsonbValue	item;

	if (JsonContainerSize(array) == 0)
		refuse(slot, "is an empty array", "Give it at least one schema, or leave it out.");
	nodes->node = palloc(JsonContainerSize(array) * sizeof(UjobsSchemaNode *));
	while (ujobs_schema_next_item(&iterator, &item))
	{
		char		number[12];
		UjobsSchemaName step = {number, snprintf(number, sizeof(number), "%d", nodes->n)};

		nodes->node[nodes->n++] = read_schema_at(slot->reader, slot->node, slot->keyword, &step,
												 &item);
	}
}

typedef enum MemberKind
{
	MEMBER_SCHEMA,
	MEMBER_PATTERN,				/* the name is a pattern, the value a schema */
	MEMBER_NAMES,
	MEMBER_EITHER				/* an array of names, or a schema */
} MemberKind;

static void
read_members(const Slot *slot, const JsonbValue *value, MemberKind kind)
{
	UjobsSchemaMembers *members = slot->field;
	JsonbContainer *object = need_object(slot, value);
	JsonbIterator *iterator = JsonbIteratorInit(object);
	UjobsSchemaMembers unused = {0};
	UjobsSchemaName name = {0};
	JsonbValue	item;

	if (members == NULL)
		members = &unused;
	members->member = palloc0(Max(JsonContainerSize(object), 1) * sizeof(UjobsSchemaMember));
	while (ujobs_schema_next_member(&iterator, &name, &item))
	{
		UjobsSchemaMember *member = &members->member[members->n++];

		member->name = name;
		if (kind == MEMBER_PATTERN)
			member->pattern = compile_pattern(slot, name.text, name.length);
		if (kind == MEMBER_NAMES || (kind == MEMBER_EITHER && ujobs_schema_array(&item) != NULL))
			fill_names(slot, &item, &member->required);
		else
			member->node = read_schema_at(slot->reader, slot->node, slot->keyword, &name, &item);
	}
}

static void
read_schema_map(const Slot *slot, const JsonbValue *value)
{
	read_members(slot, value, MEMBER_SCHEMA);
}

static void
read_pattern_map(const Slot *slot, const JsonbValue *value)
{
	read_members(slot, value, MEMBER_PATTERN);
}

static void
read_names_map(const Slot *slot, const JsonbValue *value)
{
	read_members(slot, value, MEMBER_NAMES);
}

static void
read_either_map(const Slot *slot, const JsonbValue *value)
{
	read_members(slot, value, MEMBER_EITHER);
}

/* ---- the list of keywords ---- */

#define FIELD(name) offsetof(UjobsSchemaNode, name)

static const Keyword keywords[] = {
	{"$anchor", read_any},
	{"$comment", read_string},
	{"$defs", read_schema_map},
	{"$dynamicAnchor", read_any},
	{"$dynamicRef", read_any},
	{"$id", read_any},
	{"$recursiveAnchor", read_unsupported, 0, "Draft 2020-12 has $dynamicAnchor instead."},
	{"$recursiveRef", read_unsupported, 0, "Draft 2020-12 has $dynamicRef instead."},
	{"$ref", read_any},
	{"$schema", read_any},
	{"$vocabulary", read_unsupported, 0, "It belongs into meta-schemas, which are not supported: leave it out."},
	{"additionalItems", read_unsupported, 0, "Draft 2020-12 has items, beside prefixItems, instead."},
	{"additionalProperties", read_schema, FIELD(additional_properties)},
	{"allOf", read_schemas, FIELD(all_of)},
	{"anyOf", read_schemas, FIELD(any_of)},
	{"const", read_constant},
	{"contains", read_schema, FIELD(contains)},
	{"contentEncoding", read_string},
	{"contentMediaType", read_string},
	{"contentSchema", read_schema},
	{"default", read_any},
	{"definitions", read_schema_map},
	{"dependencies", read_either_map, FIELD(dependencies)},
	{"dependentRequired", read_names_map, FIELD(dependent_required)},
	{"dependentSchemas", read_schema_map, FIELD(dependent_schemas)},
	{"deprecated", read_boolean},
	{"description", read_string},
	{"else", read_schema, FIELD(alternative)},
	{"enum", read_values},
	{"examples", read_array},
	{"exclusiveMaximum", read_number, FIELD(exclusive_maximum)},
	{"exclusiveMinimum", read_number, FIELD(exclusive_minimum)},
	{"format", read_string},
	{"id", read_unsupported, 0, "Draft 2020-12 has $id instead."},
	{"if", read_schema, FIELD(condition)},
	{"items", read_schema, FIELD(items)},
	{"maxContains", read_count, FIELD(max_contains)},
	{"maxItems", read_count, FIELD(max_items)},
	{"maxLength", read_count, FIELD(max_length)},
	{"maxProperties", read_count, FIELD(max_properties)},
	{"maximum", read_number, FIELD(maximum)},
	{"minContains", read_count, FIELD(min_contains)},
	{"minItems", read_count, FIELD(min_items)},
	{"minLength", read_count, FIELD(min_length)},
	{"minProperties", read_count, FIELD(min_properties)},
	{"minimum", read_number, FIELD(minimum)},
	{"multipleOf", read_divisor, FIELD(multiple_of)},
	{"not", read_schema, FIELD(negated)},
	{"oneOf", read_schemas, FIELD(one_of)},
	{"pattern", read_pattern},
	{"patternProperties", read_pattern_map, FIELD(pattern_properties)},
	{"prefixItems", read_schemas, FIELD(prefix_items)},
	{"properties", read_schema_map, FIELD(properties)},
	{"propertyNames", read_schema, FIELD(property_names)},
	{"readOnly", read_boolean},
	{"required", read_names, FIELD(required)},
	{"then", read_schema, FIELD(consequence)},
	{"title", read_string},
	{"type", read_type},
	{"unevaluatedItems", read_schema, FIELD(unevaluated_items)},
	{"unevaluatedProperties", read_schema, FIELD(unevaluated_properties)},
	{"uniqueItems", read_boolean, FIELD(unique_items)},
	{"writeOnly", read_boolean},
};

/* The keyword that was probably meant, or NULL. */
static const char *
nearest_keyword(const char *name, int length)
{
	const int	most = 2;		/* letters changed, too many or too few */
	const char *nearest = NULL;
	int			best = most + 1;

	if (length > 30)
		return NULL;
	for (int i = 0; i < lengthof(keywords); i++)
	{
		int			distance = varstr_levenshtein_less_equal(name, length, keywords[i].name,
															 strlen(keywords[i].name),
															 1, 1, 1, most, true);

		if (keywords[i].read != read_unsupported && distance < best && distance < length)
		{
			best = distance;
			nearest = keywords[i].name;
		}
	}
	return nearest;
}

static void
refuse_unknown(const Slot *slot)
{
	const char *nearest = nearest_keyword(slot->keyword, strlen(slot->keyword));
	const char *own = "The name of a note of your own begins with \"x-\".";

	refuse(slot, "is not known",
		   nearest ? psprintf("Did you mean \"%s\"? %s", nearest, own) : own);
}

static void
read_keyword(UjobsSchemaReader *reader, UjobsSchemaNode *node, const UjobsSchemaName *name,
			 const JsonbValue *value)
{
	Slot		slot = {.reader = reader, .node = node};

	if (name->length >= 2 && strncmp(name->text, "x-", 2) == 0)
		return;
	for (int i = 0; i < lengthof(keywords); i++)
	{
		const Keyword *keyword = &keywords[i];

		if (strncmp(keyword->name, name->text, name->length) != 0 ||
			keyword->name[name->length] != '\0')
			continue;
		slot.keyword = keyword->name;
		if (keyword->field != 0)
			slot.field = (char *) node + keyword->field;
		if (keyword->read == read_unsupported)
			refuse(&slot, "is not supported", keyword->advice);
		keyword->read(&slot, value);
		return;
	}
	slot.keyword = pnstrdup(name->text, name->length);
	refuse_unknown(&slot);
}

/* ---- the document ---- */

/* The schema `value` at the place below `outer`, and all in it.  step NULL: at the keyword. */
static UjobsSchemaNode *
read_schema_at(UjobsSchemaReader *reader, const UjobsSchemaNode *outer, const char *keyword,
			   const UjobsSchemaName *step, const JsonbValue *value)
{
	UjobsSchemaResource *around = reader->resource;
	UjobsSchemaNode *node = ujobs_schema_node_make(reader, outer, keyword, step, value);
	JsonbIterator *iterator;
	UjobsSchemaName name = {0};
	JsonbValue	member;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	iterator = node->is_boolean ? NULL : JsonbIteratorInit(ujobs_schema_object(value));
	while (iterator != NULL && ujobs_schema_next_member(&iterator, &name, &member))
	{
		JsonbValue *kept = palloc(sizeof(JsonbValue));

		*kept = member;			/* const and enum point to it */
		read_keyword(reader, node, &name, kept);
	}
	reader->resource = around;
	return node;
}

UjobsSchema *
ujobs_schema_compile(Jsonb *jsonb)
{
	UjobsSchema *schema = palloc(sizeof(UjobsSchema));
	UjobsSchemaReader reader = {0};
	JsonbValue	value;

	ujobs_schema_root_value(jsonb, &value);
	if (VARSIZE(jsonb) > ujobs_guc_max_schema_size)
		ereport(ERROR,
				(ujobs_errcode(TOO_COMPLEX),
				 errmsg("the input_schema is too large"),
				 errdetail("It has %u bytes, ujobs.max_schema_size is %d.", VARSIZE(jsonb),
						   ujobs_guc_max_schema_size),
				 errhint("Write a simpler schema, or have an administrator raise the setting.")));
	if (value.type != jbvBool && ujobs_schema_object(&value) == NULL)
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("option \"input_schema\" is not a JSON schema that can be checked"),
				 errdetail("at the root: it is neither an object nor a boolean"),
				 errhint("Give an object such as {\"type\": \"object\", \"required\": [\"orgId\"]}.")));
	schema->root = read_schema_at(&reader, NULL, "input_schema", NULL, &value);
	ujobs_schema_reference_resolve(&reader);
	return schema;
}
