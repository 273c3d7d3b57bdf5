/*
 * claim.c: the table of claims.
 *
 * What a transaction was granted is kept here with the subtransaction that
 * asked, so that a savepoint rolled back gives its jobs back at once.  The
 * callbacks only write shared memory: they cannot raise, so at the end of a
 * transaction, and of a session, nothing is left behind.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/await.h"
#include "core/claim.h"
#include "core/compat.h"
#include "core/engine.h"
#include "core/error.h"
#include "core/wakeup.h"

#define LOOK_MS 1000			/* a dispatcher that died is noticed by then */
#define PLACE_MS 10
#define PLACE_TRIES 200

typedef struct Mine
{
	int			place;
	int			number;
	SubTransactionId subid;
} Mine;

static UjobsArea *my_area;		/* of this transaction's claims */
static int	places[UJOBS_MAX_CLAIMS];
static int	n_places = 0;
static Mine *mine = NULL;
static int	n_mine = 0;
static int	mine_capacity = 0;
static TimestampTz earliest_end = DT_NOEND;

/* ---- the end of a transaction ---- */

static void
end_place(int place, UjobsFate fate)
{
	UjobsClaim *claim = &my_area->claims.claim[place];

	LWLockAcquire(&claim->lock, LW_EXCLUSIVE);
	for (int i = 0; i < claim->n_grants; i++)
	{
		if (claim->grant[i].fate == UJOBS_FATE_OPEN)
			claim->grant[i].fate = fate;
	}
	claim->state = UJOBS_CLAIM_ENDED;
	claim->latch = NULL;
	LWLockRelease(&claim->lock);
}

/* Lowers the instant at which the scheduler looks; true when it must be told. */
static bool
lower_end(UjobsArea *area)
{
	uint64		known = pg_atomic_read_u64(&area->claims.lease_end);

	while (earliest_end < (TimestampTz) known)
	{
		if (pg_atomic_compare_exchange_u64(&area->claims.lease_end, &known, (uint64) earliest_end))
			return true;
	}
	return false;
}

static void
tell_scheduler(void)
{
	UjobsArea  *area = ujobs_engine_area_attached();
	UjobsEngine *engine = ujobs_engine_find(MyDatabaseId);

	if (area != NULL && engine != NULL && lower_end(area))
		ujobs_engine_wake(&engine->scheduler_latch);
}

static void
end_all(UjobsFate fate)
{
	bool		any = n_places > 0;

	for (int i = 0; i < n_places; i++)
		end_place(places[i], fate);
	n_places = n_mine = 0;
	if (any)
		ujobs_wakeup_dispatcher();
	if (fate == UJOBS_FATE_LEASED && earliest_end != DT_NOEND)
		tell_scheduler();
	earliest_end = DT_NOEND;
}

/* An answer could not be kept by a prepared transaction: its fate would not be told. */
static void
refuse_prepare(void)
{
	if (n_mine > 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot PREPARE a transaction that has claimed jobs"),
				 errhint("Claim jobs in a transaction of its own.")));
}

static void
at_xact_event(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_PREPARE:
			refuse_prepare();
			break;
		case XACT_EVENT_COMMIT:
			end_all(UJOBS_FATE_LEASED);
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			end_all(UJOBS_FATE_BACK);
			break;
		default:
			break;
	}
}

static void
set_fate(int place, int number, UjobsFate fate)
{
	UjobsClaim *claim = &my_area->claims.claim[place];

	LWLockAcquire(&claim->lock, LW_EXCLUSIVE);
	claim->grant[number].fate = fate;
	LWLockRelease(&claim->lock);
}

static void
give_back(SubTransactionId subid)
{
	int			kept = 0;

	for (int i = 0; i < n_mine; i++)
	{
		if (mine[i].subid == subid)
			set_fate(mine[i].place, mine[i].number, UJOBS_FATE_BACK);
		else
			mine[kept++] = mine[i];
	}
	if (kept == n_mine)
		return;
	n_mine = kept;
	ujobs_wakeup_dispatcher();
}

