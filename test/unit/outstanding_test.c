/*
 * outstanding_test.c: what is told of a job when an executor does not have it any more.
 *
 * sources: src/worker/dispatch/outstanding.c
 */
#include "postgres.h"

#include "unit.h"
#include "worker/dispatch/outstanding.h"

static UjobsTenantQueue tq;

static void
add(int64 id)
{
	ujobs_outstanding_add(id, &tq, (UjobsHeapItem) {.id = id});
}

/* A hint that comes while an executor has the job's ticket comes back with it, run or not. */
static void
hints_are_kept(void)
{
	UjobsReturns returns = {0};
	UjobsHint	hint = {.id = 1, .kind = UJOBS_HINT_JOB, .priority = 7};
	UjobsTicket ticket = {.id = 1};

	add(1);
	ujobs_outstanding_hint(&hint);
	ujobs_outstanding_put_back(&ticket, 42, &returns);
	unit_ok(returns.n == 1 && returns.job[0].unrun && returns.job[0].not_before == 42,
			"a ticket that was not run comes back");
	unit_ok(returns.job[0].hinted && returns.job[0].hint.priority == 7, "with its hint");
	unit_ok(!ujobs_outstanding_has(1) && tq.holders == 0, "and is forgotten");
	add(1);
	ujobs_outstanding_finish(1, &returns);
	unit_ok(returns.n == 2 && !returns.job[1].unrun && !returns.job[1].hinted,
			"the next run has no hint of the last one");
	ujobs_outstanding_hint(&hint);
	add(1);
	ujobs_outstanding_finish(1, &returns);
	unit_ok(!returns.job[2].hinted, "nor one that came before it");
	ujobs_outstanding_finish(1, &returns);
	unit_ok(returns.n == 3, "a job that is not known is not told");
}

static void
waits_and_probation(void)
{
	UjobsReturns returns = {0};
	UjobsTicket ticket = {.id = 2, .flags = UJOBS_TICKET_PROBATION, .definition_id = 5};

	add(2);
	ujobs_outstanding_wait_is_over(2);
	ujobs_outstanding_put_back(&ticket, 0, &returns);
	unit_ok(returns.job[0].wait_is_over, "a wait that is over is told");
	unit_ok(returns.job[0].crash_probation && returns.job[0].ticket.definition_id == 5,
			"a job on probation stays so");
}

static void
cancels(void)
{
	UjobsReturns returns = {0};
	int64	   *ids;
	int			n;

	unit_ok(!ujobs_outstanding_cancel(3), "a job that no executor has is not cancelled there");
	add(3);
	add(4);
	unit_ok(ujobs_outstanding_cancel(3), "one that is there is");
	ids = ujobs_outstanding_cancelled(&n);
	unit_ok(n == 1 && ids[0] == 3, "until it comes back");
	ujobs_outstanding_finish(3, &returns);
	add(3);
	(void) ujobs_outstanding_cancelled(&n);
	unit_ok(n == 0, "its next run is not cancelled");
	ujobs_outstanding_finish(3, &returns);
	ujobs_outstanding_finish(4, &returns);
}

/* Any order of many: each comes back once. */
static void
many(void)
{
	UjobsReturns returns = {0};
	int			differs = 0;

	for (int64 id = 1; id <= 1000; id++)
		add(id);
	for (int64 id = 1000; id >= 1; id--)
		ujobs_outstanding_finish(id, &returns);
	for (int i = 0; i < returns.n; i++)
		differs += returns.job[i].id != 1000 - i;
	unit_ok(returns.n == 1000 && differs == 0, "a thousand come back in the order of their ends");
	unit_ok(tq.holders == 0, "and their tenant queue is held by none");
}

static void
deaths(void)
{
	unit_ok(ujobs_outstanding_deaths(9) == 0, "no executor ended with this job");
	for (int i = 1; i <= 3; i++)
		unit_ok(ujobs_outstanding_count_death(9) == i, "death %d", i);
	ujobs_outstanding_clear_deaths(9);
	unit_ok(ujobs_outstanding_deaths(9) == 0, "they are forgotten when it ends");
}

void
unit_main(void)
{
	ujobs_outstanding_init();
	hints_are_kept();
	waits_and_probation();
	cancels();
	many();
	deaths();
}
