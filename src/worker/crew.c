/*
 * crew.c: step 3 of the walk: admission.
 *
 * A `hand` is one executor.  Its tickets are kept here in the order they were
 * pushed; the executor only counts how many it has finished with, so one
 * comparison of counters tells which jobs are back.
 */
#include "postgres.h"

#include <signal.h>

#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/crashmark.h"
#include "core/guc.h"
#include "core/wakeup.h"
#include "worker/crew.h"
#include "worker/recruit.h"

/* An executor gets about this much work ahead, so that a wake-up pays for many jobs. */
#define AHEAD_US 4000
#define SLOW_US 5000
#define MAX_KINDS 16			/* definitions that one ring may mix */
#define MAX_DEATHS 5			/* then the job is blamed */

typedef struct Outstanding
{
	int64		id;
	UjobsLane  *lane;			/* NULL: adopted, its lane is found at the next rescan */
	UjobsHeapItem item;
	bool		again;			/* a hint came while it was with an executor */
	bool		cancelled;
	UjobsHint	hint;
} Outstanding;

typedef struct Kind
{
	int32		definition_id;
	int			count;
} Kind;

typedef struct Hand
{
	bool		used;
	uint32		generation;
	Oid			role;
	UjobsSlotState state;
	uint64		done;			/* of the slot's `taken`, as of the last sync */
	uint32		head;
	uint32		tail;
	UjobsTicket ticket[UJOBS_RING_SIZE];
	Kind		kind[MAX_KINDS];
	int			n_kinds;
	double		job_us;			/* moving average */
	TimestampTz synced;
	TimestampTz slow_at;		/* look then whether its job is slow */
} Hand;

typedef struct Deaths
{
	int64		id;
	int			deaths;
} Deaths;

static UjobsArea *area;
static Hand *hands;				/* one per slot of the cluster */
static HTAB *outstanding;
static Deaths deaths[32];
static int	next_death = 0;
static List *suspects = NIL;	/* UjobsTicket *, not yet run alone */
static bool suspect_running = false;
static bool any_cancelled = false;
static bool want_notify = false;
static TimestampTz look_at = DT_NOEND;

void
ujobs_crew_init(UjobsArea *my_area)
{
	HASHCTL		ctl = {.keysize = sizeof(int64), .entrysize = sizeof(Outstanding)};

	area = my_area;
	hands = MemoryContextAllocZero(TopMemoryContext, UJOBS_MAX_SLOTS * sizeof(Hand));
	outstanding = hash_create("ujobs outstanding", 1024, &ctl, HASH_ELEM | HASH_BLOBS);
}

static inline uint32
load_of(const Hand *hand)
{
	return hand->tail - hand->head;
}

static Kind *
kind_of(Hand *hand, int32 definition_id)
{
	for (int i = 0; i < hand->n_kinds; i++)
	{
		if (hand->kind[i].definition_id == definition_id)
			return &hand->kind[i];
	}
	return NULL;
}

static void
kind_add(Hand *hand, int32 definition_id)
{
	Kind	   *kind = kind_of(hand, definition_id);

	if (kind == NULL)
	{
		kind = &hand->kind[hand->n_kinds++];
		kind->definition_id = definition_id;
		kind->count = 0;
	}
	kind->count++;
}

static void
kind_remove(Hand *hand, int32 definition_id)
{
	Kind	   *kind = kind_of(hand, definition_id);

	if (--kind->count == 0)
		*kind = hand->kind[--hand->n_kinds];
}

static int
holders_of(int32 definition_id)
{
	int			n = 0;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
		n += hands[i].used && kind_of(&hands[i], definition_id) != NULL;
	return n;
}

/* ---- outstanding jobs ---- */

static void
remember(const UjobsTicket *ticket, UjobsLane *lane, UjobsHeapItem item)
{
	bool		found;
	Outstanding *o = hash_search(outstanding, &ticket->id, HASH_ENTER, &found);

	o->lane = lane;
	o->item = item;
	o->again = o->cancelled = false;
}

