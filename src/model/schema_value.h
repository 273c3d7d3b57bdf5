/*
 * schema_value.h: one value under one schema object.  For schema_check.c alone.
 */
#ifndef UJOBS_MODEL_SCHEMA_VALUE_H
#define UJOBS_MODEL_SCHEMA_VALUE_H

#include "model/schema_node.h"

/* Where in the input a value is. */
typedef struct UjobsSchemaPlace
{
	const struct UjobsSchemaPlace *outer;
	const char *key;			/* of an object; NULL: item of an array */
	int			length;
	int			index;
	bool		is_name;		/* the name of the member, not its value */
} UjobsSchemaPlace;

/* The resources entered so far, innermost first. */
typedef struct UjobsSchemaScope
{
	const struct UjobsSchemaScope *outer;
	const UjobsSchemaResource *resource;
} UjobsSchemaScope;

typedef struct UjobsSchemaRun
{
	int			quiet;			/* above 0: failing is a normal answer, no message is made */
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
	bool	   *seen;			/* members or items evaluated so far; NULL: not needed */
} UjobsSchemaVisit;

/* Every keyword that looks at no other schema, but uniqueItems, which comes after the items. */
extern bool ujobs_schema_value_check(const UjobsSchemaVisit *v);

/* uniqueItems; the value is an array. */
extern bool ujobs_schema_value_check_unique(const UjobsSchemaVisit *v);

/* Whether the value, an object, has a member of that name. */
extern bool ujobs_schema_value_has_member(const UjobsSchemaVisit *v, const UjobsSchemaName *name);

/* Records what does not fit, unless quiet; returns false. */
extern bool ujobs_schema_value_fail(const UjobsSchemaVisit *visit, const char *keyword,
									const char *rule,...) pg_attribute_printf(3, 4);

#endif							/* UJOBS_MODEL_SCHEMA_VALUE_H */
