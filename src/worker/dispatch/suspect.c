/*
 * suspect.c: step 3 of the walk, after a crash of the server.
 *
 * A suspect may run for hours, so it has the engine for itself only for
 * ALONE_US and is trusted then; if it crashes the server later with others
 * beside it, again and again, that counts too.  The next attempt of one that
 * was found guilty is a trial again.  One whose queue is paused waits and
 * holds up nobody.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/crashmark.h"
#include "worker/dispatch/admit.h"
#include "worker/dispatch/hand.h"
#include "worker/dispatch/recruit.h"
#include "worker/dispatch/suspect.h"

#define ALONE_US (INT64CONST(2) * USECS_PER_SEC)

typedef struct Suspect
{
	UjobsTicket ticket;
	TimestampTz due_at;
} Suspect;

static List *suspects = NIL;
static bool any = false;		/* since this process began */

void
ujobs_suspect_add(const UjobsTicket *of, TimestampTz due_at)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	Suspect    *suspect = palloc0(sizeof(Suspect));

	suspect->ticket = *of;
	suspect->ticket.begun = 0;
	suspect->ticket.flags = UJOBS_TICKET_SUSPECT | UJOBS_TICKET_WOKEN;	/* it ran, so it may run */
	suspect->ticket.batch = 1;
	suspect->due_at = due_at;
	suspects = lappend(suspects, suspect);
	any = true;
	MemoryContextSwitchTo(old);
}

void
ujobs_suspect_adopt(void)
{
	any = true;
}

void
ujobs_suspect_ended(int64 id)
{
	if (any)
		ujobs_crashmark_clear(MyDatabaseId, id);
}

bool
ujobs_suspect_waits(int64 id)
{
	ListCell   *lc;

	foreach(lc, suspects)
	{
		if (((Suspect *) lfirst(lc))->ticket.id == id)
			return true;
	}
	return false;
}

static bool
is_suspect(const UjobsHand *hand)
{
	return (hand->ticket[hand->head % UJOBS_RING_SIZE].flags & UJOBS_TICKET_SUSPECT) != 0;
}

/* Busy executors that run no suspect, or one whose time alone is not over. */
static int
count_busy(bool suspects_only, TimestampTz now)
{
	int			n = 0;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		const UjobsHand *hand = ujobs_hand_at(i);

		if (!hand->used || ujobs_hand_load(hand) == 0)
			continue;
		if (is_suspect(hand))
			n += now - hand->synced < ALONE_US;
		else
			n += !suspects_only;
	}
	return n;
}

static void
trust_survivors(TimestampTz now)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		const UjobsHand *hand = ujobs_hand_at(i);

		if (hand->used && ujobs_hand_load(hand) > 0 && is_suspect(hand) && now - hand->synced >= ALONE_US)
			ujobs_crashmark_trust(MyDatabaseId, hand->ticket[hand->head % UJOBS_RING_SIZE].id);
	}
}

/* Held back by a pause or a limit it holds up nobody else. */
static bool
may_start(const Suspect *suspect, UjobsLane *lane, TimestampTz now)
{
	UjobsParty *party = ujobs_lane_party(lane, suspect->ticket.tenant_hash);

	return !lane->paused && party != NULL && ujobs_admit_allows(NULL, party, now);
}

/* The first that is due and may start. */
static Suspect *
next_suspect(UjobsLane **lane, TimestampTz now)
{
	ListCell   *lc;

	foreach(lc, suspects)
	{
		Suspect    *suspect = lfirst(lc);

		if (suspect->due_at > now)
			continue;
		*lane = ujobs_lane_find_hash(suspect->ticket.definition_id, suspect->ticket.queue_hash);
		if (*lane == NULL || may_start(suspect, *lane, now))
			return suspect;
	}
	return NULL;
}

static void
forget(Suspect *suspect)
{
	suspects = list_delete_ptr(suspects, suspect);
	pfree(suspect);
}

static void
start(Suspect *suspect, UjobsLane *lane, TimestampTz now)
{
	UjobsTicket *ticket = &suspect->ticket;
	UjobsParty *party = ujobs_lane_party(lane, ticket->tenant_hash);

	if (ujobs_hand_deaths(ticket->id) >= UJOBS_MAX_DEATHS)
		ticket->flags |= UJOBS_TICKET_BLAME;
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		UjobsHand  *hand = ujobs_hand_at(i);

		if (!hand->used || hand->leaving || hand->role != lane->role ||
			hand->state == UJOBS_SLOT_STARTING || ujobs_hand_load(hand) > 0)
			continue;
		if (!ujobs_admit_push(i, ticket, party, (UjobsHeapItem) {ticket->id, now, 0}))
			continue;
		hand->synced = now;
		ujobs_crashmark_try(MyDatabaseId, ticket->id);
		forget(suspect);
		ujobs_slot_wake(i);
		return;
	}
	ujobs_recruit(lane->role, ujobs_admit_hands_of(lane->role) == 0, now);
}

bool
ujobs_suspect_serve(TimestampTz now)
{
	UjobsLane  *lane = NULL;
	Suspect    *suspect;

	if (!any)
		return false;
	trust_survivors(now);
	if (count_busy(true, now) > 0)
		return true;
	suspect = next_suspect(&lane, now);
	if (suspect == NULL)
		return false;
	if (lane == NULL)
	{
		/* Its row is gone. */
		ujobs_crashmark_clear(MyDatabaseId, suspect->ticket.id);
		forget(suspect);
	}
	else if (count_busy(false, now) == 0)
		start(suspect, lane, now);
	return true;
}

TimestampTz
ujobs_suspect_next(TimestampTz now)
{
	TimestampTz next = DT_NOEND;
	ListCell   *lc;

	foreach(lc, suspects)
	{
		const Suspect *suspect = lfirst(lc);

		if (suspect->due_at > now)
			next = Min(next, suspect->due_at);
	}
	return next;
}
