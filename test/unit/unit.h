/*
 * unit.h: what a unit test has from its host, unit.c.
 *
 * A test defines unit_main.  It may call every function of the server that
 * needs no shared memory, no catalogue and no transaction: palloc, ereport,
 * jsonb, numeric, regular expressions, hash tables.
 */
#ifndef UNIT_H
#define UNIT_H

#include "postgres.h"

#include "utils/jsonb.h"

typedef struct UnitError
{
	bool		raised;
	char		sqlstate[6];
	const char *name;			/* "" but for errors of class UJ */
	const char *message;		/* "" when there is none, as in both below */
	const char *detail;
	const char *hint;
} UnitError;

/* The test.  Runs in TopMemoryContext, in UTF8, with the C locale. */
extern void unit_main(void);

/* One line of TAP. */
extern void unit_ok(bool holds, const char *name,...) pg_attribute_printf(2, 3);

/* A comment in the output: why the next line will say "not ok". */
extern void unit_note(const char *text,...) pg_attribute_printf(1, 2);

/* Runs a statement and keeps the error that it raises. */
#define unit_try(error, statement) \
	do { \
		MemoryContext unit_context_ = CurrentMemoryContext; \
		memset(error, 0, sizeof(*(error))); \
		PG_TRY(); \
		{ statement; } \
		PG_CATCH(); \
		{ MemoryContextSwitchTo(unit_context_); unit_error_keep(error); } \
		PG_END_TRY(); \
	} while (0)

extern void unit_error_keep(UnitError *error);

/* A text as jsonb. */
extern Jsonb *unit_jsonb(const char *text);

/* A random number in [0, n): the same on every machine, for n of 1 or more. */
extern uint32 unit_random(uint32 n);
extern void unit_random_seed(uint64 seed);

/* What check_stack_depth allows; large at first, because the sanitizers make frames large. */
#define UNIT_STACK 4096
extern void unit_stack_limit(int kilobytes);

#endif							/* UNIT_H */
