/*
 * bulk.h: many rows into a table of the engine at once, without the executor.
 *
 * For calls that bring thousands of rows with a unique key.  Which keys are
 * taken is asked before; who takes one meanwhile makes the insert fail, and
 * the caller has a subtransaction and a slower way at hand.
 */
#ifndef UJOBS_CORE_BULK_H
#define UJOBS_CORE_BULK_H

#include "postgres.h"

#include "utils/relcache.h"

/* What is to be inserted.  The callback may allocate; what it does is freed soon. */
typedef struct UjobsBulk
{
	int			n;
	Size		(*row) (void *arg, int i, Datum *values, bool *nulls);	/* gives the row's bytes, roughly */
	void	   *arg;
	const char *ordered;		/* name of the index that is filled last, */
	const int  *order;			/* and all rows in its order */
} UjobsBulk;

/*
 * Can rows of this table go in this way?  Not when it has triggers, CHECK
 * constraints, or an index of a kind that an administrator may have added and
 * that needs the executor.
 */
extern bool ujobs_bulk_possible(Relation table, const char *ordered);

/*
 * Inserts all rows.  Rows go to disk and into the other indexes in the given
 * order, and into the ordered index in its own.  Only there, and so in its
 * order, another transaction's key is waited for; raises 23505 when it stays.
 */
extern void ujobs_bulk_insert(Relation table, const UjobsBulk *bulk);

/* A key of an index on (int, text, text), the texts of collation "C". */
typedef struct UjobsBulkKey
{
	const char *group;
	const char *name;
} UjobsBulkKey;

/* Many keys that begin with the same number, in order of the index. */
typedef struct UjobsBulkKeys
{
	int32		first;
	const UjobsBulkKey *key;
	int			n;
} UjobsBulkKeys;

/*
 * Marks which keys have a row that lives, or whose fate another transaction
 * has not decided.  Where the index has nothing between many keys, they cost
 * one look.
 */
extern void ujobs_bulk_look(Relation table, const char *ordered, const UjobsBulkKeys *keys,
							bool *taken);

#endif							/* UJOBS_CORE_BULK_H */
