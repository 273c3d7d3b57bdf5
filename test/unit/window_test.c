/*
 * window_test.c: windows on rows against all rows, sorted.
 *
 * The test plays the disk: rows come as hints in any order, the most urgent
 * row is taken out again and again, and when the window wants rows they are
 * read from the disk after its cursor, as the dispatcher does.
 *
 * sources: src/worker/dispatch/window.c src/model/heap.c
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "unit.h"
#include "worker/dispatch/window.h"

#define MOST 3000

static UjobsHeapItem disk[MOST];
static int	n_disk;

static int
compare(const void *a, const void *b)
{
	return ujobs_heap_compare(UJOBS_HEAP_BY_URGENCY, a, b);
}

static void
remove_row(int64 id)
{
	for (int i = 0; i < n_disk; i++)
	{
		if (disk[i].id != id)
			continue;
		memmove(&disk[i], &disk[i + 1], (n_disk - i - 1) * sizeof(UjobsHeapItem));
		n_disk--;
		return;
	}
}

/* Up to `size` rows after the cursor, which moves to the last of them. */
static void
refill(UjobsWindow *window, int size)
{
	UjobsHeapItem last = {window->cursor.id, window->cursor.due_at, window->cursor.priority};
	int			n = 0;

	pg_qsort(disk, n_disk, sizeof(UjobsHeapItem), compare);
	for (int i = 0; i < n_disk && n < size; i++)
	{
		if (compare(&disk[i], &last) <= 0)
			continue;
		ujobs_heap_push(&window->due, disk[i]);
		window->cursor = (UjobsCursor) {disk[i].priority, disk[i].due_at, disk[i].id};
		n++;
	}
	window->more = n == size;
}

static UjobsHeapItem
new_row(void)
{
	static int64 id = 0;
	UjobsHeapItem item = {.id = ++id, .due_at = unit_random(1000), .priority = unit_random(3)};

	disk[n_disk++] = item;
	return item;
}

/* Is this the most urgent row of the disk? */
static bool
is_first(const UjobsHeapItem *item)
{
	for (int i = 0; i < n_disk; i++)
	{
		if (compare(&disk[i], item) < 0)
			return false;
	}
	return true;
}

static void
in_order(int size)
{
	UjobsWindow window;
	int			wrong = 0;
	int			taken = 0;
	int			largest = 0;

	n_disk = 0;
	ujobs_window_init(&window, CurrentMemoryContext);
	while (taken < MOST)
	{
		for (int i = unit_random(3 * size); i > 0 && n_disk < MOST; i--)
			ujobs_window_add_due(&window, new_row(), size);
		if (unit_random(10) == 0 && n_disk < MOST)
			ujobs_window_add_range(&window, new_row(), 1000);	/* rows that no hint names */
		for (int i = unit_random(4 * size); i > 0; i--)
		{
			UjobsHeapItem item;

			if (ujobs_window_wants_due(&window, size) || (window.due.size == 0 && window.more))
				refill(&window, size);
			largest = Max(largest, window.due.size);
			if (window.due.size == 0)
				break;
			item = ujobs_heap_pop(&window.due);
			wrong += !is_first(&item);
			remove_row(item.id);
			taken++;
		}
	}
	while (window.due.size > 0 || window.more)
	{
		if (window.due.size == 0)
			refill(&window, size);
		else
			remove_row(ujobs_heap_pop(&window.due).id);
	}
	unit_ok(wrong == 0, "a window of %d gives %d rows in the order of all rows", size, taken);
	unit_ok(n_disk == 0, "and loses none");
	unit_ok(largest <= 3 * size, "and stays small: at most %d rows", largest);
	unit_ok(ujobs_window_is_empty(&window), "and knows that it is empty");
	ujobs_window_free(&window);
}

static void
timers(void)
{
	UjobsWindow window;
	UjobsHeapItem item;
	TimestampTz last = 0;
	int			n = 0;
	int			wrong = 0;

	ujobs_window_init(&window, CurrentMemoryContext);
	unit_ok(ujobs_window_next(&window) == DT_NOEND, "nothing is timed in an empty window");
	for (int i = 0; i < 100; i++)
		ujobs_window_add_timer(&window,
							   (UjobsHeapItem){.id = i + 1, .due_at = 1 + unit_random(500)}, 20);
	unit_ok(window.timers.size <= 40, "timers are bounded: %d", window.timers.size);
	unit_ok(window.horizon != DT_NOEND, "later ones are on disk only");
	ujobs_window_add_timer(&window, (UjobsHeapItem) {.id = 1000, .due_at = window.horizon + 1}, 20);
	wrong = window.timers.size;
	ujobs_window_add_timer(
		&window, (UjobsHeapItem){.id = 1001, .due_at = window.horizon + 1, .woken = true}, 20);
	unit_ok(window.timers.size == wrong + 1,
			"a woken one is kept beyond the horizon, another is not");
	ujobs_window_add_timer(&window, (UjobsHeapItem) {.id = 1002, .due_at = DT_NOEND}, 20);
	unit_ok(window.timers.size == wrong + 1, "one that is never due is not kept");
	unit_ok(!ujobs_window_pop_timer(&window, 0, &item), "none has come due");
	wrong = 0;
	while (ujobs_window_pop_timer(&window, 1000, &item))
	{
		wrong += item.due_at < last;
		last = item.due_at;
		n++;
	}
	unit_ok(n > 20 && wrong == 0, "%d come in the order of time", n);
	unit_ok(ujobs_window_wants_timers(&window) && ujobs_window_next(&window) == 0,
			"without timers the rows behind the horizon are wanted at once");
	ujobs_window_clear(&window);
	unit_ok(ujobs_window_is_empty(&window) && !ujobs_window_wants_timers(&window),
			"cleared, it wants nothing");
	ujobs_window_free(&window);
}

void
unit_main(void)
{
	for (int size = 16; size <= 256; size *= 4)
		in_order(size);
	timers();
}
