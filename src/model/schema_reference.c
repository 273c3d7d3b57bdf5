/*
 * schema_reference.c: $ref and $dynamicRef find their schemas.
 *
 * All places of the document stand in an index by URI: each by its pointer
 * from the resource it belongs to, from the document, and by its anchors.  A
 * reference is looked up there and nowhere else, so one that leads out of the
 * document is refused.  At the end the graph is searched for circles that
 * would visit the same value for ever.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "model/schema_node.h"

typedef struct Entry
{
	char	   *uri;			/* "base#pointer" or "base#anchor" */
	UjobsSchemaNode *node;
	const char *keyword;		/* what gave the name */
	int			order;			/* of the document */
} Entry;

typedef struct Places
{
	Entry	   *entry;
	int			n;
} Places;

/* ---- the index ---- */

static void
add(Places *places, const char *uri, const char *fragment, UjobsSchemaNode *node)
{
	places->entry[places->n].uri = psprintf("%s#%s", uri, fragment);
	places->entry[places->n].node = node;
	places->entry[places->n].keyword = "$id";
	places->entry[places->n].order = places->n;
	places->n++;
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
refuse_twice(const Places *places)
{
	for (int i = 1; i < places->n; i++)
	{
		const Entry *entry = &places->entry[i];

		if (strcmp(entry[-1].uri, entry->uri) == 0 && entry[-1].node != entry->node)
			ujobs_schema_refuse(entry->node, entry->keyword,
								psprintf("gives a name that another schema has too: \"%s\"", entry->uri),
								"Give each schema its own name.");
	}
}

static void
places_index(Places *places, const UjobsSchemaReader *reader)
{
	UjobsSchemaResource *document = linitial(reader->resources);
	ListCell   *cell;

	places->n = 0;
	places->entry = palloc((2 * list_length(reader->nodes) + list_length(reader->anchors)) * sizeof(Entry));
	foreach(cell, reader->nodes)
	{
		UjobsSchemaNode *node = lfirst(cell);

		add(places, node->resource->uri, node->place + strlen(node->resource->root->place), node);
		if (node->resource != document)
			add(places, document->uri, node->place, node);
	}
	foreach(cell, reader->anchors)
	{
		const UjobsSchemaMention *anchor = lfirst(cell);

		add(places, anchor->node->resource->uri, anchor->text, anchor->node);
		places->entry[places->n - 1].keyword = anchor->keyword;
	}
	qsort(places->entry, places->n, sizeof(Entry), compare_ordered);
	refuse_twice(places);
}

static UjobsSchemaNode *
places_find(const Places *places, char *uri)
{
	Entry		key = {.uri = uri};
	Entry	   *entry = bsearch(&key, places->entry, places->n, sizeof(Entry), compare_entries);

	return entry != NULL ? entry->node : NULL;
}

/* ---- tying ---- */

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
tie(const Places *places, const UjobsSchemaMention *mention)
{
	UjobsSchemaNode *node = mention->node;
	char	   *fragment = ujobs_uri_fragment(mention->text);
	char	   *base = ujobs_uri_resolve(node->resource->uri, mention->text);
	UjobsSchemaNode *target = places_find(places, psprintf("%s#%s", base, fragment));

	if (target == NULL)
		ujobs_schema_refuse(node, mention->keyword,
							psprintf("leads to no schema of this document: \"%s\"", mention->text),
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

/* ---- circles ---- */

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
	UjobsSchemaNode *single[] = {node->reference, node->dynamic_reference, node->negated, node->condition,
		node->condition ? node->consequence : NULL, node->condition ? node->alternative : NULL};
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
refuse_circles(const UjobsSchemaReader *reader, UjobsSchemaNode *node)
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
			ujobs_schema_refuse(node, node->reference == target ? "$ref" :
								node->dynamic_reference != NULL ? "$dynamicRef" : target->keyword,
								"leads in a circle that never comes to a member or an item",
								"Break the circle: a schema may meet itself again only below properties or items.");
		refuse_circles(reader, target);
	}
	list_free(next);
	node->visiting = false;
	node->visited = true;
}

void
ujobs_schema_tie(UjobsSchemaReader *reader)
{
	Places		places;
	ListCell   *cell;

	if (reader->resources == NIL)
		return;					/* true or false */
	places_index(&places, reader);
	foreach(cell, reader->references)
		tie(&places, lfirst(cell));
	foreach(cell, reader->nodes)
		refuse_circles(reader, lfirst(cell));
	for (int i = 0; i < places.n; i++)
		pfree(places.entry[i].uri);
	pfree(places.entry);
}
