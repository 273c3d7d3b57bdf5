/*
 * schema_reference.c: $ref and $dynamicRef find their schemas.
 *
 * An index by URI has every place of the document: each by its pointer from
 * the resource it belongs to, by its pointer from the document, and by its
 * anchors.  A reference is looked up there and nowhere else, so one that leads
 * out of the document is refused.  At the end the graph is searched for cycles
 * that would visit the same value without end.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "model/schema_node.h"
#include "model/schema_reference.h"
#include "model/uri.h"

typedef struct Entry
{
	char	   *uri;			/* "base#pointer" or "base#anchor" */
	UjobsSchemaNode *node;
	const char *keyword;		/* what gave the name */
	int			order;			/* of the document */
} Entry;

typedef struct UriIndex
{
	Entry	   *entry;
	int			n;
} UriIndex;

/* ---- the index ---- */

static void
add(UriIndex *index, const char *uri, const char *fragment, UjobsSchemaNode *node)
{
	index->entry[index->n].uri = psprintf("%s#%s", uri, fragment);
	index->entry[index->n].node = node;
	index->entry[index->n].keyword = "$id";
	index->entry[index->n].order = index->n;
	index->n++;
}

static int
compare_entries(const void *a, const void *b)
{
	return strcmp(((const Entry *) a)->uri, ((const Entry *) b)->uri);
}

static int
compare_ordered(const void *a, const void *b)
{
	int			order = compare_entries(a, b);

	return order != 0 ? order : ((const Entry *) a)->order - ((const Entry *) b)->order;
}

static void
refuse_duplicates(const UriIndex *index)
{
	for (int i = 1; i < index->n; i++)
	{
		const Entry *entry = &index->entry[i];

		if (strcmp(entry[-1].uri, entry->uri) == 0 && entry[-1].node != entry->node)
			ujobs_schema_node_refuse(entry->node, entry->keyword,
									 psprintf("gives a name that another schema has too: \"%s\"",
											  entry->uri),
									 "Give each schema its own name.");
	}
}

static void
index_build(UriIndex *index, const UjobsSchemaReader *reader)
{
	UjobsSchemaResource *document = linitial(reader->resources);
	ListCell   *cell;

	index->n = 0;
	index->entry = palloc((2 * list_length(reader->nodes) + list_length(reader->anchors)) *
						  sizeof(Entry));
	foreach(cell, reader->nodes)
	{
		UjobsSchemaNode *node = lfirst(cell);

		add(index, node->resource->uri, node->place + strlen(node->resource->root->place), node);
		if (node->resource != document)
			add(index, document->uri, node->place, node);
	}
	foreach(cell, reader->anchors)
	{
		const UjobsSchemaMention *anchor = lfirst(cell);

		add(index, anchor->node->resource->uri, anchor->text, anchor->node);
		index->entry[index->n - 1].keyword = anchor->keyword;
	}
	qsort(index->entry, index->n, sizeof(Entry), compare_ordered);
	refuse_duplicates(index);
}

static UjobsSchemaNode *
index_find(const UriIndex *index, char *uri)
{
	Entry		key = {.uri = uri};
	Entry	   *entry = bsearch(&key, index->entry, index->n, sizeof(Entry), compare_entries);

	return entry != NULL ? entry->node : NULL;
}

/* ---- resolving ---- */

static bool
has_dynamic(const UjobsSchemaResource *resource, const UjobsSchemaNode *node, const char *name)
{
	ListCell   *cell;

	foreach(cell, resource->dynamic)
	{
		const UjobsSchemaAnchor *anchor = lfirst(cell);

		if (anchor->node == node && strcmp(anchor->name, name) == 0)
			return true;
	}
	return false;
}

