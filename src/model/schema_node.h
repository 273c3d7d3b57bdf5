/*
 * schema_node.h: a compiled JSON schema.  For schema_*.c alone.
 *
 * A node is one schema object or boolean.  Names, numbers and values point
 * into the jsonb that was compiled.  Every edge is a pointer, so references
 * cost nothing at check time and the nodes form a graph.
 *
 * schema_compile.c walks the document, makes nodes here and fills them;
 * schema_reference.c resolves references.  schema_check.c visits values with
 * nodes, schema_value.c has the keywords that need no other schema.
 */
#ifndef UJOBS_MODEL_SCHEMA_NODE_H
#define UJOBS_MODEL_SCHEMA_NODE_H

#include "lib/stringinfo.h"
#include "nodes/pg_list.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"

#include "core/noreturn.h"
#include "model/pattern.h"

/* Bits of the keyword type. */
#define UJOBS_TYPE_NULL 0x01
#define UJOBS_TYPE_BOOLEAN 0x02
#define UJOBS_TYPE_OBJECT 0x04
#define UJOBS_TYPE_ARRAY 0x08
#define UJOBS_TYPE_NUMBER 0x10
#define UJOBS_TYPE_STRING 0x20
#define UJOBS_TYPE_INTEGER 0x40

typedef struct UjobsSchemaNode UjobsSchemaNode;

typedef struct UjobsSchemaName
{
	const char *text;			/* not terminated */
	int			length;
} UjobsSchemaName;

typedef struct UjobsSchemaNames
{
	int			n;
	UjobsSchemaName *name;
} UjobsSchemaNames;

typedef struct UjobsSchemaNodes
{
	int			n;
	UjobsSchemaNode **node;
} UjobsSchemaNodes;

/* A member of properties, patternProperties, dependentSchemas or dependentRequired. */
typedef struct UjobsSchemaMember
{
	UjobsSchemaName name;
	UjobsPattern *pattern;
	UjobsSchemaNode *node;
	UjobsSchemaNames required;
} UjobsSchemaMember;

typedef struct UjobsSchemaMembers
{
	int			n;
	UjobsSchemaMember *member;	/* in jsonb's order of keys */
} UjobsSchemaMembers;

typedef struct UjobsSchemaAnchor
{
	char	   *name;
	UjobsSchemaNode *node;
} UjobsSchemaAnchor;

/* The document, or a part of it with an $id of its own. */
typedef struct UjobsSchemaResource
{
	char	   *uri;			/* without fragment; "" when the document has no $id */
	UjobsSchemaNode *root;
	List	   *dynamic;		/* UjobsSchemaAnchor: its $dynamicAnchors */
} UjobsSchemaResource;

struct UjobsSchemaNode
{
	char	   *place;			/* JSON pointer from the document's root */
	const char *keyword;		/* whose value it is */
	UjobsSchemaResource *resource;
	bool		is_boolean;
	bool		accepts;		/* of a boolean schema */
	bool		unique_items;
	bool		visiting;		/* while cycles are looked for */
	bool		visited;

	int			types;			/* UJOBS_TYPE bits; 0 = all */
	const JsonbValue *constant;
	List	   *values;			/* JsonbValue: enum */
	bool		has_values;

	Numeric		multiple_of;	/* NULL = none, as in all of these */
	Numeric		maximum;
	Numeric		exclusive_maximum;
	Numeric		minimum;
	Numeric		exclusive_minimum;

	int64		max_length;		/* characters; -1 = none, as in all of these */
	int64		min_length;
	int64		max_items;
	int64		min_items;
	int64		max_contains;
	int64		min_contains;
	int64		max_properties;
	int64		min_properties;
	UjobsPattern *pattern;

	UjobsSchemaNodes prefix_items;
	UjobsSchemaNode *items;
	UjobsSchemaNode *contains;
	UjobsSchemaNode *unevaluated_items;

	UjobsSchemaMembers properties;
	UjobsSchemaMembers pattern_properties;
	UjobsSchemaNode *additional_properties;
	UjobsSchemaNode *property_names;
	UjobsSchemaNode *unevaluated_properties;
	UjobsSchemaNames required;
	UjobsSchemaMembers dependent_required;
	UjobsSchemaMembers dependent_schemas;
	UjobsSchemaMembers dependencies;	/* each of either kind: the older spelling */

