/*
 * query.h: prepare once, bind, run, check.
 *
 * A statement is a row of store/catalogue_*.inc.  It is prepared at its first run
 * in a session and kept.  All functions need an open identity section.
 */
#ifndef UJOBS_CORE_QUERY_H
#define UJOBS_CORE_QUERY_H

#include "postgres.h"

#include "utils/jsonb.h"
#include "utils/timestamp.h"

#define UJOBS_MAX_ARGS 24

/* Called by _PG_init. */
extern void ujobs_query_init(void);

struct SPITupleTable;
struct _SPI_plan;

typedef struct UjobsStatement
{
	const char *name;
	const char *sql;
	int			nargs;
	Oid			argtypes[UJOBS_MAX_ARGS];
	struct _SPI_plan *plan;		/* this session's, NULL before the first run */
	bool		planned;
} UjobsStatement;

/* Arguments are bound in order; a bind after the last one is an error. */
typedef struct UjobsArgs
{
	int			n;
	Datum		value[UJOBS_MAX_ARGS];
	char		null[UJOBS_MAX_ARGS];	/* 'n' or ' ' */
} UjobsArgs;

typedef struct UjobsResult
{
	uint64		rows;			/* returned, or affected */
	struct SPITupleTable *table;
} UjobsResult;

static inline void
ujobs_query_bind(UjobsArgs *args, Datum value)
{
	Assert(args->n < UJOBS_MAX_ARGS);
	args->value[args->n] = value;
	args->null[args->n++] = ' ';
}

static inline void
ujobs_query_bind_null(UjobsArgs *args)
{
	Assert(args->n < UJOBS_MAX_ARGS);
	args->value[args->n] = (Datum) 0;
	args->null[args->n++] = 'n';
}

/* A pointer-like Datum that is NULL when it is 0. */
static inline void
ujobs_query_bind_maybe(UjobsArgs *args, Datum value)
{
	if (value == (Datum) 0)
		ujobs_query_bind_null(args);
	else
		ujobs_query_bind(args, value);
}

/* C strings as text; NULL binds NULL. */
extern void ujobs_query_bind_text(UjobsArgs *args, const char *value);
extern void ujobs_query_bind_jsonb(UjobsArgs *args, Jsonb *value);	/* NULL binds NULL */

/*
 * Arrays of pass-by-value or jsonb elements; nulls may be NULL.  Built in the
 * current context.
 */
extern void ujobs_query_bind_array(UjobsArgs *args, Oid element, Datum *values, bool *nulls, int n);

/* Runs a statement with a fresh snapshot (see the effects of this transaction). */
extern UjobsResult ujobs_query_run(UjobsStatement *statement, UjobsArgs *args);

/* The same for a pure SELECT: uses the active snapshot, no command counter. */
extern UjobsResult ujobs_query_read(UjobsStatement *statement, UjobsArgs *args);

/*
 * Columns of a row, counted from 0.  Pointers are copied into `into`, which
 * must outlive the section (normally identity.caller).
 */
extern bool ujobs_query_result_is_null(const UjobsResult *result, uint64 row, int column);
extern Datum ujobs_query_result_datum(const UjobsResult *result, uint64 row, int column);	/* by value types, 0 if NULL */
extern char *ujobs_query_result_text(const UjobsResult *result, uint64 row, int column,
									 MemoryContext into);
extern Jsonb *ujobs_query_result_jsonb(const UjobsResult *result, uint64 row, int column,
									   MemoryContext into);
extern Datum ujobs_query_result_copy(const UjobsResult *result, uint64 row, int column, MemoryContext into);	/* any type, 0 if NULL */

#endif							/* UJOBS_CORE_QUERY_H */
