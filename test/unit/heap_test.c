/*
 * heap_test.c: the heap against a sorted array.
 *
 * sources: src/model/heap.c
 */
#include "postgres.h"

#include "unit.h"
#include "model/heap.h"

#define MOST 20000

static UjobsHeapItem sorted[MOST];
static int	n = 0;
static UjobsHeapOrder order;

static int
compare_slow(const void *a, const void *b)
{
	const UjobsHeapItem *x = a;
	const UjobsHeapItem *y = b;

	if (order == UJOBS_HEAP_BY_URGENCY && x->priority != y->priority)
		return (int) x->priority - (int) y->priority;
	if (x->due_at != y->due_at)
		return x->due_at > y->due_at ? 1 : -1;
	return x->id > y->id ? 1 : x->id < y->id ? -1 : 0;
}

static bool
same(const UjobsHeapItem *a, const UjobsHeapItem *b)
{
	return a->id == b->id && a->due_at == b->due_at && a->priority == b->priority &&
		a->woken == b->woken;
}

static UjobsHeapItem
random_item(void)
{
	static int64 id = 0;
	UjobsHeapItem item = {.id = ++id, .due_at = (int64) unit_random(50) - 25,
		.woken = unit_random(2)};

	item.priority = unit_random(4) == 0 ? PG_INT16_MIN : unit_random(4) == 0 ?
		PG_INT16_MAX : (int16) unit_random(5);
	if (unit_random(20) == 0)
		item.due_at = unit_random(2) ? PG_INT64_MIN : PG_INT64_MAX;
	return item;
}

static void
push_some(UjobsHeap *heap, int most)
{
	for (int i = unit_random(most) + 1; i > 0; i--)
	{
		sorted[n] = random_item();
		ujobs_heap_push(heap, sorted[n++]);
	}
	pg_qsort(sorted, n, sizeof(UjobsHeapItem), compare_slow);
}

static int
pop_some(UjobsHeap *heap, int count)
{
	int			wrong = 0;

	for (int i = 0; i < count; i++)
	{
		UjobsHeapItem item;

		wrong += !same(ujobs_heap_top(heap), &sorted[i]);
		item = ujobs_heap_pop(heap);
		wrong += !same(&item, &sorted[i]);
	}
	memmove(sorted, sorted + count, (n - count) * sizeof(UjobsHeapItem));
	n -= count;
	return wrong;
}

static int
trim(UjobsHeap *heap)
{
	int			keep = unit_random(n - 1) + 1;
	UjobsHeapItem worst = ujobs_heap_trim(heap, keep);

	n = keep;
	return !same(&worst, &sorted[n - 1]);
}

static void
test_order(const char *name)
{
	UjobsHeap	heap;
	int			wrong = 0;

	n = 0;
	ujobs_heap_init(&heap, order, CurrentMemoryContext);
	wrong += ujobs_heap_top(&heap) != NULL;
	for (int round = 0; round < 300; round++)
	{
		push_some(&heap, 60);
		wrong += heap.size != n;
		if (unit_random(4) == 0 && n > 1)
			wrong += trim(&heap);
		wrong += pop_some(&heap, unit_random(n + 1));
		wrong += heap.size != n || (n == 0) != (ujobs_heap_top(&heap) == NULL);
	}
	wrong += pop_some(&heap, n);
	ujobs_heap_free(&heap);
	unit_ok(wrong == 0, "heap: %s, a sorted array agrees", name);
}

static void
test_memory(void)
{
	UjobsHeap	heap;

	n = 0;
	ujobs_heap_init(&heap, order, CurrentMemoryContext);
	for (int i = 0; i < 3; i++)
		push_some(&heap, 10);
	ujobs_heap_clear(&heap);
	unit_ok(heap.size == 0 && heap.item != NULL, "heap: a small one keeps its memory when cleared");
	for (int i = 0; i < MOST; i++)
		ujobs_heap_push(&heap, random_item());
	ujobs_heap_clear(&heap);
	unit_ok(heap.size == 0 && heap.item == NULL, "heap: a large one gives it back");
	n = 0;
	push_some(&heap, 10);
	unit_ok(pop_some(&heap, n) == 0, "heap: and works afterwards");
}

void
unit_main(void)
{
	order = UJOBS_HEAP_BY_URGENCY;
	test_order("by urgency");
	order = UJOBS_HEAP_BY_TIME;
	test_order("by time");
	test_memory();
}
