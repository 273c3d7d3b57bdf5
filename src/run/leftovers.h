/*
 * leftovers.h: what a handler leaves in a client's session, told from what was
 * there before.
 *
 * An executor throws everything away between jobs; a client's own cursors,
 * prepared statements and temporary tables must survive a drain.  Settings
 * are not part of it: they are undone by their nesting level.  Session-level
 * advisory locks stay.
 */
#ifndef UJOBS_RUN_LEFTOVERS_H
#define UJOBS_RUN_LEFTOVERS_H

#include "nodes/pg_list.h"

/* What is there now, before a handler runs; in the current context. */
extern List *ujobs_leftovers_note(void);

/* Removes what has come since.  Needs a transaction; may raise. */
extern void ujobs_leftovers_remove(const List *before);

#endif							/* UJOBS_RUN_LEFTOVERS_H */