bool
ujobs_crew_has(int64 id)
{
	return hash_search(outstanding, &id, HASH_FIND, NULL) != NULL;
}

void
ujobs_crew_again(const UjobsHint *hint)
{
	Outstanding *o = hash_search(outstanding, &hint->id, HASH_FIND, NULL);

	if (o == NULL)
		return;
	o->again = true;
	o->hint = *hint;
}

/* The executor is finished with it; a hint that came meanwhile counts now. */
static void
forget(int64 id, TimestampTz now)
{
	Outstanding *o = hash_search(outstanding, &id, HASH_FIND, NULL);

	if (o == NULL)
		return;
	if (o->again)
		(void) ujobs_lane_hint(&o->hint, now);
	(void) hash_search(outstanding, &id, HASH_REMOVE, NULL);
}

/* It was not run: back to where it came from. */
static void
put_back(int64 id, TimestampTz not_before, TimestampTz now)
{
	Outstanding *o = hash_search(outstanding, &id, HASH_FIND, NULL);

	if (o == NULL)
		return;
	if (o->lane != NULL)
	{
		UjobsHeapItem item = o->item;

		item.due_at = Max(item.due_at, not_before);
		ujobs_lane_add(o->lane, item, now);
	}
	else
		ujobs_wakeup_rescan_now();	/* adopted: only the rows know its lane */
	(void) hash_search(outstanding, &id, HASH_REMOVE, NULL);
}

/* ---- deaths ---- */

static int
deaths_of(int64 id)
{
	for (int i = 0; i < lengthof(deaths); i++)
	{
		if (deaths[i].id == id)
			return deaths[i].deaths;
	}
	return 0;
}

static int
count_death(int64 id)
{
	for (int i = 0; i < lengthof(deaths); i++)
	{
		if (deaths[i].id == id)
			return ++deaths[i].deaths;
	}
	deaths[next_death].id = id;
	deaths[next_death].deaths = 1;
	next_death = (next_death + 1) % lengthof(deaths);
	return 1;
}

static void
clear_deaths(int64 id)
{
	for (int i = 0; i < lengthof(deaths); i++)
	{
		if (deaths[i].id == id)
			deaths[i].id = 0;
	}
}

/* ---- following the executors ---- */

static void
finished_one(Hand *hand, TimestampTz now)
{
	UjobsTicket *ticket = &hand->ticket[hand->head++ % UJOBS_RING_SIZE];

	kind_remove(hand, ticket->definition_id);
	if (ticket->flags & UJOBS_TICKET_SUSPECT)
	{
		ujobs_crashmark_clear(MyDatabaseId, ticket->id);
		suspect_running = false;
	}
	if (next_death > 0 || deaths[0].id != 0)
		clear_deaths(ticket->id);
	forget(ticket->id, now);
}

/* An executor went with tickets in its hand; the first of them may be why. */
static void
bury(int index, TimestampTz now)
{
	Hand	   *hand = &hands[index];
	bool		first = true;

	while (load_of(hand) > 0)
	{
		UjobsTicket *ticket = &hand->ticket[hand->head++ % UJOBS_RING_SIZE];
		TimestampTz not_before = now;

		if (first && hand->state != UJOBS_SLOT_STARTING)
		{
			int			n = count_death(ticket->id);

			if (n > 1)
				not_before = now + ((int64) 500000 << Min(n, 6));
		}
		first = false;
		if (ticket->flags & UJOBS_TICKET_SUSPECT)
		{
			suspect_running = false;
			ujobs_crew_suspect(ticket->id, ticket->definition_id);
			(void) hash_search(outstanding, &ticket->id, HASH_REMOVE, NULL);
		}
		else
			put_back(ticket->id, not_before, now);
	}
	if (hand->state == UJOBS_SLOT_STARTING)
		ujobs_recruit_failed(hand->role, now);
	memset(hand, 0, sizeof(*hand));
}

