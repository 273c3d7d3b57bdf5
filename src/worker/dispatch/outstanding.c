/*
 * outstanding.c: step 3 of the walk: jobs that executors have.
 */
#include "postgres.h"

#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "worker/dispatch/outstanding.h"

typedef struct Entry
{
	int64		id;
	UjobsTenantQueue *tq;
	UjobsHeapItem item;
	bool		hinted;
	bool		wait_is_over;
	bool		cancelled;
	UjobsHint	hint;
} Entry;

typedef struct Deaths
{
	int64		id;
	int			deaths;
} Deaths;

static HTAB *entries;
static Deaths deaths[32];
static int	next_death = 0;
static bool any_deaths = false;

UjobsReturned *
ujobs_outstanding_append(UjobsReturns *returns, int64 id)
{
	UjobsReturned *job;

	if (returns->n == returns->capacity)
	{
		returns->capacity = Max(64, 2 * returns->capacity);
		returns->job = returns->job == NULL ?
			MemoryContextAlloc(TopMemoryContext, returns->capacity * sizeof(UjobsReturned)) :
			repalloc_huge(returns->job, returns->capacity * sizeof(UjobsReturned));
	}
	job = &returns->job[returns->n++];
	memset(job, 0, sizeof(*job));
	job->id = id;
	return job;
}

void
ujobs_outstanding_init(void)
{
	HASHCTL		ctl = {.keysize = sizeof(int64), .entrysize = sizeof(Entry)};

	entries = hash_create("ujobs outstanding", 1024, &ctl, HASH_ELEM | HASH_BLOBS);
}

static Entry *
find(int64 id)
{
	return hash_search(entries, &id, HASH_FIND, NULL);
}

void
ujobs_outstanding_add(int64 id, UjobsTenantQueue *tq, UjobsHeapItem item)
{
	bool		found;
	Entry	   *e = hash_search(entries, &id, HASH_ENTER, &found);

	if (found && e->tq != NULL)
		e->tq->holders--;
	e->tq = tq;
	e->item = item;
	if (tq != NULL)
		tq->holders++;
	e->hinted = e->wait_is_over = e->cancelled = false;
}

/* Removes the entry; the hints that came meanwhile go with the job. */
static UjobsReturned *
leave(Entry *e, UjobsReturns *returns)
{
	UjobsReturned *job = ujobs_outstanding_append(returns, e->id);

	job->tq = e->tq;
	job->item = e->item;
	job->hinted = e->hinted;
	job->wait_is_over = e->wait_is_over;
	job->hint = e->hint;
	if (e->tq != NULL)
		e->tq->holders--;
	(void) hash_search(entries, &e->id, HASH_REMOVE, NULL);
	return job;
}

void
ujobs_outstanding_finish(int64 id, UjobsReturns *returns)
{
	Entry	   *e = find(id);

	if (e != NULL)
		(void) leave(e, returns);
}

void
ujobs_outstanding_put_back(const UjobsTicket *ticket, TimestampTz not_before, UjobsReturns *returns)
{
	Entry	   *e = find(ticket->id);
	UjobsReturned *job;

	if (e == NULL)
		return;
	job = leave(e, returns);
	job->unrun = true;
	job->not_before = not_before;
	job->crash_probation = (ticket->flags & UJOBS_TICKET_PROBATION) != 0;
	job->ticket = *ticket;
}

bool
ujobs_outstanding_has(int64 id)
{
	return find(id) != NULL;
}

void
ujobs_outstanding_hint(const UjobsHint *hint)
{
	Entry	   *e = find(hint->id);

	if (e == NULL)
		return;
	e->hinted = true;
	e->hint = *hint;
}

void
ujobs_outstanding_wait_is_over(int64 id)
{
	Entry	   *e = find(id);

	if (e != NULL)
		e->wait_is_over = true;
}

bool
ujobs_outstanding_cancel(int64 id)
{
	Entry	   *e = find(id);

	if (e != NULL)
		e->cancelled = true;
	return e != NULL;
}

static int64 *
list(bool only_cancelled, int *n)
{
	HASH_SEQ_STATUS status;
	Entry	   *e;
	int64	   *ids = palloc((hash_get_num_entries(entries) + 1) * sizeof(int64));

	*n = 0;
	hash_seq_init(&status, entries);
	while ((e = hash_seq_search(&status)) != NULL)
	{
		if (e->cancelled || !only_cancelled)
			ids[(*n)++] = e->id;
	}
	return ids;
}

int64 *
ujobs_outstanding_cancelled(int *n)
{
	return list(true, n);
}

int64 *
ujobs_outstanding_all(int *n)
{
	return list(false, n);
}

/* ---- executors that ended with a job at hand ---- */

static Deaths *
find_deaths(int64 id)
{
	for (int i = 0; any_deaths && i < lengthof(deaths); i++)
	{
		if (deaths[i].id == id)
			return &deaths[i];
	}
	return NULL;
}

int
ujobs_outstanding_deaths(int64 id)
{
	const Deaths *d = find_deaths(id);

	return d == NULL ? 0 : d->deaths;
}

int
ujobs_outstanding_count_death(int64 id)
{
	Deaths	   *d = find_deaths(id);

	if (d != NULL)
		return ++d->deaths;
	any_deaths = true;
	deaths[next_death] = (Deaths) {id, 1};
	next_death = (next_death + 1) % lengthof(deaths);
	return 1;
}

void
ujobs_outstanding_clear_deaths(int64 id)
{
	Deaths	   *d = find_deaths(id);

	if (d != NULL)
		d->id = 0;
}
