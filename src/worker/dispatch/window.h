/*
 * window.h: the part of a tenant queue's rows that is held in memory.
 *
 * `due` holds the most urgent rows that may start, `timers` the soonest of
 * those that may not start yet.  Both are bounded by the size that the caller
 * gives; rows beyond them stay on disk, after `cursor` and after `horizon`,
 * and are read when there is space.  Pure: reads no rows and no clock.
 */
#ifndef UJOBS_WORKER_DISPATCH_WINDOW_H
#define UJOBS_WORKER_DISPATCH_WINDOW_H

#include "model/heap.h"
#include "store/dispatch_store.h"

typedef struct UjobsWindow
{
	UjobsHeap	due;
	UjobsHeap	timers;
	bool		more;			/* due rows after cursor are on disk */
	UjobsCursor cursor;
	TimestampTz horizon;		/* later rows are on disk only */
} UjobsWindow;

/* Empty, its heaps in that context; frees them again. */
extern void ujobs_window_init(UjobsWindow *window, MemoryContext context);
extern void ujobs_window_free(UjobsWindow *window);

/* Forgets all rows: there are none, or they are read anew. */
extern void ujobs_window_clear(UjobsWindow *window);

/* The window and the rows on disk that it knows of are empty. */
extern bool ujobs_window_is_empty(const UjobsWindow *window);

/* A row may start now; ignored when it is among those on disk. */
extern void ujobs_window_add_due(UjobsWindow *window, UjobsHeapItem item, int size);

/*
 * A row may start at item.due_at.  A woken item is on no disk and is kept
 * whatever the horizon is; if a trimmed window loses it, the next look at all
 * waits finds it again.
 */
extern void ujobs_window_add_timer(UjobsWindow *window, UjobsHeapItem item, int size);

/* Rows from `first` on may start: they are to be read from disk. */
extern void ujobs_window_add_range(UjobsWindow *window, UjobsHeapItem first, TimestampTz now);

/* Takes out the next timer that has come due; false when there is none. */
extern bool ujobs_window_pop_timer(UjobsWindow *window, TimestampTz now, UjobsHeapItem *item);

/*
 * The instant of the next timer or of the horizon; 0: timers are to be read
 * now; DT_NOEND: nothing is timed.
 */
extern TimestampTz ujobs_window_next(const UjobsWindow *window);

/* Are due rows, or later ones, to be read from disk? */
extern bool ujobs_window_wants_due(const UjobsWindow *window, int size);
extern bool ujobs_window_wants_timers(const UjobsWindow *window);

#endif							/* UJOBS_WORKER_DISPATCH_WINDOW_H */
