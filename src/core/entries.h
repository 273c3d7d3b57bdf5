/*
 * entries.h: index entries of rows that were just stored.
 */
#ifndef UJOBS_CORE_ENTRIES_H
#define UJOBS_CORE_ENTRIES_H

#include "postgres.h"

#include "executor/tuptable.h"
#include "utils/relcache.h"

/*
 * Makes the entries of n stored rows (virtual slots with their tid) in every
 * index of the table, which the caller holds locked.  Raises 23505.
 */
extern void ujobs_entries_insert(Relation table, TupleTableSlot **slots, int n);

/*
 * The unique index of this name, if all indexes of the table are of the kind
 * that needs no executor; otherwise InvalidOid.
 */
extern Oid	ujobs_entries_unique(Relation table, const char *name);

/*
 * For a row that was stored speculatively: its entry in this unique index
 * first, then in the others.  False when the index has its key, or may get it
 * from another transaction, or when the table's indexes have changed since they
 * were asked for; then the row is to be taken back.
 */
extern bool ujobs_entries_insert_if_free(Relation table, Oid unique, TupleTableSlot *slot);

/*
 * Entries of a row that was updated in its page, in indexes that know pages
 * alone (BRIN, which an administrator may have added): others have its entry.
 */
extern void ujobs_entries_summarize(Relation table, TupleTableSlot *slot);

#endif							/* UJOBS_CORE_ENTRIES_H */
