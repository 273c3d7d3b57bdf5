/*
 * schema_object.c: the keywords for objects.
 *
 * Members are walked once; properties is in jsonb's own order of keys, so each
 * is found by a binary search.
 */
#include "postgres.h"

#include "model/schema_node.h"

/* jsonb's order of keys: shorter first, then by bytes. */
static int
compare_name(const UjobsSchemaName *a, const UjobsSchemaName *b)
{
	if (a->length != b->length)
		return a->length < b->length ? -1 : 1;
	return memcmp(a->text, b->text, a->length);
}

static const UjobsSchemaMember *
find_member(const UjobsSchemaMembers *members, const UjobsSchemaName *name)
{
	int			low = 0;
	int			high = members->n;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;
		int			order = compare_name(&members->member[middle].name, name);

		if (order == 0)
			return &members->member[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static bool
has_member(const UjobsSchemaVisit *v, const UjobsSchemaName *name)
{
	JsonbValue	value;

	return getKeyJsonValueFromContainer(v->value->val.binary.data, name->text, name->length, &value) != NULL;
}

/* ---- one member ---- */

static bool
visit_name(const UjobsSchemaVisit *v, const UjobsSchemaPlace *place)
{
	UjobsSchemaPlace named = *place;
	JsonbValue	name;

	if (v->node->property_names == NULL)
		return true;
	named.is_name = true;
	name.type = jbvString;
	name.val.string.val = unconstify(char *, place->key);
	name.val.string.len = place->length;
	return ujobs_schema_visit_inner(v, v->node->property_names, &name, &named);
}

static bool
visit_member(const UjobsSchemaVisit *v, const JsonbValue *value, const UjobsSchemaPlace *place)
{
	const UjobsSchemaNode *n = v->node;
	UjobsSchemaName name = {place->key, place->length};
	const UjobsSchemaMember *property = find_member(&n->properties, &name);
	bool		evaluated = property != NULL;

	if (!visit_name(v, place))
		return false;
	if (property != NULL && !ujobs_schema_visit_inner(v, property->node, value, place))
		return false;
	for (int i = 0; i < n->pattern_properties.n; i++)
	{
		const UjobsSchemaMember *member = &n->pattern_properties.member[i];

		if (!ujobs_pattern_matches(member->pattern, name.text, name.length))
			continue;
		evaluated = true;
		if (!ujobs_schema_visit_inner(v, member->node, value, place))
			return false;
	}
	if (!evaluated && n->additional_properties != NULL)
	{
		evaluated = true;
		if (!ujobs_schema_visit_inner(v, n->additional_properties, value, place))
			return false;
	}
	if (evaluated && v->seen != NULL)
		v->seen[place->index] = true;
	return true;
}

/* ---- all of them ---- */

typedef bool (*Visitor) (const UjobsSchemaVisit *v, const JsonbValue *value, const UjobsSchemaPlace *place);

static bool
each_member(const UjobsSchemaVisit *v, Visitor visitor)
{
	JsonbIterator *iterator = JsonbIteratorInit(v->value->val.binary.data);
	UjobsSchemaPlace place = {.outer = v->place, .index = -1};
	JsonbValue	value;
	JsonbIteratorToken token;
	bool		fits = true;

	while (fits && (token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
		{
			place.key = value.val.string.val;
			place.length = value.val.string.len;
			place.index++;
		}
		else if (token == WJB_VALUE)
			fits = visitor(v, &value, &place);
	}
	return fits;
}

static bool
check_size(const UjobsSchemaVisit *v)
{
	const UjobsSchemaNode *n = v->node;
	int			size = JsonContainerSize(v->value->val.binary.data);

	if (n->max_properties >= 0 && size > n->max_properties)
		return ujobs_schema_fail(v, "maxProperties", "must have at most " INT64_FORMAT " member%s, has %d",
								 n->max_properties, ujobs_schema_plural(n->max_properties), size);
	if (size < n->min_properties)
		return ujobs_schema_fail(v, "minProperties", "must have at least " INT64_FORMAT " member%s, has %d",
								 n->min_properties, ujobs_schema_plural(n->min_properties), size);
	return true;
}

/* ---- what must be there ---- */

static bool
check_required(const UjobsSchemaVisit *v)
{
	for (int i = 0; i < v->node->required.n; i++)
	{
		const UjobsSchemaName *name = &v->node->required.name[i];

		if (!has_member(v, name))
			return ujobs_schema_fail(v, "required", "must have \"%.*s\"", name->length, name->text);
	}
	return true;
}

static bool
check_dependents(const UjobsSchemaVisit *v, const char *keyword, const UjobsSchemaMember *member)
{
	for (int i = 0; i < member->required.n; i++)
	{
		const UjobsSchemaName *name = &member->required.name[i];

		if (!has_member(v, name))
			return ujobs_schema_fail(v, keyword, "must have \"%.*s\" because it has \"%.*s\"", name->length,
									 name->text, member->name.length, member->name.text);
	}
	return member->node == NULL || ujobs_schema_visit_same(v, member->node);
}

static bool
check_dependencies(const UjobsSchemaVisit *v, const char *keyword, const UjobsSchemaMembers *members)
{
	for (int i = 0; i < members->n; i++)
	{
		if (has_member(v, &members->member[i].name) && !check_dependents(v, keyword, &members->member[i]))
			return false;
	}
	return true;
}

bool
ujobs_schema_visit_object(const UjobsSchemaVisit *v)
{
	const UjobsSchemaNode *n = v->node;

	if (!check_size(v) || !check_required(v) ||
		!check_dependencies(v, "dependentRequired", &n->dependent_required) ||
		!check_dependencies(v, "dependencies", &n->dependencies))
		return false;
	if ((n->properties.n > 0 || n->pattern_properties.n > 0 || n->additional_properties != NULL ||
		 n->property_names != NULL) && !each_member(v, visit_member))
		return false;
	return check_dependencies(v, "dependentSchemas", &n->dependent_schemas);
}

/* ---- what nobody evaluated ---- */

static bool
visit_unevaluated_member(const UjobsSchemaVisit *v, const JsonbValue *value, const UjobsSchemaPlace *place)
{
	if (v->seen[place->index])
		return true;
	if (!ujobs_schema_visit_inner(v, v->node->unevaluated_properties, value, place))
		return false;
	v->seen[place->index] = true;
	return true;
}

bool
ujobs_schema_visit_unevaluated_members(const UjobsSchemaVisit *v)
{
	return v->node->unevaluated_properties == NULL || each_member(v, visit_unevaluated_member);
}
