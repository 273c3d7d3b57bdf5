/*
 * heap.c: jobs that are ready, or come due, as a binary heap in an array.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "model/heap.h"

#define FIRST_CAPACITY 16
#define MODEST_CAPACITY 8192

int
ujobs_heap_compare(UjobsHeapOrder order, const UjobsHeapItem *a, const UjobsHeapItem *b)
{
	if (order == UJOBS_HEAP_BY_URGENCY && a->priority != b->priority)
		return a->priority < b->priority ? -1 : 1;
	if (a->due_at != b->due_at)
		return a->due_at < b->due_at ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return 0;
}

void
ujobs_heap_init(UjobsHeap *heap, UjobsHeapOrder order, MemoryContext context)
{
	memset(heap, 0, sizeof(*heap));
	heap->order = order;
	heap->context = context;
}

static inline bool
before(const UjobsHeap *heap, int a, int b)
{
	return ujobs_heap_compare(heap->order, &heap->item[a], &heap->item[b]) < 0;
}

static inline void
swap(UjobsHeap *heap, int a, int b)
{
	UjobsHeapItem item = heap->item[a];

	heap->item[a] = heap->item[b];
	heap->item[b] = item;
}

static void
grow(UjobsHeap *heap)
{
	int			capacity = heap->capacity == 0 ? FIRST_CAPACITY : heap->capacity * 2;
	Size		bytes = capacity * sizeof(UjobsHeapItem);

	heap->item = heap->item == NULL ? MemoryContextAlloc(heap->context, bytes) :
		repalloc(heap->item, bytes);
	heap->capacity = capacity;
}

void
ujobs_heap_push(UjobsHeap *heap, UjobsHeapItem item)
{
	int			i = heap->size;

	if (heap->size == heap->capacity)
		grow(heap);
	heap->item[heap->size++] = item;
	while (i > 0 && before(heap, i, (i - 1) / 2))
	{
		swap(heap, i, (i - 1) / 2);
		i = (i - 1) / 2;
	}
}

/* Moves an item down until its children come after it. */
static void
move_down(UjobsHeap *heap, int i)
{
	for (;;)
	{
		int			best = i;
		int			left = 2 * i + 1;

		if (left < heap->size && before(heap, left, best))
			best = left;
		if (left + 1 < heap->size && before(heap, left + 1, best))
			best = left + 1;
		if (best == i)
			return;
		swap(heap, i, best);
		i = best;
	}
}

UjobsHeapItem
ujobs_heap_pop(UjobsHeap *heap)
{
	UjobsHeapItem top;

	Assert(heap->size > 0);
	top = heap->item[0];
	heap->item[0] = heap->item[--heap->size];
	move_down(heap, 0);
	return top;
}

void
ujobs_heap_clear(UjobsHeap *heap)
{
	heap->size = 0;
	if (heap->capacity > MODEST_CAPACITY)
	{
		pfree(heap->item);
		heap->item = NULL;
		heap->capacity = 0;
	}
}

void
ujobs_heap_free(UjobsHeap *heap)
{
	if (heap->item != NULL)
		pfree(heap->item);
	heap->item = NULL;
	heap->size = heap->capacity = 0;
}

UjobsHeapItem
ujobs_heap_trim(UjobsHeap *heap, int n)
{
	UjobsHeapItem *kept;
	UjobsHeapItem worst;

	Assert(n >= 1 && heap->size > n);
	kept = MemoryContextAlloc(heap->context, n * sizeof(UjobsHeapItem));
	for (int i = 0; i < n; i++)
		kept[i] = ujobs_heap_pop(heap);
	worst = kept[n - 1];
	pfree(heap->item);
	heap->item = kept;			/* in order, so a heap */
	heap->size = heap->capacity = n;
	return worst;
}
