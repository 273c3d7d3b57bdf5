/*
 * schema_check.c: whether an input fits a schema.
 *
 * A visit is one value under one schema: first the keywords that look at the
 * value, then those that look at its members, then the schemas applied to the
 * same value, last unevaluatedProperties and unevaluatedItems.  The first
 * keyword that is not satisfied ends it; its place and rule are kept, unless
 * not to fit is a normal answer (below not, anyOf, oneOf, if and contains).
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "core/error.h"
#include "model/effort.h"
#include "model/schema_check.h"
#include "model/schema_value.h"

static bool visit_schema(const UjobsSchemaVisit *given);

static int
size_of(const JsonbValue *value)
{
	return value->type == jbvBinary ? JsonContainerSize(value->val.binary.data) : 0;
}

/* ---- one more schema ---- */

/* Another schema for the same value; what it evaluated counts when it fits. */
static bool
visit_same(const UjobsSchemaVisit *visit, const UjobsSchemaNode *node)
{
	UjobsSchemaVisit inner = *visit;
	int			n = size_of(visit->value);
	bool		fits;

	inner.node = node;
	if (visit->seen != NULL)
		inner.seen = palloc0(Max(n, 1) * sizeof(bool));
	fits = visit_schema(&inner);
	if (visit->seen != NULL)
	{
		for (int i = 0; fits && i < n; i++)
			visit->seen[i] |= inner.seen[i];
		pfree(inner.seen);
	}
	return fits;
}

/* The same, when not to fit is a normal answer. */
static bool
try_same(const UjobsSchemaVisit *v, const UjobsSchemaNode *node)
{
	bool		fits;

	v->run->quiet++;
	fits = visit_same(v, node);
	v->run->quiet--;
	return fits;
}

/* A schema for a member or item. */
static bool
visit_inner(const UjobsSchemaVisit *visit, const UjobsSchemaNode *node,
			const JsonbValue *value, const UjobsSchemaPlace *place)
{
	UjobsSchemaVisit inner = *visit;

	inner.node = node;
	inner.value = value;
	inner.place = place;
	inner.seen = NULL;
	return visit_schema(&inner);
}

/* The same, when not to fit is a normal answer. */
static bool
try_inner(const UjobsSchemaVisit *visit, const UjobsSchemaNode *node,
		  const JsonbValue *value, const UjobsSchemaPlace *place)
{
	bool		fits;

	visit->run->quiet++;
	fits = visit_inner(visit, node, value, place);
	visit->run->quiet--;
	return fits;
}

/* ---- members of an object ---- */

/* jsonb's order of keys: shorter first, then by bytes. */
static int
compare_name(const UjobsSchemaName *a, const UjobsSchemaName *b)
{
	if (a->length != b->length)
		return a->length < b->length ? -1 : 1;
	return memcmp(a->text, b->text, a->length);
}

/* By binary search: a schema's members are in jsonb's order. */
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

/* propertyNames */
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
	return visit_inner(v, v->node->property_names, &name, &named);
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
	if (property != NULL && !visit_inner(v, property->node, value, place))
		return false;
	for (int i = 0; i < n->pattern_properties.n; i++)
	{
		const UjobsSchemaMember *member = &n->pattern_properties.member[i];

		if (!ujobs_pattern_matches(member->pattern, name.text, name.length))
			continue;
		evaluated = true;
		if (!visit_inner(v, member->node, value, place))
			return false;
	}
	if (!evaluated && n->additional_properties != NULL)
	{
		evaluated = true;
		if (!visit_inner(v, n->additional_properties, value, place))
			return false;
	}
	if (evaluated && v->seen != NULL)
		v->seen[place->index] = true;
	return true;
}

typedef bool (*MemberVisit) (const UjobsSchemaVisit *v, const JsonbValue *value,
							 const UjobsSchemaPlace *place);

static bool
each_member(const UjobsSchemaVisit *v, MemberVisit visit_one)
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
			fits = visit_one(v, &value, &place);
	}
	return fits;
}

static bool
check_dependents(const UjobsSchemaVisit *v, const char *keyword, const UjobsSchemaMember *member)
{
	for (int i = 0; i < member->required.n; i++)
	{
		const UjobsSchemaName *name = &member->required.name[i];

		if (!ujobs_schema_value_has_member(v, name))
			return ujobs_schema_value_fail(v, keyword, "must have \"%.*s\" because it has \"%.*s\"",
										   name->length,
										   name->text, member->name.length, member->name.text);
	}
	return member->node == NULL || visit_same(v, member->node);
}

static bool
check_dependencies(const UjobsSchemaVisit *v, const char *keyword,
				   const UjobsSchemaMembers *members)
{
	for (int i = 0; i < members->n; i++)
	{
		if (ujobs_schema_value_has_member(v, &members->member[i].name) &&
			!check_dependents(v, keyword, &members->member[i]))
			return false;
	}
	return true;
}

