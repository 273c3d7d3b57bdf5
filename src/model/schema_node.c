/*
 * schema_node.c: the nodes of a compiled schema.
 *
 * A node is made with what names it and what it refers to: its place, the
 * resource it belongs to, its anchors and references.  References are only
 * noted here; schema_reference.c resolves them when all names are known.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "core/error.h"
#include "model/schema_node.h"
#include "model/uri.h"

#define DRAFT_2020_12 "https://json-schema.org/draft/2020-12/schema"

void
ujobs_schema_node_refuse(const UjobsSchemaNode *node, const char *keyword, const char *reason,
						 const char *hint)
{
	ereport(ERROR,
			(ujobs_errcode(INVALID_OPTION),
			 errmsg("option \"input_schema\" is not a JSON schema that can be checked"),
			 node->place[0] == '\0'
			 ? errdetail("at the root: keyword \"%s\" %s", keyword, reason)
			 : errdetail("at \"%s\": keyword \"%s\" %s", node->place, keyword, reason),
			 errhint("%s", hint)));
}

/* ---- places ---- */

void
ujobs_schema_node_append_step(StringInfo out, const char *text, int length)
{
	appendStringInfoChar(out, '/');
	for (int i = 0; i < length; i++)
	{
		if (text[i] == '~' || text[i] == '/')
			appendStringInfoString(out, text[i] == '~' ? "~0" : "~1");
		else
			appendStringInfoChar(out, text[i]);
	}
}

static char *
inner_place(const UjobsSchemaNode *outer, const char *keyword, const UjobsSchemaName *step)
{
	StringInfoData out;

	initStringInfo(&out);
	if (outer != NULL)
	{
		appendStringInfoString(&out, outer->place);
		ujobs_schema_node_append_step(&out, keyword, strlen(keyword));
		if (step != NULL)
			ujobs_schema_node_append_step(&out, step->text, step->length);
	}
	return out.data;
}

/* ---- identifiers ---- */

/* The text of a member, or NULL when the object has none of that name. */
static char *
text_member(const UjobsSchemaNode *node, JsonbContainer *object, const char *name)
{
	JsonbValue	value;

	if (getKeyJsonValueFromContainer(object, name, strlen(name), &value) == NULL)
		return NULL;
	if (value.type != jbvString)
		ujobs_schema_node_refuse(node, name, "is not a string", "Give it a string.");
	return pnstrdup(value.val.string.val, value.val.string.len);
}

static void
check_draft(const UjobsSchemaNode *node, JsonbContainer *object)
{
	char	   *draft = text_member(node, object, "$schema");
	size_t		n = strlen(DRAFT_2020_12);

	if (draft == NULL ||
		(strncmp(draft, DRAFT_2020_12, n) == 0 &&
		 (draft[n] == '\0' || strcmp(draft + n, "#") == 0)))
		return;
	ujobs_schema_node_refuse(node, "$schema", psprintf("is \"%s\"", draft),
							 "Write the schema in draft 2020-12 (\"" DRAFT_2020_12 "\"), or leave $schema out.");
}

/* An $id begins a resource of its own. */
static void
enter_resource(UjobsSchemaReader *reader, UjobsSchemaNode *node, JsonbContainer *object)
{
	char	   *id = text_member(node, object, "$id");
	UjobsSchemaResource *resource;

	if (id == NULL && reader->resource != NULL)
		return;
	if (id != NULL && ujobs_uri_fragment(id)[0] != '\0')
		ujobs_schema_node_refuse(node, "$id", "has a fragment",
								 "Name a place with $anchor instead.");
	resource = palloc0(sizeof(UjobsSchemaResource));
	resource->root = node;
	resource->uri = ujobs_uri_resolve(reader->resource ? reader->resource->uri : "", id ? id : "");
	reader->resources = lappend(reader->resources, resource);
	reader->resource = resource;
}

