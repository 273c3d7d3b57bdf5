/*
 * heap.h: a growing binary heap of due rows, by urgency or by time.  Pure.
 */
#ifndef UJOBS_MODEL_HEAP_H
#define UJOBS_MODEL_HEAP_H

#include "postgres.h"

#include "datatype/timestamp.h"

typedef struct UjobsHeapItem
{
	int64		id;
	TimestampTz due_at;
	int16		priority;
	bool		woken;			/* may run before its row says so: its wait is over */
} UjobsHeapItem;

typedef enum UjobsHeapOrder
{
	UJOBS_HEAP_BY_URGENCY,		/* priority, then due_at, then id */
	UJOBS_HEAP_BY_TIME			/* due_at, then id */
} UjobsHeapOrder;

typedef struct UjobsHeap
{
	UjobsHeapOrder order;
	MemoryContext context;
	int			size;
	int			capacity;
	UjobsHeapItem *item;
} UjobsHeap;

extern void ujobs_heap_init(UjobsHeap *heap, UjobsHeapOrder order, MemoryContext context);
extern void ujobs_heap_push(UjobsHeap *heap, UjobsHeapItem item);

/* The heap must not be empty. */
extern UjobsHeapItem ujobs_heap_pop(UjobsHeap *heap);

static inline const UjobsHeapItem *
ujobs_heap_top(const UjobsHeap *heap)
{
	return heap->size > 0 ? &heap->item[0] : NULL;
}

/* Forgets all and gives all memory back. */
extern void ujobs_heap_free(UjobsHeap *heap);

/* Forgets all; gives memory back when there was much. */
extern void ujobs_heap_clear(UjobsHeap *heap);

/* Keeps the best n items and returns the worst one kept; n >= 1, size > n. */
extern UjobsHeapItem ujobs_heap_trim(UjobsHeap *heap, int n);

/* -1, 0, 1 in the given order. */
extern int	ujobs_heap_compare(UjobsHeapOrder order, const UjobsHeapItem *a,
							   const UjobsHeapItem *b);

#endif							/* UJOBS_MODEL_HEAP_H */
