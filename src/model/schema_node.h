/*
 * schema_node.h: a compiled JSON schema.  For schema_*.c alone.
 *
 * A node is one schema object or boolean.  Names, numbers and values point
 * into the jsonb that was compiled.  Every edge is a pointer, so references
 * cost nothing at check time and the nodes form a graph.
 *
 * schema_compile.c makes nodes, schema_keyword.c fills them, one reader a
 * keyword, schema_reference.c ties references together; schema_check.c visits
 * a value with a node, schema_object.c and schema_array.c its members.
 */
#ifndef UJOBS_MODEL_SCHEMA_NODE_H
#define UJOBS_MODEL_SCHEMA_NODE_H

#include "nodes/pg_list.h"
#include "utils/numeric.h"

#include "core/noreturn.h"
#include "model/json_schema.h"
#include "model/schema_pattern.h"

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
	bool		verdict;		/* of a boolean schema */
	bool		unique_items;
	bool		visiting;		/* while loops are looked for */
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
pg_noreturn extern void ujobs_schema_refuse(const UjobsSchemaNode *node, const char *keyword, const char *reason,
								const char *hint);

/* The schema `value` at the place below `outer`, and all in it.  step NULL: directly below the keyword. */
extern UjobsSchemaNode *ujobs_schema_read(UjobsSchemaReader *reader, const UjobsSchemaNode *outer,
										  const char *keyword, const UjobsSchemaName *step,
										  const JsonbValue *value);

/* Fills a node from one member of its object; raises UJ003 when it is no keyword or has a bad value. */
extern void ujobs_schema_read_keyword(UjobsSchemaReader *reader, UjobsSchemaNode *node,
									  const UjobsSchemaName *name, const JsonbValue *value);

/* Ties all references; raises UJ003 when one leads out of the document or in circles. */
extern void ujobs_schema_tie(UjobsSchemaReader *reader);

/* RFC 3986, 5.2: a reference, without its fragment, seen from a base. */
extern char *ujobs_uri_resolve(const char *base, const char *reference);

/* A URI's fragment, decoded; "" when it has none. */
extern char *ujobs_uri_fragment(const char *uri);

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
extern void ujobs_schema_root_value(Jsonb *jsonb, JsonbValue *value);

/* Whether a number has no fraction. */
extern bool ujobs_schema_is_integer(Numeric number);

/* ---- checking ---- */

/* Where in the input a value stands. */
typedef struct UjobsSchemaPlace
{
	const struct UjobsSchemaPlace *outer;
	const char *key;			/* of an object; NULL: item of an array */
	int			length;
	int			index;
	bool		is_name;		/* not the member's value but its name */
} UjobsSchemaPlace;

/* The resources entered so far, innermost first. */
typedef struct UjobsSchemaScope
{
	const struct UjobsSchemaScope *outer;
	const UjobsSchemaResource *resource;
} UjobsSchemaScope;

typedef struct UjobsSchemaRun
{
	int			quiet;			/* above 0: failing is a normal answer, nobody reads why */
	char	   *fault;
} UjobsSchemaRun;

/* One value under one schema. */
typedef struct UjobsSchemaVisit
{
	UjobsSchemaRun *run;
	const UjobsSchemaNode *node;
	const JsonbValue *value;
	const UjobsSchemaPlace *place;
	const UjobsSchemaScope *scope;
	bool	   *seen;			/* members or items evaluated so far; NULL when nobody asks */
} UjobsSchemaVisit;

extern bool ujobs_schema_visit(const UjobsSchemaVisit *given);

/* Another schema for the same value; what it evaluated counts when it fits. */
extern bool ujobs_schema_visit_same(const UjobsSchemaVisit *visit, const UjobsSchemaNode *node);

/* A schema for a member or item. */
extern bool ujobs_schema_visit_inner(const UjobsSchemaVisit *visit, const UjobsSchemaNode *node,
									 const JsonbValue *value, const UjobsSchemaPlace *place);

/* The same, when not to fit is a normal answer. */
extern bool ujobs_schema_try_inner(const UjobsSchemaVisit *visit, const UjobsSchemaNode *node,
								   const JsonbValue *value, const UjobsSchemaPlace *place);

/* Records what does not fit, unless quiet; returns false. */
extern bool ujobs_schema_fail(const UjobsSchemaVisit *visit, const char *keyword, const char *rule,...) pg_attribute_printf(3, 4);

/* Keywords for objects, for arrays; and unevaluatedProperties, unevaluatedItems. */
extern bool ujobs_schema_visit_object(const UjobsSchemaVisit *visit);
extern bool ujobs_schema_visit_array(const UjobsSchemaVisit *visit);
extern bool ujobs_schema_visit_unevaluated_members(const UjobsSchemaVisit *visit);
extern bool ujobs_schema_visit_unevaluated_items(const UjobsSchemaVisit *visit);

/* "1 item", "2 items". */
static inline const char *
ujobs_schema_plural(int64 n)
{
	return n == 1 ? "" : "s";
}

/* Equal as JSON values: 1 and 1.0 are. */
extern int	ujobs_schema_compare(const JsonbValue *a, const JsonbValue *b);

#endif							/* UJOBS_MODEL_SCHEMA_NODE_H */