static void
learn_pace(Hand *hand, int n, TimestampTz now)
{
	double		us = (double) (now - hand->synced) / n;

	if (us < 0)
		us = 0;
	hand->job_us = hand->job_us == 0 ? us : 0.7 * hand->job_us + 0.3 * us;
}

static bool
sync_hand(int index, TimestampTz now)
{
	Hand	   *hand = &hands[index];
	UjobsSlot	slot;
	int			n;

	if (!hand->used)
		return false;
	ujobs_slot_copy(index, &slot);
	if (slot.generation != hand->generation || slot.state == UJOBS_SLOT_FREE)
	{
		/* What it finished before it went. */
		for (n = slot.generation == hand->generation ? (int) (slot.taken - hand->done) : 0; n > 0; n--)
			finished_one(hand, now);
		bury(index, now);
		return true;
	}
	if (slot.state == UJOBS_SLOT_STARTING && ujobs_recruit_is_lost(index))
	{
		ujobs_slot_free(index, hand->generation);
		bury(index, now);
		return true;
	}
	if (hand->state == UJOBS_SLOT_STARTING && slot.state != UJOBS_SLOT_STARTING)
		ujobs_recruit_arrived(hand->role);
	n = (int) (slot.taken - hand->done);
	hand->state = slot.state;
	hand->done = slot.taken;
	if (n > 0)
		learn_pace(hand, n, now);
	if (n > 0 || load_of(hand) == 0)
		hand->synced = now;
	for (int i = 0; i < n; i++)
		finished_one(hand, now);
	return n > 0;
}

static void
retry_cancels(void)
{
	HASH_SEQ_STATUS status;
	Outstanding *o;

	if (!any_cancelled)
		return;
	any_cancelled = false;
	hash_seq_init(&status, outstanding);
	while ((o = hash_seq_search(&status)) != NULL)
	{
		if (o->cancelled)
		{
			any_cancelled = true;
			ujobs_crew_cancel(o->id);
		}
	}
}

bool
ujobs_crew_sync(TimestampTz now)
{
	bool		changed = false;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
		changed |= sync_hand(i, now);
	retry_cancels();
	return changed;
}

void
ujobs_crew_cancel(int64 id)
{
	Outstanding *o = hash_search(outstanding, &id, HASH_FIND, NULL);

	if (o == NULL)
		return;
	/* Admitted but perhaps not begun: tried again until its ticket is back. */
	o->cancelled = any_cancelled = true;
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		if (hands[i].used && ujobs_slot_cancel(i, id))
			return;
	}
}

void
ujobs_crew_adopt(void)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		Hand	   *hand = &hands[i];
		UjobsSlot	slot;

		ujobs_slot_copy(i, &slot);
		if (slot.state == UJOBS_SLOT_FREE || slot.database != MyDatabaseId)
			continue;
		hand->used = true;
		hand->generation = slot.generation;
		hand->role = slot.role;
		hand->state = slot.state;
		hand->done = slot.taken;
		hand->synced = GetCurrentTimestamp();
		hand->head = hand->tail = 0;
		for (uint32 n = (uint32) slot.taken; n != slot.tail; n++)
		{
			UjobsTicket ticket = area->ring[i][n % UJOBS_RING_SIZE];

			hand->ticket[hand->tail++ % UJOBS_RING_SIZE] = ticket;
			kind_add(hand, ticket.definition_id);
			remember(&ticket, NULL, (UjobsHeapItem) {ticket.id, 0, 0});
		}
	}
}

/* ---- handing out ---- */

/* How many tickets an executor should hold: AHEAD_US of its work, one at least. */
static int
depth_of(const Hand *hand)
{
	double		us = hand->job_us;

	if (us <= 0)
		us = 200;
	return (int) Min(Max(AHEAD_US / us, 1), UJOBS_RING_SIZE - 1);
}

