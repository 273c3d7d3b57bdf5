/*
 * table.h: rows of the engine's own tables by primary key, without the executor.
 *
 * For the two or three accesses that every job pays.  A plan would cost ten
 * times as much, and one made while a table was small may read all of it
 * later.  No privileges are checked and no user code can run: the tables have
 * no triggers, and indexes are maintained whatever they are.
 */
#ifndef UJOBS_CORE_TABLE_H
#define UJOBS_CORE_TABLE_H

#include "postgres.h"

#include "access/htup.h"
#include "nodes/pg_list.h"
#include "utils/relcache.h"

typedef enum UjobsTableUse
{
	UJOBS_TABLE_READ,
	UJOBS_TABLE_WRITE
} UjobsTableUse;

/*
 * A table of schema ujobs_internal; raises 42704 when the extension is gone.
 * Locked until commit.
 */
extern Relation ujobs_table_open(const char *name, UjobsTableUse use);
extern void ujobs_table_close(Relation table);

/*
 * The rows with these ids as the active snapshot sees them, copied into the
 * current context; out[i] is NULL where there is none.  The primary key must
 * be one bigint.
 */
extern void ujobs_table_fetch(Relation table, const int64 *ids, int n, HeapTuple *out);

/*
 * All rows whose first primary key column is `id`, in key order, as the active
 * snapshot sees them: HeapTuple in the current context.
 */
extern List *ujobs_table_fetch_group(Relation table, int64 id);

/* The row whose primary key is (id, seq), or NULL; in the current context. */
extern HeapTuple ujobs_table_fetch_member(Relation table, int64 id, int32 seq);

/*
 * Keeps the version that was fetched from being changed or deleted until
 * commit (FOR NO KEY UPDATE), waiting for its holder.  False when
 * it was changed or deleted.
 */
extern bool ujobs_table_lock(Relation table, HeapTuple row);

/* The same without waiting: false also when the row is locked. */
extern bool ujobs_table_try_lock(Relation table, HeapTuple row);

/* Puts these values in place of the version that was fetched; false as for delete. */
extern bool ujobs_table_update(Relation table, HeapTuple row, Datum *values, bool *nulls);

/*
 * Deletes the version that was fetched, waiting for its holder.  False
 * when it was changed or deleted: it is not ours any more.
 */
extern bool ujobs_table_delete(Relation table, HeapTuple row);

/* Inserts n rows; values[i] and nulls[i] have one entry a column. */
extern void ujobs_table_insert(Relation table, Datum **values, bool **nulls, int n);

/*
 * Has the table nothing that only a statement serves, that is triggers and
 * CHECK constraints?
 */
extern bool ujobs_table_is_bare(Relation table);

/*
 * Can a row go in without a statement because no row has its key in the unique
 * index of this name, now *index?  Only the columns of the key are looked at.
 * False also when another transaction may have the key soon, and when the table is not as
 * the extension made it: not bare, or with indexes that need the executor.
 * Never waits.
 */
extern bool ujobs_table_key_is_free(Relation table, const char *unique, Datum *values, Oid *index);

/*
 * After that: inserts the row, which the next command sees.  False when its key
 * was taken meanwhile or the indexes have changed: the row is dead.
 */
extern bool ujobs_table_insert_if_free(Relation table, Oid index, Datum *values, bool *nulls);

#endif							/* UJOBS_CORE_TABLE_H */
