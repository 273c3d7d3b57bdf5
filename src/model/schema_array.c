/*
 * schema_array.c: the keywords for arrays.
 */
#include "postgres.h"

#include "model/schema_node.h"

/* An item and where it stands, to be sorted. */
typedef struct Numbered
{
	JsonbValue	value;
	int			index;
} Numbered;

static bool
check_size(const UjobsSchemaVisit *v)
{
	const UjobsSchemaNode *n = v->node;
	int			size = JsonContainerSize(v->value->val.binary.data);

	if (n->max_items >= 0 && size > n->max_items)
		return ujobs_schema_fail(v, "maxItems", "must have at most " INT64_FORMAT " item%s, has %d",
								 n->max_items, ujobs_schema_plural(n->max_items), size);
	if (size < n->min_items)
		return ujobs_schema_fail(v, "minItems", "must have at least " INT64_FORMAT " item%s, has %d",
								 n->min_items, ujobs_schema_plural(n->min_items), size);
	return true;
}

/* The next item; false at the end. */
static bool
next_item(JsonbIterator **iterator, JsonbValue *value)
{
	JsonbIteratorToken token;

	while ((token = JsonbIteratorNext(iterator, value, true)) != WJB_DONE)
	{
		if (token == WJB_ELEM)
			return true;
	}
	return false;
}

/* ---- items ---- */

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
	for (; next_item(&iterator, &value); place.index++)
	{
		const UjobsSchemaNode *schema = schema_of_item(v->node, place.index);

		if (schema == NULL)
			return true;
		if (!ujobs_schema_visit_inner(v, schema, &value, &place))
			return false;
		if (v->seen != NULL)
			v->seen[place.index] = true;
	}
	return true;
}

/* ---- contains ---- */

static int64
count_contained(const UjobsSchemaVisit *v)
{
	JsonbIterator *iterator = JsonbIteratorInit(v->value->val.binary.data);
	UjobsSchemaPlace place = {.outer = v->place};
	JsonbValue	value;
	int64		count = 0;

	for (; next_item(&iterator, &value); place.index++)
	{
		if (!ujobs_schema_try_inner(v, v->node->contains, &value, &place))
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
		return ujobs_schema_fail(v, n->min_contains >= 0 ? "minContains" : "contains",
								 "must have at least " INT64_FORMAT " item%s for the schema of \"contains\", has " INT64_FORMAT,
								 least, ujobs_schema_plural(least), count);
	if (n->max_contains >= 0 && count > n->max_contains)
		return ujobs_schema_fail(v, "maxContains",
								 "must have at most " INT64_FORMAT " item%s for the schema of \"contains\", has " INT64_FORMAT,
								 n->max_contains, ujobs_schema_plural(n->max_contains), count);
	return true;
}

/* ---- uniqueItems ---- */

static int
compare_items(const void *a, const void *b)
{
	const Numbered *x = a;
	const Numbered *y = b;
	int			order = ujobs_schema_compare(&x->value, &y->value);

	return order != 0 ? order : x->index - y->index;
}

static bool
check_unique(const UjobsSchemaVisit *v)
{
	int			n = JsonContainerSize(v->value->val.binary.data);
	JsonbIterator *iterator;
	Numbered   *items;
	bool		fits = true;

	if (!v->node->unique_items || n < 2)
		return true;
	iterator = JsonbIteratorInit(v->value->val.binary.data);
	items = MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(Numbered));
	for (int i = 0; i < n && next_item(&iterator, &items[i].value); i++)
		items[i].index = i;
	qsort(items, n, sizeof(Numbered), compare_items);
	for (int i = 1; i < n && fits; i++)
	{
		if (ujobs_schema_compare(&items[i - 1].value, &items[i].value) == 0)
			fits = ujobs_schema_fail(v, "uniqueItems", "must have no two equal items, items %d and %d are",
									 items[i - 1].index, items[i].index);
	}
	pfree(items);
	return fits;
}

bool
ujobs_schema_visit_array(const UjobsSchemaVisit *v)
{
	return check_size(v) && visit_items(v) && check_contains(v) && check_unique(v);
}

/* ---- what nobody evaluated ---- */

bool
ujobs_schema_visit_unevaluated_items(const UjobsSchemaVisit *v)
{
	JsonbIterator *iterator;
	UjobsSchemaPlace place = {.outer = v->place};
	JsonbValue	value;

	if (v->node->unevaluated_items == NULL)
		return true;
	iterator = JsonbIteratorInit(v->value->val.binary.data);
	for (; next_item(&iterator, &value); place.index++)
	{
		if (!v->seen[place.index] && !ujobs_schema_visit_inner(v, v->node->unevaluated_items, &value, &place))
			return false;
		v->seen[place.index] = true;
	}
	return true;
}