static void
at_subxact_event(SubXactEvent event, SubTransactionId subid, SubTransactionId parent, void *arg)
{
	if (n_mine == 0)
		return;
	if (event == SUBXACT_EVENT_ABORT_SUB)
		give_back(subid);
	if (event != SUBXACT_EVENT_COMMIT_SUB)
		return;
	for (int i = 0; i < n_mine; i++)
	{
		if (mine[i].subid == subid)
			mine[i].subid = parent;
	}
}

/* ---- places ---- */

static int
try_place(void)
{
	for (int i = 0; i < UJOBS_MAX_CLAIMS; i++)
	{
		UjobsClaim *claim = &my_area->claims.claim[i];
		bool		taken = false;

		if (claim->state != UJOBS_CLAIM_FREE)
			continue;
		LWLockAcquire(&claim->lock, LW_EXCLUSIVE);
		if (claim->state == UJOBS_CLAIM_FREE)
		{
			claim->state = UJOBS_CLAIM_OPEN;
			claim->latch = MyLatch;
			claim->n_grants = 0;
			taken = true;
		}
		LWLockRelease(&claim->lock);
		if (taken)
		{
			pg_atomic_fetch_add_u32(&my_area->claims.taken, 1);
			places[n_places++] = i;
			return i;
		}
	}
	return -1;
}

/* Those of ended transactions come free as soon as the dispatcher looks. */
static int
take_place(void)
{
	for (int i = 0; i < PLACE_TRIES; i++)
	{
		int			place = try_place();

		if (place >= 0)
			return place;
		ujobs_wakeup_dispatcher();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, PLACE_MS,
						 UJOBS_COMPAT_WAIT_EVENT("UjobsClaim"));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("too many claims at a time"),
			 errdetail("There is room for %d, each of at most %d jobs, that wait or whose transaction has not ended.",
					   UJOBS_MAX_CLAIMS, UJOBS_CLAIM_GRANTS),
			 errhint("Commit after each claim, and let fewer sessions wait.")));
	return -1;
}

/* The last place of this transaction, or a new one when it is full. */
static int
place_with_space(void)
{
	int			last = n_places > 0 ? places[n_places - 1] : -1;

	if (last >= 0 && my_area->claims.claim[last].n_grants < UJOBS_CLAIM_GRANTS)
		return last;
	return take_place();
}

static void
prepare(void)
{
	static bool registered = false;

	if (!registered)
	{
		RegisterXactCallback(at_xact_event, NULL);
		RegisterSubXactCallback(at_subxact_event, NULL);
	}
	registered = true;
	if (n_mine + UJOBS_CLAIM_GRANTS <= mine_capacity)
		return;
	mine_capacity = 2 * mine_capacity + UJOBS_CLAIM_GRANTS;
	if (mine == NULL)
		mine = MemoryContextAlloc(TopMemoryContext, mine_capacity * sizeof(Mine));
	else
		mine = repalloc(mine, mine_capacity * sizeof(Mine));
}

/* ---- asking ---- */

static void
check_engine(void)
{
	if ((!ujobs_engine_serves() && !ujobs_await_engine()) ||
		(n_places > 0 && ujobs_engine_area() != my_area))	/* the extension was made anew */
		ereport(ERROR,
				(ujobs_errcode(ENGINE_NOT_RUNNING),
				 errmsg("no engine serves this database"),
				 errdetail("Jobs are handed out by the engine, and there is none to ask."),
				 errhint("Call ujobs.start_workers(), or add ujobs to shared_preload_libraries; with too few max_worker_processes it cannot start.")));
}