static bool
is_anchor(const char *name)
{
	if (!isalpha((unsigned char) *name) && *name != '_')
		return false;
	for (const char *p = name; *p; p++)
	{
		if (!isalnum((unsigned char) *p) && strchr("-._", *p) == NULL)
			return false;
	}
	return true;
}

static void
note_anchor(UjobsSchemaReader *reader, UjobsSchemaNode *node, JsonbContainer *object,
			const char *keyword)
{
	char	   *name = text_member(node, object, keyword);
	UjobsSchemaMention *mention;

	if (name == NULL)
		return;
	if (!is_anchor(name))
		ujobs_schema_node_refuse(node, keyword, "is not a plain name",
								 "Begin it with a letter or an underscore, followed by letters, digits, '-', '_' and '.'.");
	mention = palloc(sizeof(UjobsSchemaMention));
	mention->node = node;
	mention->keyword = keyword;
	mention->text = name;
	reader->anchors = lappend(reader->anchors, mention);
}

static void
note_reference(UjobsSchemaReader *reader, UjobsSchemaNode *node, JsonbContainer *object,
			   const char *keyword)
{
	char	   *text = text_member(node, object, keyword);
	UjobsSchemaMention *mention;

	if (text == NULL)
		return;
	mention = palloc(sizeof(UjobsSchemaMention));
	mention->node = node;
	mention->keyword = keyword;
	mention->text = text;
	reader->references = lappend(reader->references, mention);
}

static void
note_dynamic_anchor(UjobsSchemaNode *node, JsonbContainer *object)
{
	char	   *name = text_member(node, object, "$dynamicAnchor");
	UjobsSchemaAnchor *anchor;

	if (name == NULL)
		return;
	anchor = palloc(sizeof(UjobsSchemaAnchor));
	anchor->name = name;
	anchor->node = node;
	node->resource->dynamic = lappend(node->resource->dynamic, anchor);
}

/* ---- making one ---- */

static UjobsSchemaNode *
new_node(const UjobsSchemaNode *outer, const char *keyword, const UjobsSchemaName *step)
{
	UjobsSchemaNode *node = palloc0(sizeof(UjobsSchemaNode));

	node->place = inner_place(outer, keyword, step);
	node->keyword = keyword;
	node->max_length = node->min_length = -1;
	node->max_items = node->min_items = -1;
	node->max_contains = node->min_contains = -1;
	node->max_properties = node->min_properties = -1;
	return node;
}

static void
note_identifiers(UjobsSchemaReader *reader, UjobsSchemaNode *node, JsonbContainer *object)
{
	check_draft(node, object);
	note_anchor(reader, node, object, "$anchor");
	note_anchor(reader, node, object, "$dynamicAnchor");
	note_dynamic_anchor(node, object);
	note_reference(reader, node, object, "$ref");
	note_reference(reader, node, object, "$dynamicRef");
}

UjobsSchemaNode *
ujobs_schema_node_make(UjobsSchemaReader *reader, const UjobsSchemaNode *outer, const char *keyword,
					   const UjobsSchemaName *step, const JsonbValue *value)
{
	UjobsSchemaNode *node = new_node(outer, keyword, step);
	JsonbContainer *object = ujobs_schema_object(value);

	if (object != NULL)
		enter_resource(reader, node, object);
	else if (value->type != jbvBool)
		ujobs_schema_node_refuse(outer ? outer : node, keyword,
								 step ? psprintf("holds at \"%s\" something that is no schema",
												 node->place) : "is not a schema",
								 "A schema is an object or a boolean.");
	else if (reader->resource == NULL)
	{
		reader->resource = palloc0(sizeof(UjobsSchemaResource));
		reader->resource->root = node;
		reader->resource->uri = "";
	}
	node->resource = reader->resource;
	node->is_boolean = object == NULL;
	node->accepts = node->is_boolean && value->val.boolean;
	reader->nodes = lappend(reader->nodes, node);
	if (object != NULL)
		note_identifiers(reader, node, object);
	return node;
}
