/*
 * expiry.c: leases that ran out.
 *
 * All of them are looked at in the order in which they ran out, page by page,
 * from where the last page ended: those that cannot be ended now (a program is
 * just about to ack, or a row is broken) hold up no other, and are tried
 * again soon.  A commit that makes a lease end earlier than was expected rings
 * the scheduler (core/claim.h).
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/claim.h"
#include "core/engine.h"
#include "core/shmem.h"
#include "run/external.h"
#include "store/lease_store.h"
#include "worker/expiry.h"
#include "worker/worker.h"

#define PAGE 100				/* leases of one transaction */
#define AGAIN_US (INT64CONST(1) * USECS_PER_SEC)
#define SAFETY_US (INT64CONST(60) * USECS_PER_SEC)

static TimestampTz look_at = 0;
static bool left_some;			/* of this round */

static void
expire_one(int64 id, TimestampTz now)
{
	UjobsLease	lease;
	UjobsJob   *job = ujobs_lease_hold_expired(id, now, &lease);

	if (job != NULL)
		ujobs_external_expire(job, &lease);
	else if (!ujobs_lease_drop_stale(id))
		left_some = true;
}

typedef struct Ends
{
	const UjobsLeaseEnd *page;
	int			n;
	TimestampTz now;
} Ends;

static void
expire_some(void *arg)
{
	const Ends *ends = arg;

	for (int i = 0; i < ends->n; i++)
		expire_one(ends->page[i].job_id, ends->now);
}

/* In its own transaction, so that a row that cannot be written spoils no other. */
static void
try_one(const UjobsLeaseEnd *end, TimestampTz now)
{
	ErrorData  *error = ujobs_worker_try(expire_some, &(Ends) {end, 1, now});

	if (error == NULL)
		return;
	ereport(LOG, (errmsg("ujobs could not end the lease of job " INT64_FORMAT ", will try again: %s", end->job_id,
						 error->message)));
	FreeErrorData(error);
	left_some = true;
}

static bool
try_page(const UjobsLeaseEnd *page, int n, TimestampTz now)
{
	ErrorData  *error = ujobs_worker_try(expire_some, &(Ends) {page, n, now});

	if (error == NULL)
		return true;
	FreeErrorData(error);
	return false;
}

static void
expire_all(TimestampTz now)
{
	UjobsLeaseEnd after = {DT_NOBEGIN, PG_INT64_MIN};
	UjobsLeaseEnd page[PAGE];
	int			n;

	do
	{
		CHECK_FOR_INTERRUPTS();
		ujobs_worker_begin();
		n = ujobs_lease_expired(&after, now, page, PAGE);
		ujobs_worker_commit();
		if (n > 0 && !try_page(page, n, now))
		{
			for (int i = 0; i < n; i++)
				try_one(&page[i], now);
		}
	} while (n == PAGE);
}

static TimestampTz
next_end(TimestampTz now)
{
	TimestampTz next;

	ujobs_worker_begin();
	next = ujobs_lease_next(now);
	ujobs_worker_commit();
	return next;
}

TimestampTz
ujobs_expiry_round(void)
{
	UjobsArea  *area = ujobs_engine_area();
	TimestampTz now = GetCurrentTimestamp();

	if (area == NULL)
		return now + SAFETY_US;
	if (now < Min(look_at, ujobs_claim_next_end(area)))
		return Min(look_at, ujobs_claim_next_end(area));
	/* A session that commits an earlier end from here on wakes this process. */
	ujobs_claim_expect_end(area, DT_NOEND);
	left_some = false;
	expire_all(now);
	look_at = Min(next_end(now), now + SAFETY_US);
	if (left_some)
		look_at = Min(look_at, now + AGAIN_US);
	return Min(look_at, ujobs_claim_next_end(area));
}