/* With the client's socket: its end is seen at once. */
static void
sleep_with_client(long ms)
{
	WaitEvent	events[3];
	int			n;

	ModifyWaitEvent(FeBeWaitSet, UJOBS_COMPAT_CLIENT_SOCKET, WL_SOCKET_CLOSED, NULL);
	n = WaitEventSetWait(FeBeWaitSet, ms, events, lengthof(events),
						 UJOBS_COMPAT_WAIT_EVENT("UjobsClaim"));
	for (int i = 0; i < n; i++)
	{
		if (events[i].events & WL_POSTMASTER_DEATH)
			proc_exit(1);
		if (events[i].events & WL_SOCKET_CLOSED)
		{
			ClientConnectionLost = true;
			InterruptPending = true;
		}
	}
}

static void
sleep_until(TimestampTz deadline)
{
	long		ms = Min(TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline), LOOK_MS);

	if (FeBeWaitSet != NULL && WaitEventSetCanReportClosed())
		sleep_with_client(ms);
	else
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms,
						 UJOBS_COMPAT_WAIT_EVENT("UjobsClaim"));
	CHECK_FOR_INTERRUPTS();
}

static void
put_question(UjobsClaim *claim, const UjobsClaimAsk *ask)
{
	TimestampTz now = GetCurrentTimestamp();

	LWLockAcquire(&claim->lock, LW_EXCLUSIVE);
	claim->ask = *ask;
	claim->asked_at = now;
	claim->found = false;
	claim->number = pg_atomic_fetch_add_u64(&my_area->claims.next_number, 1);
	claim->state = UJOBS_CLAIM_ASKED;
	LWLockRelease(&claim->lock);
	ujobs_wakeup_dispatcher();
}

/* It is not asked any more; what was granted since `first` goes back. */
static pg_noinline void
withdraw(UjobsClaim *claim, int first)
{
	LWLockAcquire(&claim->lock, LW_EXCLUSIVE);
	claim->state = UJOBS_CLAIM_OPEN;
	for (int i = first; i < claim->n_grants; i++)
		claim->grant[i].fate = UJOBS_FATE_BACK;
	LWLockRelease(&claim->lock);
	ujobs_wakeup_dispatcher();
}

/* Nothing came in time: the question is taken back, unless it is being answered. */
static bool
give_up(UjobsClaim *claim)
{
	bool		asked;

	LWLockAcquire(&claim->lock, LW_EXCLUSIVE);
	asked = claim->state == UJOBS_CLAIM_ASKED;
	claim->state = UJOBS_CLAIM_OPEN;
	LWLockRelease(&claim->lock);
	return asked;
}

static void
await_answer(UjobsClaim *claim, bool patient, TimestampTz deadline)
{
	for (;;)
	{
		bool		asked;

		ResetLatch(MyLatch);
		LWLockAcquire(&claim->lock, LW_EXCLUSIVE);
		asked = claim->state == UJOBS_CLAIM_ASKED;
		LWLockRelease(&claim->lock);
		if (!asked)
			return;
		if (patient && GetCurrentTimestamp() >= deadline && give_up(claim))
			return;
		check_engine();
		sleep_until(patient ? deadline : DT_NOEND);
	}
}

static int
read_answer(int place, UjobsClaim *claim, int first, UjobsGranted *out)
{
	int			n = claim->n_grants - first;

	for (int i = 0; i < n; i++)
	{
		const UjobsGrant *grant = &claim->grant[first + i];

		out[i] = (UjobsGranted) {grant->id, grant->woken, place, first + i};
		mine[n_mine++] = (Mine) {place, first + i, GetCurrentSubTransactionId()};
	}
	return n;
}

