/*
 * sink_batch.h: messages on their way to another system, in memory that a thread may read.
 *
 * Filled by the process, sent by the thread of a connection (connection.h), given back with
 * the fate of each message.  Its memory is malloc's, and goes with it.
 */
#ifndef UJOBS_CORE_SINK_BATCH_H
#define UJOBS_CORE_SINK_BATCH_H

#include "postgres.h"

#include "core/sink.h"

typedef struct UjobsSinkBatch
{
	struct UjobsSinkBatch *next;	/* the connection's */
	int			n;
	int			capacity;
	size_t		bytes;			/* of the texts */
	UjobsSinkMessage *messages;
	int64	   *rows;			/* the owner's: what each of them is */
	int		   *attempts;		/* the owner's: tries that counted, before this one */
	bool		broken;			/* the connection failed with it, or before it was sent */
	struct UjobsSinkBatchBlock *blocks;
} UjobsSinkBatch;

/* All but free may raise out_of_memory; none is called by a thread but free. */
extern UjobsSinkBatch *ujobs_sink_batch_new(int capacity);

/* The next message, all zero but for row and attempts; only while n < capacity. */
extern UjobsSinkMessage *ujobs_sink_batch_add(UjobsSinkBatch *batch, int64 row, int attempts);

/* A copy that lives as long as the batch, NUL-terminated. */
extern char *ujobs_sink_batch_text(UjobsSinkBatch *batch, const char *text, size_t size);

/* Memory for n pairs. */
extern UjobsSinkPair *ujobs_sink_batch_pairs(UjobsSinkBatch *batch, int n);

/* NULL is allowed. */
extern void ujobs_sink_batch_free(UjobsSinkBatch *batch);

#endif							/* UJOBS_CORE_SINK_BATCH_H */
