/*
 * choice.c: step 3 of the walk: who is next.
 *
 * The first tenant queue among the lanes that an executor may serve wins: the
 * best priority, then the tenant that was served longest ago, then age.  A
 * lane at its limit, or paused, is passed over; a tenant at its limit is set
 * aside and costs nothing until a unit of it is free.
 */
#include "postgres.h"

#include "core/hash.h"
#include "store/definition_store.h"
#include "worker/dispatch/choice.h"

/* May one more under this limit go to the executor?  NULL: to one that has nothing. */
static inline bool
cap_allows(const UjobsCap *cap, const UjobsExecutor *executor)
{
	if (ujobs_limit_is_free(cap))
		return true;
	return executor != NULL && ujobs_executor_holds(executor, cap) && ujobs_limit_is_kept(cap);
}

bool
ujobs_choice_lane_allows(const UjobsLane *lane, const UjobsExecutor *executor)
{
	if (lane->paused || !lane->loaded)
		return false;
	return cap_allows(lane->definition_cap, executor) && cap_allows(lane->queue_cap, executor);
}

bool
ujobs_choice_allows(UjobsTenantQueue *tq, const UjobsExecutor *executor, TimestampTz now)
{
	if (!ujobs_choice_lane_allows(tq->lane, executor))
		return false;
	return tq->cap == NULL ||
		(cap_allows(tq->cap, executor) && ujobs_limit_rate_allows(tq->cap, now));
}

static void
consider(UjobsChoice *choice, UjobsTenantQueue *tq)
{
	if (tq == NULL)
		return;
	if (choice->best == NULL || ujobs_tenant_queue_compare(tq, choice->best) < 0)
	{
		choice->second = choice->best;
		choice->best = tq;
	}
	else if (choice->second == NULL || ujobs_tenant_queue_compare(tq, choice->second) < 0)
		choice->second = tq;
}

/*
 * The queues of a tenant at its limit are set aside; the executor that holds
 * its unit may take more of them all the same.
 */
static void
consider_held(UjobsChoice *choice, const UjobsExecutor *executor, TimestampTz now)
{
	for (int i = 0; i < executor->n_units; i++)
	{
		UjobsCap   *cap = executor->unit[i].cap;
		dlist_iter	iter;

		if (cap->key.kind != UJOBS_CAP_TENANT || dlist_is_empty(&cap->waiting))
			continue;
		dlist_foreach(iter, &cap->waiting)
		{
			UjobsTenantQueue *tq = dlist_container(UjobsTenantQueue, blocked_node, iter.cur);

			if (tq->lane->role == executor->role && ujobs_tenant_queue_waiting(tq) > 0 &&
				ujobs_choice_allows(tq, executor, now))
				consider(choice, tq);
		}
	}
}

UjobsChoice
ujobs_choice_for_executor(const UjobsExecutor *executor, TimestampTz now)
{
	UjobsChoice choice = {NULL, NULL};

	if (!ujobs_choice_has_units(executor))
		return choice;
	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		UjobsLane  *lane = ujobs_lane_at(i);

		if (lane->waiting > 0 && lane->role == executor->role &&
			ujobs_choice_lane_allows(lane, executor))
			consider(&choice, ujobs_tenant_queue_best(lane, now));
	}
	consider_held(&choice, executor, now);
	return choice;
}

static bool
asks_for(const UjobsClaimAsk *ask, const UjobsLane *lane)
{
	uint64		hash = ujobs_hash_claimed_queue(lane->key.queue);

	for (int i = 0; i < ask->n_queues; i++)
	{
		if (ask->queue[i] == hash)
			return true;
	}
	return false;
}

static bool
may_work(const UjobsClaimAsk *ask, const UjobsLane *lane)
{
	const UjobsDefinition *definition = ujobs_definition_by_id(lane->key.definition_id);

	return definition != NULL && ujobs_definition_may_work(definition, ask->role);
}

UjobsTenantQueue *
ujobs_choice_for_claim(const UjobsClaimAsk *ask, TimestampTz now)
{
	UjobsChoice choice = {NULL, NULL};

	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		UjobsLane  *lane = ujobs_lane_at(i);

		if (lane->outside && lane->waiting > 0 && ujobs_choice_lane_allows(lane, NULL) &&
			asks_for(ask, lane) && may_work(ask, lane))
			consider(&choice, ujobs_tenant_queue_best(lane, now));
	}
	return choice.best;
}