/* Not inlined: gcc would see the caller's variables live across the PG_TRY. */
static pg_noinline void
await_or_withdraw(UjobsClaim *claim, int first, TimestampTz deadline)
{
	PG_TRY();
	{
		await_answer(claim, claim->ask.wait, deadline);
	}
	PG_CATCH();
	{
		withdraw(claim, first);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

int
ujobs_claim_ask(UjobsClaimAsk *ask, TimestampTz deadline, UjobsGranted *out)
{
	UjobsClaim *claim;
	int			place;
	int			first;

	Assert(IsTransactionState());
	check_engine();
	if (n_places == 0)
		my_area = ujobs_engine_area();
	prepare();
	place = place_with_space();
	claim = &my_area->claims.claim[place];
	first = claim->n_grants;
	ask->max = Min(ask->max, UJOBS_CLAIM_GRANTS - first);
	put_question(claim, ask);
	await_or_withdraw(claim, first, deadline);
	if (ask->max == 0)
		return claim->found ? 1 : 0;
	return read_answer(place, claim, first, out);
}

void
ujobs_claim_decline(const UjobsGranted *granted, UjobsFate fate)
{
	set_fate(granted->place, granted->number, fate);
	for (int i = n_mine - 1; i >= 0; i--)
	{
		if (mine[i].place == granted->place && mine[i].number == granted->number)
		{
			mine[i] = mine[--n_mine];
			break;
		}
	}
	ujobs_wakeup_dispatcher();
}

void
ujobs_claim_note_end(TimestampTz visible_at)
{
	Assert(IsTransactionState());
	prepare();
	(void) ujobs_engine_area();
	earliest_end = Min(earliest_end, visible_at);
}

/* ---- the dispatcher's side ---- */

bool
ujobs_claim_read(UjobsArea *area, int place, UjobsClaim *copy)
{
	UjobsClaim *claim = &area->claims.claim[place];

	if (claim->state == UJOBS_CLAIM_FREE)
		return false;
	LWLockAcquire(&claim->lock, LW_EXCLUSIVE);
	*copy = *claim;
	LWLockRelease(&claim->lock);
	return copy->state != UJOBS_CLAIM_FREE;
}

bool
ujobs_claim_answer(UjobsArea *area, int place, const UjobsGrant *grants, int n, bool found)
{
	UjobsClaim *claim = &area->claims.claim[place];
	Latch	   *latch = NULL;

	LWLockAcquire(&claim->lock, LW_EXCLUSIVE);
	if (claim->state == UJOBS_CLAIM_ASKED)
	{
		memcpy(&claim->grant[claim->n_grants], grants, n * sizeof(UjobsGrant));
		claim->n_grants += n;
		claim->found = found;
		claim->state = UJOBS_CLAIM_OPEN;
		latch = claim->latch;
	}
	LWLockRelease(&claim->lock);
	if (latch != NULL)
		SetLatch(latch);
	return latch != NULL;
}

void
ujobs_claim_release(UjobsArea *area, int place)
{
	UjobsClaim *claim = &area->claims.claim[place];

	LWLockAcquire(&claim->lock, LW_EXCLUSIVE);
	claim->n_grants = 0;
	claim->state = UJOBS_CLAIM_FREE;
	LWLockRelease(&claim->lock);
	pg_atomic_fetch_sub_u32(&area->claims.taken, 1);
}

void
ujobs_claim_wake_all(UjobsArea *area)
{
	for (int i = 0; i < UJOBS_MAX_CLAIMS; i++)
	{
		UjobsClaim *claim = &area->claims.claim[i];
		Latch	   *latch;

		LWLockAcquire(&claim->lock, LW_EXCLUSIVE);
		latch = claim->state == UJOBS_CLAIM_ASKED ? claim->latch : NULL;
		LWLockRelease(&claim->lock);
		if (latch != NULL)
			SetLatch(latch);
	}
}

/* ---- the scheduler's side ---- */

void
ujobs_claim_expect_end(UjobsArea *area, TimestampTz then)
{
	pg_atomic_write_u64(&area->claims.lease_end, (uint64) then);
	pg_memory_barrier();
}

TimestampTz
ujobs_claim_next_end(UjobsArea *area)
{
	return (TimestampTz) pg_atomic_read_u64(&area->claims.lease_end);
}

bool
ujobs_claim_asks(UjobsArea *area, int place, uint64 *number)
{
	UjobsClaim *claim = &area->claims.claim[place];
	bool		asks;

	LWLockAcquire(&claim->lock, LW_SHARED);
	asks = claim->state == UJOBS_CLAIM_ASKED;
	*number = claim->number;
	LWLockRelease(&claim->lock);
	return asks;
}