static bool
visit_object(const UjobsSchemaVisit *v)
{
	const UjobsSchemaNode *n = v->node;

	if (!check_dependencies(v, "dependentRequired", &n->dependent_required) ||
		!check_dependencies(v, "dependencies", &n->dependencies))
		return false;
	if ((n->properties.n > 0 || n->pattern_properties.n > 0 || n->additional_properties != NULL ||
		 n->property_names != NULL) && !each_member(v, visit_member))
		return false;
	return check_dependencies(v, "dependentSchemas", &n->dependent_schemas);
}

static bool
visit_unevaluated_member(const UjobsSchemaVisit *v, const JsonbValue *value,
						 const UjobsSchemaPlace *place)
{
	Assert(v->seen != NULL);
	if (v->seen[place->index])
		return true;
	if (!visit_inner(v, v->node->unevaluated_properties, value, place))
		return false;
	v->seen[place->index] = true;
	return true;
}

static bool
visit_unevaluated_members(const UjobsSchemaVisit *v)
{
	return v->node->unevaluated_properties == NULL || each_member(v, visit_unevaluated_member);
}

/* ---- items of an array ---- */

static const UjobsSchemaNode *
schema_of_item(const UjobsSchemaNode *node, int index)
{
	return index < node->prefix_items.n ? node->prefix_items.node[index] : node->items;
}

static bool
visit_items(const UjobsSchemaVisit *v)
{
	JsonbIterator *iterator;
	UjobsSchemaPlace place = {.outer = v->place};
	JsonbValue	value;

	if (v->node->prefix_items.n == 0 && v->node->items == NULL)
		return true;
	iterator = JsonbIteratorInit(v->value->val.binary.data);
	for (; ujobs_schema_next_item(&iterator, &value); place.index++)
	{
		const UjobsSchemaNode *schema = schema_of_item(v->node, place.index);

		if (schema == NULL)
			return true;
		if (!visit_inner(v, schema, &value, &place))
			return false;
		if (v->seen != NULL)
			v->seen[place.index] = true;
	}
	return true;
}

static int64
count_contained(const UjobsSchemaVisit *v)
{
	JsonbIterator *iterator = JsonbIteratorInit(v->value->val.binary.data);
	UjobsSchemaPlace place = {.outer = v->place};
	JsonbValue	value;
	int64		count = 0;

	for (; ujobs_schema_next_item(&iterator, &value); place.index++)
	{
		if (!try_inner(v, v->node->contains, &value, &place))
			continue;
		count++;
		if (v->seen != NULL)
			v->seen[place.index] = true;
	}
	return count;
}

static bool
check_contains(const UjobsSchemaVisit *v)
{
	const UjobsSchemaNode *n = v->node;
	int64		least = n->min_contains >= 0 ? n->min_contains : 1;
	int64		count;

	if (n->contains == NULL)
		return true;
	count = count_contained(v);
	if (count < least)
		return ujobs_schema_value_fail(v, n->min_contains >= 0 ? "minContains" : "contains",
									   "must have at least " INT64_FORMAT " item%s for the schema of \"contains\", has " INT64_FORMAT,
									   least, ujobs_schema_plural(least), count);
	if (n->max_contains >= 0 && count > n->max_contains)
		return ujobs_schema_value_fail(v, "maxContains",
									   "must have at most " INT64_FORMAT
									   " item%s for the schema of \"contains\", has " INT64_FORMAT,
									   n->max_contains, ujobs_schema_plural(n->max_contains),
									   count);
	return true;
}

static bool
visit_array(const UjobsSchemaVisit *v)
{
	return visit_items(v) && check_contains(v) && ujobs_schema_value_check_unique(v);
}

static bool
visit_unevaluated_items(const UjobsSchemaVisit *v)
{
	JsonbIterator *iterator;
	UjobsSchemaPlace place = {.outer = v->place};
	JsonbValue	value;

	if (v->node->unevaluated_items == NULL)
		return true;
	Assert(v->seen != NULL);
	iterator = JsonbIteratorInit(v->value->val.binary.data);
	for (; ujobs_schema_next_item(&iterator, &value); place.index++)
	{
		if (!v->seen[place.index] && !visit_inner(v, v->node->unevaluated_items, &value, &place))
			return false;
		v->seen[place.index] = true;
	}
	return true;
}

/* ---- schemas for the same value ---- */

static bool
apply_all(const UjobsSchemaVisit *v)
{
	for (int i = 0; i < v->node->all_of.n; i++)
	{
		if (!visit_same(v, v->node->all_of.node[i]))
			return false;
	}
	return true;
}