static void
resolve(const UriIndex *index, const UjobsSchemaMention *mention)
{
	UjobsSchemaNode *node = mention->node;
	char	   *fragment = ujobs_uri_fragment(mention->text);
	char	   *base = ujobs_uri_resolve(node->resource->uri, mention->text);
	UjobsSchemaNode *target = index_find(index, psprintf("%s#%s", base, fragment));

	if (target == NULL)
		ujobs_schema_node_refuse(node, mention->keyword,
								 psprintf("leads to no schema of this document: \"%s\"",
										  mention->text),
								 "Refer to a schema inside the document; others are never fetched: copy them into $defs.");
	if (mention->keyword[1] == 'r')
		node->reference = target;
	else
	{
		node->dynamic_reference = target;
		if (has_dynamic(target->resource, target, fragment))
			node->dynamic_name = fragment;
	}
}

/* ---- cycles ---- */

static List *
append_nodes(List *list, const UjobsSchemaNodes *nodes)
{
	for (int i = 0; i < nodes->n; i++)
		list = lappend(list, nodes->node[i]);
	return list;
}

static List *
append_members(List *list, const UjobsSchemaMembers *members)
{
	for (int i = 0; i < members->n; i++)
	{
		if (members->member[i].node != NULL)
			list = lappend(list, members->member[i].node);
	}
	return list;
}

/* Wherever a $dynamicRef of that name may lead. */
static List *
append_dynamic(List *list, const UjobsSchemaReader *reader, const char *name)
{
	ListCell   *cell;
	ListCell   *each;

	foreach(cell, reader->resources)
	{
		const UjobsSchemaResource *resource = lfirst(cell);

		foreach(each, resource->dynamic)
		{
			UjobsSchemaAnchor *anchor = lfirst(each);

			if (strcmp(anchor->name, name) == 0)
				list = lappend(list, anchor->node);
		}
	}
	return list;
}

/* The schemas that a node applies to the same value. */
static List *
same_value(const UjobsSchemaReader *reader, const UjobsSchemaNode *node)
{
	UjobsSchemaNode *single[] = {
		node->reference, node->dynamic_reference, node->negated, node->condition,
		node->condition ? node->consequence : NULL, node->condition ? node->alternative : NULL
	};
	List	   *list = NIL;

	for (int i = 0; i < lengthof(single); i++)
	{
		if (single[i] != NULL)
			list = lappend(list, single[i]);
	}
	list = append_nodes(list, &node->all_of);
	list = append_nodes(list, &node->any_of);
	list = append_nodes(list, &node->one_of);
	list = append_members(list, &node->dependent_schemas);
	list = append_members(list, &node->dependencies);
	if (node->dynamic_name != NULL)
		list = append_dynamic(list, reader, node->dynamic_name);
	return list;
}

static void
refuse_cycles(const UjobsSchemaReader *reader, UjobsSchemaNode *node)
{
	List	   *next;
	ListCell   *cell;

	check_stack_depth();
	if (node->visited)
		return;
	node->visiting = true;
	next = same_value(reader, node);
	foreach(cell, next)
	{
		UjobsSchemaNode *target = lfirst(cell);

		if (target->visiting)
			ujobs_schema_node_refuse(node, node->reference == target ? "$ref" :
									 node->dynamic_reference != NULL ?
									 "$dynamicRef" : target->keyword,
									 "leads in a circle that never comes to a member or an item",
									 "Break the circle: a schema may meet itself again only below properties or items.");
		refuse_cycles(reader, target);
	}
	list_free(next);
	node->visiting = false;
	node->visited = true;
}

void
ujobs_schema_reference_resolve(UjobsSchemaReader *reader)
{
	UriIndex	index;
	ListCell   *cell;

	if (reader->resources == NIL)
		return;					/* true or false */
	index_build(&index, reader);
	foreach(cell, reader->references)
		resolve(&index, lfirst(cell));
	foreach(cell, reader->nodes)
		refuse_cycles(reader, lfirst(cell));
	for (int i = 0; i < index.n; i++)
		pfree(index.entry[i].uri);
	pfree(index.entry);
}
