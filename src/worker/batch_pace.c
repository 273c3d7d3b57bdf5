/*
 * batch_pace.c: small tables in this process's memory, where a newcomer may take
 * the place of an older entry: what is forgotten is learnt again.
 */
#include "postgres.h"

#include "worker/batch_pace.h"

#define SHRUNK_DEFINITIONS 16
#define CANCELLED_JOBS 8
#define MAX_BATCH 1000

/* So often in a row a cancelled statement costs no attempt. */
#define MAX_CANCELS 5

static struct
{
	int32		definition_id;
	int			size;
}			shrunk[SHRUNK_DEFINITIONS];

static struct
{
	int64		id;
	int			times;
}			cancelled[CANCELLED_JOBS];

int
ujobs_batch_pace_batch_size(const UjobsTicket *ticket)
{
	int			i = ticket->definition_id % SHRUNK_DEFINITIONS;

	if (ticket->batch <= 1)
		return 1;
	if (shrunk[i].definition_id != ticket->definition_id)
		return ticket->batch;
	return Min(shrunk[i].size, ticket->batch);
}

void
ujobs_batch_pace_batch_ended(const UjobsTicket *ticket, bool good, int tried)
{
	int			i = ticket->definition_id % SHRUNK_DEFINITIONS;

	if (good && shrunk[i].definition_id != ticket->definition_id)
		return;
	shrunk[i].definition_id = ticket->definition_id;
	shrunk[i].size = good ? Min(shrunk[i].size * 2, MAX_BATCH) : Max(tried / 2, 1);
}

bool
ujobs_batch_pace_forgive_cancel(int64 job_id)
{
	int			i = job_id % CANCELLED_JOBS;

	if (cancelled[i].id != job_id)
		cancelled[i].times = 0;
	cancelled[i].id = job_id;
	return ++cancelled[i].times <= MAX_CANCELS;
}