static bool
apply_any(const UjobsSchemaVisit *v)
{
	const UjobsSchemaNodes *any = &v->node->any_of;
	bool		fits = any->n == 0;

	/* All are tried when it matters what they evaluate. */
	for (int i = 0; i < any->n && (!fits || v->seen != NULL); i++)
		fits |= try_same(v, any->node[i]);
	return fits || ujobs_schema_value_fail(v, "anyOf",
										   "must fit at least one of %d schemas, fits none", any->n);
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
			return ujobs_schema_value_fail(v, "oneOf",
										   "must fit exactly one of %d schemas, fits numbers %d and %d",
										   one->n, fits + 1, i + 1);
		fits = i;
	}
	return one->n == 0 || fits >= 0 ||
		ujobs_schema_value_fail(v, "oneOf", "must fit exactly one of %d schemas, fits none",
								one->n);
}

static bool
apply_negated(const UjobsSchemaVisit *v)
{
	UjobsSchemaVisit blind = *v;

	if (v->node->negated == NULL)
		return true;
	blind.seen = NULL;			/* what does not fit evaluates nothing */
	return !try_same(&blind, v->node->negated) ||
		ujobs_schema_value_fail(v, "not", "must not fit the schema of \"not\", but does");
}

static bool
apply_condition(const UjobsSchemaVisit *v)
{
	const UjobsSchemaNode *n = v->node;
	const UjobsSchemaNode *next;

	if (n->condition == NULL)
		return true;
	next = try_same(v, n->condition) ? n->consequence : n->alternative;
	return next == NULL || visit_same(v, next);
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
	if (v->node->reference != NULL && !visit_same(v, v->node->reference))
		return false;
	return v->node->dynamic_reference == NULL || visit_same(v, dynamic_target(v));
}

/* ---- the visit ---- */

static bool
check_value(const UjobsSchemaVisit *v)
{
	if (!ujobs_schema_value_check(v))
		return false;
	if (ujobs_schema_object(v->value) != NULL)
		return visit_object(v);
	return ujobs_schema_array(v->value) == NULL || visit_array(v);
}

static bool
apply_unevaluated(const UjobsSchemaVisit *v)
{
	if (ujobs_schema_object(v->value) != NULL)
		return visit_unevaluated_members(v);
	return ujobs_schema_array(v->value) == NULL || visit_unevaluated_items(v);
}

static bool
visit_boolean(const UjobsSchemaVisit *v)
{
	return v->node->accepts || ujobs_schema_value_fail(v, v->node->keyword, "is not allowed");
}

static bool
visit_schema(const UjobsSchemaVisit *given)
{
	UjobsSchemaVisit v = *given;
	UjobsSchemaScope scope = {given->scope, given->node->resource};
	bool		fits;

	check_stack_depth();
	ujobs_effort_spend(1 + v.node->required.n + v.node->dependent_required.n +
					   v.node->dependencies.n + v.node->dependent_schemas.n +
					   (v.seen != NULL ? size_of(v.value) / 8 : 0));
	if (v.node->is_boolean)
		return visit_boolean(&v);
	if (v.scope == NULL || v.scope->resource != scope.resource)
		v.scope = &scope;
	if (v.seen == NULL && v.value->type == jbvBinary &&
		(v.node->unevaluated_items != NULL || v.node->unevaluated_properties != NULL))
		v.seen = palloc0(Max(size_of(v.value), 1) * sizeof(bool));
	fits = check_value(&v) && apply_references(&v) && apply_all(&v) && apply_any(&v) &&
		apply_one(&v) && apply_negated(&v) && apply_condition(&v) && apply_unevaluated(&v);
	if (v.seen != given->seen)
		pfree(v.seen);
	return fits;
}

char *
ujobs_schema_check(const UjobsSchema *schema, Jsonb *input)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext context = AllocSetContextCreate(caller, "ujobs schema check",
												  ALLOCSET_DEFAULT_SIZES);
	UjobsSchemaRun run = {0};
	JsonbValue	value;
	UjobsSchemaVisit visit = {.run = &run, .node = schema->root, .value = &value};
	char	   *fault = NULL;

	ujobs_effort_begin();
	MemoryContextSwitchTo(context);
	ujobs_schema_root_value(input, &value);
	if (!visit_schema(&visit))
		fault = MemoryContextStrdup(caller, run.fault);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return fault;
}

void
ujobs_schema_check_or_raise(const UjobsSchema *schema, const char *job, Jsonb *input, int number)
{
	char	   *fault = ujobs_schema_check(schema, input);

	if (fault == NULL)
		return;
	ereport(ERROR,
			(ujobs_errcode(INPUT_INVALID),
			 errmsg("the input does not fit the schema of job \"%s\"", job),
			 number > 0 ? errdetail("input %d of the call, %s", number, fault)
			 : errdetail_internal("%s", fault),
			 errhint("Correct the input; ujobs.describe_job shows the schema.")));
}
