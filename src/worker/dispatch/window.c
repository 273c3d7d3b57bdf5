/*
 * window.c: step 3 of the walk: bounded windows on rows.
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "worker/dispatch/window.h"

void
ujobs_window_init(UjobsWindow *window, MemoryContext context)
{
	memset(window, 0, sizeof(*window));
	window->horizon = DT_NOEND;
	ujobs_heap_init(&window->due, UJOBS_HEAP_BY_URGENCY, context);
	ujobs_heap_init(&window->timers, UJOBS_HEAP_BY_TIME, context);
}

void
ujobs_window_free(UjobsWindow *window)
{
	ujobs_heap_free(&window->due);
	ujobs_heap_free(&window->timers);
}

void
ujobs_window_clear(UjobsWindow *window)
{
	ujobs_heap_clear(&window->due);
	ujobs_heap_clear(&window->timers);
	window->more = false;
	window->horizon = DT_NOEND;
}

bool
ujobs_window_is_empty(const UjobsWindow *window)
{
	return window->due.size + window->timers.size == 0 && !window->more &&
		   window->horizon == DT_NOEND;
}

/* Is the row beyond what the window holds?  Then disk has it. */
static bool
is_beyond_cursor(const UjobsWindow *window, const UjobsHeapItem *item)
{
	UjobsHeapItem last = {window->cursor.id, window->cursor.due_at, window->cursor.priority};

	return window->more && ujobs_heap_compare(UJOBS_HEAP_BY_URGENCY, item, &last) > 0;
}

void
ujobs_window_add_due(UjobsWindow *window, UjobsHeapItem item, int size)
{
	UjobsHeapItem last;

	Assert(size > 0);
	if (is_beyond_cursor(window, &item))
		return;
	ujobs_heap_push(&window->due, item);
	if (window->due.size <= 2 * size)
		return;
	last = ujobs_heap_trim(&window->due, size);
	window->cursor = (UjobsCursor) {last.priority, last.due_at, last.id};
	window->more = true;
}

void
ujobs_window_add_timer(UjobsWindow *window, UjobsHeapItem item, int size)
{
	Assert(size > 0);
	if ((item.due_at > window->horizon && !item.woken) || TIMESTAMP_NOT_FINITE(item.due_at))
		return;
	ujobs_heap_push(&window->timers, item);
	if (window->timers.size > 2 * size)
		window->horizon = ujobs_heap_trim(&window->timers, size).due_at;
}

/* What the window holds beyond its cursor is read again, in order. */
static void
forget_beyond_cursor(UjobsWindow *window)
{
	int			size = window->due.size;

	window->due.size = 0;
	for (int i = 0; i < size; i++)
	{
		UjobsHeapItem item = window->due.item[i];

		if (!is_beyond_cursor(window, &item))
			ujobs_heap_push(&window->due, item);
	}
}

void
ujobs_window_add_range(UjobsWindow *window, UjobsHeapItem first, TimestampTz now)
{
	if (first.due_at > now)
		window->horizon = Min(window->horizon, first.due_at - 1);
	else if (!is_beyond_cursor(window, &first))
	{
		window->cursor = (UjobsCursor) {first.priority, first.due_at, first.id - 1};
		window->more = true;
		forget_beyond_cursor(window);
	}
}

bool
ujobs_window_pop_timer(UjobsWindow *window, TimestampTz now, UjobsHeapItem *item)
{
	const UjobsHeapItem *top = ujobs_heap_top(&window->timers);

	if (top == NULL || top->due_at > now)
		return false;
	*item = ujobs_heap_pop(&window->timers);
	return true;
}

TimestampTz
ujobs_window_next(const UjobsWindow *window)
{
	const UjobsHeapItem *top = ujobs_heap_top(&window->timers);

	if (top != NULL)
		return Min(top->due_at, window->horizon);
	/* A window without timers is filled before its horizon. */
	return window->horizon == DT_NOEND ? DT_NOEND : 0;
}

bool
ujobs_window_wants_due(const UjobsWindow *window, int size)
{
	return window->more && window->due.size < size / 4;
}

bool
ujobs_window_wants_timers(const UjobsWindow *window)
{
	return window->horizon != DT_NOEND && window->timers.size == 0;
}