static int
busy_hands(void)
{
	int			n = 0;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
		n += hands[i].used && load_of(&hands[i]) > 0;
	return n;
}

/* May this executor take one more of the lane?  hand NULL: any new executor. */
static bool
may_take(UjobsLane *lane, Hand *hand)
{
	if (lane->due.size == 0 || lane->paused || lane->outside || !lane->loaded)
		return false;
	if (hand != NULL && kind_of(hand, lane->key.definition_id) != NULL)
		return true;
	if (hand != NULL && hand->n_kinds == MAX_KINDS)
		return false;
	return lane->concurrency == 0 || holders_of(lane->key.definition_id) < lane->concurrency;
}

/* The lane with the most urgent job for this executor, and the next best one's head. */
static UjobsLane *
best_lane(Hand *hand, UjobsLane **second)
{
	UjobsLane  *best = NULL;

	*second = NULL;
	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		UjobsLane  *lane = ujobs_lane_at(i);

		if (lane->due.size == 0 || lane->role != hand->role || !may_take(lane, hand))
			continue;
		if (best == NULL || ujobs_heap_compare(UJOBS_HEAP_BY_URGENCY, ujobs_heap_top(&lane->due),
											   ujobs_heap_top(&best->due)) < 0)
		{
			*second = best;
			best = lane;
		}
		else if (*second == NULL || ujobs_heap_compare(UJOBS_HEAP_BY_URGENCY, ujobs_heap_top(&lane->due),
													   ujobs_heap_top(&(*second)->due)) < 0)
			*second = lane;
	}
	return best;
}

static bool
is_suspect(int64 id)
{
	ListCell   *lc;

	foreach(lc, suspects)
	{
		if (((UjobsTicket *) lfirst(lc))->id == id)
			return true;
	}
	return false;
}

static bool
push(int index, const UjobsTicket *ticket, UjobsLane *lane, UjobsHeapItem item)
{
	Hand	   *hand = &hands[index];

	if (ujobs_slot_push(area, index, ticket, 1) == 0)
		return false;
	hand->ticket[hand->tail++ % UJOBS_RING_SIZE] = *ticket;
	kind_add(hand, ticket->definition_id);
	remember(ticket, lane, item);
	return true;
}

/* Pops up to quantum jobs of the best lane while it stays the best. */
static int
fill(int index, int quantum)
{
	UjobsLane  *second;
	UjobsLane  *lane = best_lane(&hands[index], &second);
	int			n = 0;

	while (lane != NULL && n < quantum && lane->due.size > 0)
	{
		UjobsHeapItem item = *ujobs_heap_top(&lane->due);
		UjobsTicket ticket = {item.id, lane->key.definition_id, 0, lane->batch};

		if (second != NULL && second->due.size > 0 &&
			ujobs_heap_compare(UJOBS_HEAP_BY_URGENCY, ujobs_heap_top(&second->due), &item) < 0)
			break;
		if (ujobs_crew_has(item.id) || is_suspect(item.id))
		{
			(void) ujobs_heap_pop(&lane->due);
			continue;
		}
		if (deaths_of(item.id) >= MAX_DEATHS)
			ticket.flags = UJOBS_TICKET_BLAME;
		if (!push(index, &ticket, lane, item))
			break;
		(void) ujobs_heap_pop(&lane->due);
		n++;
	}
	return n;
}

/* Due jobs that an executor of this role could have now. */
static int64
waiting_for(Oid role)
{
	int64		n = 0;

	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		UjobsLane  *lane = ujobs_lane_at(i);

		if (lane->due.size > 0 && lane->role == role && may_take(lane, NULL))
			n += lane->due.size;
	}
	return n;
}

static int
hands_of(Oid role)
{
	int			n = 0;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
		n += hands[i].used && hands[i].role == role && hands[i].state != UJOBS_SLOT_STARTING;
	return n;
}

