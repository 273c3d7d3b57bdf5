/*
 * sink_batch.c: a batch of messages and the blocks of memory that hold its texts.
 */
#include "postgres.h"

#include "core/sink_batch.h"

#define BLOCK_SIZE (64 * 1024)

typedef struct UjobsSinkBatchBlock
{
	struct UjobsSinkBatchBlock *next;
	size_t		size;
	size_t		used;
	char		data[FLEXIBLE_ARRAY_MEMBER];
} UjobsSinkBatchBlock;

static void
out_of_memory(size_t size)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory"),
			 errdetail("%zu bytes were asked for a batch of messages.", size)));
}

static void *
take_zeroed(size_t n, size_t size)
{
	void	   *memory = calloc(n, size);

	if (memory == NULL)
		out_of_memory(n * size);
	return memory;
}

UjobsSinkBatch *
ujobs_sink_batch_new(int capacity)
{
	UjobsSinkBatch *parcel = take_zeroed(1, sizeof(UjobsSinkBatch));

	parcel->capacity = capacity;
	parcel->messages = calloc(capacity, sizeof(UjobsSinkMessage));
	parcel->rows = calloc(capacity, sizeof(int64));
	parcel->attempts = calloc(capacity, sizeof(int));
	if (parcel->messages == NULL || parcel->rows == NULL || parcel->attempts == NULL)
	{
		ujobs_sink_batch_free(parcel);
		out_of_memory(capacity * sizeof(UjobsSinkMessage));
	}
	return parcel;
}

UjobsSinkMessage *
ujobs_sink_batch_add(UjobsSinkBatch *parcel, int64 row, int attempts)
{
	Assert(parcel->n < parcel->capacity);
	parcel->rows[parcel->n] = row;
	parcel->attempts[parcel->n] = attempts;
	return &parcel->messages[parcel->n++];
}

static void *
take_room(UjobsSinkBatch *parcel, size_t size)
{
	UjobsSinkBatchBlock *block = parcel->blocks;
	void	   *room;

	size = MAXALIGN(size);
	if (block == NULL || block->size - block->used < size)
	{
		size_t		block_size = Max(size, BLOCK_SIZE);

		block = malloc(offsetof(UjobsSinkBatchBlock, data) + block_size);
		if (block == NULL)
			out_of_memory(block_size);
		block->size = block_size;
		block->used = 0;
		block->next = parcel->blocks;
		parcel->blocks = block;
	}
	room = block->data + block->used;
	block->used += size;
	return room;
}

char *
ujobs_sink_batch_text(UjobsSinkBatch *parcel, const char *text, size_t size)
{
	char	   *copy = take_room(parcel, size + 1);

	memcpy(copy, text, size);
	copy[size] = '\0';
	parcel->bytes += size;
	return copy;
}

UjobsSinkPair *
ujobs_sink_batch_pairs(UjobsSinkBatch *parcel, int n)
{
	return take_room(parcel, n * sizeof(UjobsSinkPair));
}

void
ujobs_sink_batch_free(UjobsSinkBatch *parcel)
{
	if (parcel == NULL)
		return;
	while (parcel->blocks != NULL)
	{
		UjobsSinkBatchBlock *block = parcel->blocks;

		parcel->blocks = block->next;
		free(block);
	}
	free(parcel->messages);
	free(parcel->rows);
	free(parcel->attempts);
	free(parcel);
}
