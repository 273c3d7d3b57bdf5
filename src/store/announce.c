/*
 * announce.c: the hint of one job, from its row.
 */
#include "postgres.h"

#include "core/hash.h"
#include "core/wakeup.h"
#include "store/announce.h"

void
ujobs_job_announce(const UjobsJob *job, TimestampTz due_at)
{
	UjobsHint	hint = {
		.id = job->id,
		.due_at = due_at,
		.definition_id = job->definition_id,
		.queue_hash = ujobs_hash_queue(job->queue),
		.tenant_hash = ujobs_hash_tenant(job->tenant),
		.priority = job->priority,
		.kind = UJOBS_HINT_JOB
	};

	ujobs_wakeup_note(&hint);
}