	UjobsSchemaNodes all_of;
	UjobsSchemaNodes any_of;
	UjobsSchemaNodes one_of;
	UjobsSchemaNode *negated;
	UjobsSchemaNode *condition;
	UjobsSchemaNode *consequence;
	UjobsSchemaNode *alternative;

	UjobsSchemaNode *reference;
	UjobsSchemaNode *dynamic_reference; /* where it leads by itself */
	char	   *dynamic_name;	/* looked for in the dynamic scope; NULL = as a plain reference */
};

struct UjobsSchema
{
	UjobsSchemaNode *root;
};

/* ---- compiling ---- */

/* A $ref or $dynamicRef, or a name of $anchor or $dynamicAnchor, as met. */
typedef struct UjobsSchemaMention
{
	UjobsSchemaNode *node;
	const char *keyword;
	char	   *text;
} UjobsSchemaMention;

typedef struct UjobsSchemaReader
{
	UjobsSchemaResource *resource;	/* of the schema at hand */
	List	   *resources;
	List	   *nodes;
	List	   *references;		/* UjobsSchemaMention */
	List	   *anchors;		/* UjobsSchemaMention */
} UjobsSchemaReader;

/* Raises UJ003: at this place this keyword ... */
pg_noreturn extern void ujobs_schema_node_refuse(const UjobsSchemaNode *node, const char *keyword,
												 const char *reason, const char *hint);

/*
 * A node for the schema `value` at the place below `outer`; step NULL: directly
 * below the keyword.  Its identifiers and references are noted.  An $id changes
 * reader->resource, which the caller sets back when all in it is read.  Raises
 * UJ003 when the value is no schema.
 */
extern UjobsSchemaNode *ujobs_schema_node_make(UjobsSchemaReader *reader,
											   const UjobsSchemaNode *outer,
											   const char *keyword, const UjobsSchemaName *step,
											   const JsonbValue *value);

/* Appends "/" and one step of a JSON pointer, escaped. */
extern void ujobs_schema_node_append_step(StringInfo out, const char *text, int length);

/* ---- jsonb ---- */

/* Whether the value is an object, or an array, and which. */
static inline JsonbContainer *
ujobs_schema_object(const JsonbValue *value)
{
	return value->type == jbvBinary && JsonContainerIsObject(value->val.binary.data) ?
		value->val.binary.data : NULL;
}

static inline JsonbContainer *
ujobs_schema_array(const JsonbValue *value)
{
	return value->type == jbvBinary && JsonContainerIsArray(value->val.binary.data) ?
		value->val.binary.data : NULL;
}

/* Root of a jsonb as a value. */
static inline void
ujobs_schema_root_value(Jsonb *jsonb, JsonbValue *value)
{
	if (JsonbExtractScalar(&jsonb->root, value))
		return;
	value->type = jbvBinary;
	value->val.binary.data = &jsonb->root;
	value->val.binary.len = VARSIZE(jsonb) - VARHDRSZ;
}

/* The next item of an array; false at its end. */
static inline bool
ujobs_schema_next_item(JsonbIterator **iterator, JsonbValue *value)
{
	JsonbIteratorToken token;

	while ((token = JsonbIteratorNext(iterator, value, true)) != WJB_DONE)
	{
		if (token == WJB_ELEM)
			return true;
	}
	return false;
}

/* The next member of an object; false at its end. */
static inline bool
ujobs_schema_next_member(JsonbIterator **iterator, UjobsSchemaName *name, JsonbValue *value)
{
	JsonbIteratorToken token;

	while ((token = JsonbIteratorNext(iterator, value, true)) != WJB_DONE)
	{
		if (token == WJB_VALUE)
			return true;
		if (token == WJB_KEY)
		{
			name->text = value->val.string.val;
			name->length = value->val.string.len;
		}
	}
	return false;
}

/* Whether a number has no fraction. */
static inline bool
ujobs_schema_is_integer(Numeric number)
{
	Datum		whole = DirectFunctionCall2(numeric_trunc, NumericGetDatum(number),
											Int32GetDatum(0));

	return DatumGetBool(DirectFunctionCall2(numeric_eq, whole, NumericGetDatum(number)));
}

/* "1 item", "2 items". */
static inline const char *
ujobs_schema_plural(int64 n)
{
	return n == 1 ? "" : "s";
}

#endif							/* UJOBS_MODEL_SCHEMA_NODE_H */