/* A few jobs are spread over the executors there are; many are given in bulk. */
static int
quantum_for(const Hand *hand, int room)
{
	int64		share = waiting_for(hand->role) / Max(hands_of(hand->role), 1);

	return (int) Min((int64) room, Max(share, 1));
}

static bool
may_start_work(const Hand *hand)
{
	return load_of(hand) > 0 || ujobs_guc_max_running == 0 || busy_hands() < ujobs_guc_max_running;
}

static int
serve(int index)
{
	Hand	   *hand = &hands[index];
	int			depth = depth_of(hand);
	int			total = 0;
	bool		was_idle = load_of(hand) == 0;

	if (hand->state == UJOBS_SLOT_STARTING || !may_start_work(hand) ||
		(load_of(hand) > 0 && load_of(hand) > depth / 2))
		return 0;
	while ((int) load_of(hand) < depth)
	{
		int			n = fill(index, quantum_for(hand, depth - (int) load_of(hand)));

		total += n;
		if (n == 0)
			break;
	}
	if (total > 0 && was_idle)
	{
		hand->synced = GetCurrentTimestamp();
		hand->slow_at = hand->synced + SLOW_US;
	}
	ujobs_slot_set_wakeup(index, depth / 2, want_notify);
	if (total > 0)
		ujobs_slot_wake(index);
	return total;
}

/* An executor that waits takes over what another has not begun. */
static void
steal_for_idle(TimestampTz now)
{
	int			idle = -1;
	int			richest = -1;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		if (!hands[i].used || hands[i].state == UJOBS_SLOT_STARTING)
			continue;
		if (load_of(&hands[i]) == 0 && may_start_work(&hands[i]))
			idle = i;
		else if (richest < 0 || load_of(&hands[i]) > load_of(&hands[richest]))
			richest = i;
	}
	if (idle < 0 || richest < 0 || hands[idle].role != hands[richest].role ||
		load_of(&hands[richest]) < 2)
		return;
	ujobs_crew_reclaim(richest, (int) load_of(&hands[richest]) / 2, now);
	(void) serve(idle);
}

/* A definition at its limit: the one who frees a unit must tell at once. */
static bool
somebody_waits_for_a_limit(void)
{
	if (ujobs_guc_max_running > 0)
		return true;
	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		UjobsLane  *lane = ujobs_lane_at(i);

		if (lane->due.size > 0 && lane->concurrency > 0 && !lane->paused)
			return true;
	}
	return false;
}

/* Suspects run one by one while nothing else does. */
static void
serve_suspects(TimestampTz now)
{
	UjobsTicket *ticket = linitial(suspects);
	Oid			role = InvalidOid;

	if (suspect_running || busy_hands() > 0)
		return;
	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		if (ujobs_lane_at(i)->key.definition_id == ticket->definition_id)
			role = ujobs_lane_at(i)->role;
	}
	if (!OidIsValid(role))
	{
		/* Its row is gone. */
		ujobs_crashmark_clear(MyDatabaseId, ticket->id);
		suspects = list_delete_first(suspects);
		return;
	}
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		if (hands[i].used && hands[i].role == role && hands[i].state == UJOBS_SLOT_IDLE)
		{
			if (push(i, ticket, NULL, (UjobsHeapItem) {ticket->id, now, 0}))
			{
				suspect_running = true;
				suspects = list_delete_first(suspects);
				ujobs_slot_wake(i);
			}
			return;
		}
	}
	ujobs_recruit(role, hands_of(role) == 0, now);
}

void
ujobs_crew_suspect(int64 id, int32 definition_id)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	UjobsTicket *ticket = palloc0(sizeof(UjobsTicket));

	ticket->id = id;
	ticket->definition_id = definition_id;
	ticket->flags = UJOBS_TICKET_SUSPECT;
	ticket->batch = 1;
	suspects = lappend(suspects, ticket);
	MemoryContextSwitchTo(old);
}

