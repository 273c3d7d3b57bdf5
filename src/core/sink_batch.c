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
	UjobsSinkBatch *batch = take_zeroed(1, sizeof(UjobsSinkBatch));

	batch->capacity = capacity;
	batch->messages = calloc(capacity, sizeof(UjobsSinkMessage));
	batch->rows = calloc(capacity, sizeof(int64));
	batch->attempts = calloc(capacity, sizeof(int));
	if (batch->messages == NULL || batch->rows == NULL || batch->attempts == NULL)
	{
		ujobs_sink_batch_free(batch);
		out_of_memory(capacity * sizeof(UjobsSinkMessage));
	}
	return batch;
}

UjobsSinkMessage *
ujobs_sink_batch_add(UjobsSinkBatch *batch, int64 row, int attempts)
{
	Assert(batch->n < batch->capacity);
	batch->rows[batch->n] = row;
	batch->attempts[batch->n] = attempts;
	return &batch->messages[batch->n++];
}

static void *
take_space(UjobsSinkBatch *batch, size_t size)
{
	UjobsSinkBatchBlock *block = batch->blocks;
	void	   *space;

	size = MAXALIGN(size);
	if (block == NULL || block->size - block->used < size)
	{
		size_t		block_size = Max(size, BLOCK_SIZE);

		block = malloc(offsetof(UjobsSinkBatchBlock, data) + block_size);
		if (block == NULL)
			out_of_memory(block_size);
		block->size = block_size;
		block->used = 0;
		block->next = batch->blocks;
		batch->blocks = block;
	}
	space = block->data + block->used;
	block->used += size;
	return space;
}

char *
ujobs_sink_batch_text(UjobsSinkBatch *batch, const char *text, size_t size)
{
	char	   *copy = take_space(batch, size + 1);

	memcpy(copy, text, size);
	copy[size] = '\0';
	batch->bytes += size;
	return copy;
}

UjobsSinkPair *
ujobs_sink_batch_pairs(UjobsSinkBatch *batch, int n)
{
	return take_space(batch, n * sizeof(UjobsSinkPair));
}

void
ujobs_sink_batch_free(UjobsSinkBatch *batch)
{
	if (batch == NULL)
		return;
	while (batch->blocks != NULL)
	{
		UjobsSinkBatchBlock *block = batch->blocks;

		batch->blocks = block->next;
		free(block);
	}
	free(batch->messages);
	free(batch->rows);
	free(batch->attempts);
	free(batch);
}