/* More executors, for roles whose jobs nobody can take at once. */
static void
recruit(TimestampTz now)
{
	for (int i = 0; i < ujobs_lane_count(); i++)
	{
		UjobsLane  *lane = ujobs_lane_at(i);

		if (lane->due.size == 0 || !may_take(lane, NULL))
			continue;
		if (ujobs_guc_max_running > 0 && ujobs_crew_size() >= ujobs_guc_max_running &&
			hands_of(lane->role) > 0)
			continue;
		ujobs_recruit(lane->role, hands_of(lane->role) == 0, now);
	}
}

void
ujobs_crew_assign(TimestampTz now)
{
	int			given;

	look_at = DT_NOEND;
	ujobs_recruit_round();
	if (suspects != NIL || suspect_running)
	{
		if (suspects != NIL)
			serve_suspects(now);
		look_at = now + 20000;
		return;
	}
	want_notify = somebody_waits_for_a_limit();
	do
	{
		given = 0;
		for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
		{
			if (hands[i].used)
				given += serve(i);
		}
	} while (given > 0);
	steal_for_idle(now);
	recruit(now);
}

/* Tickets that were not begun go back to their lanes. */
void
ujobs_crew_reclaim(int index, int max, TimestampTz now)
{
	Hand	   *hand = &hands[index];
	UjobsTicket back[UJOBS_RING_SIZE];
	int			n = ujobs_slot_reclaim(area, index, back, max);

	for (int i = 0; i < n; i++)
	{
		hand->tail--;
		kind_remove(hand, back[i].definition_id);
		put_back(back[i].id, 0, now);
	}
}

void
ujobs_crew_reclaim_slow(TimestampTz now)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		Hand	   *hand = &hands[i];

		if (hand->used && load_of(hand) > 1 && now - hand->synced >= SLOW_US)
			ujobs_crew_reclaim(i, UJOBS_RING_SIZE, now);
	}
}

TimestampTz
ujobs_crew_next(TimestampTz now)
{
	TimestampTz next = Min(look_at, ujobs_recruit_next());

	if (any_cancelled)
		next = Min(next, now + 10000);
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		if (hands[i].used && load_of(&hands[i]) > 1)
			next = Min(next, Max(hands[i].synced + SLOW_US, now + 1000));
	}
	return next;
}

int
ujobs_crew_size(void)
{
	int			n = 0;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
		n += hands[i].used;
	return n;
}

void
ujobs_crew_dismiss(void)
{
	TimestampTz now = GetCurrentTimestamp();

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		if (!hands[i].used)
			continue;
		ujobs_crew_reclaim(i, UJOBS_RING_SIZE, now);
		ujobs_slot_ask_leave(i);
	}
}

void
ujobs_crew_terminate(void)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		UjobsSlot	slot;

		if (!hands[i].used)
			continue;
		ujobs_slot_copy(i, &slot);
		if (slot.generation == hands[i].generation && slot.pid != 0)
			kill(slot.pid, SIGTERM);
	}
}

void
ujobs_crew_born(int index, uint32 generation, Oid role)
{
	Hand	   *hand = &hands[index];

	memset(hand, 0, sizeof(*hand));
	hand->used = true;
	hand->generation = generation;
	hand->role = role;
	hand->state = UJOBS_SLOT_STARTING;
	hand->synced = GetCurrentTimestamp();
}

int
ujobs_crew_idle_of_other_role(Oid role)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		if (hands[i].used && hands[i].role != role && hands[i].state == UJOBS_SLOT_IDLE &&
			load_of(&hands[i]) == 0)
			return i;
	}
	return -1;
}

bool
ujobs_crew_starting(Oid role)
{
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		if (hands[i].used && hands[i].role == role && hands[i].state == UJOBS_SLOT_STARTING)
			return true;
	}
	return false;
}
