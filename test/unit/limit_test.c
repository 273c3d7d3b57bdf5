/*
 * limit_test.c: units of limits against a count of who holds them.
 *
 * sources: src/worker/dispatch/limit.c src/worker/dispatch/rate.c src/core/hash.c src/core/clock.c
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "unit.h"
#include "core/guc.h"
#include "core/hash.h"
#include "worker/dispatch/limit.h"

#define DEFINITIONS 3
#define QUEUES 3
#define TENANTS 4				/* 0: none */
#define HELD 200

/* The settings that the clock reads. */
bool		ujobs_guc_clock_set = false;
TimestampTz ujobs_guc_clock_instant = 0;

static const char *const names[QUEUES] = {"default", "mail", "slow"};
static UjobsQueueRow rows[QUEUES];
static int	definition_limit[DEFINITIONS];

/* A job that is held: by an executor of its own, or outside. */
typedef struct Holder
{
	UjobsTicket ticket;
	int			definition;
	int			queue;
	int			tenant;
	bool		outside;
} Holder;

static Holder held[HELD];
static int	n_held = 0;

static void
set_queues(void)
{
	List	   *list = NIL;

	for (int i = 0; i < QUEUES; i++)
		list = lappend(list, &rows[i]);
	ujobs_limit_set_queues(list);
}

static Holder
random_holder(void)
{
	Holder		h = {
		.definition = unit_random(DEFINITIONS),
		.queue = unit_random(QUEUES),
		.tenant = unit_random(TENANTS),
		.outside = unit_random(2)
	};

	h.ticket.definition_id = h.definition + 1;
	h.ticket.queue_hash = ujobs_hash_queue(names[h.queue]);
	h.ticket.tenant_hash = h.tenant == 0 ? 0 : h.tenant + 1000;
	return h;
}

/* ---- the model ---- */

static bool
is_same(const Holder *a, const Holder *b, UjobsCapKind kind)
{
	if (kind == UJOBS_CAP_DEFINITION)
		return a->definition == b->definition;
	return a->queue == b->queue && (kind == UJOBS_CAP_QUEUE || a->tenant == b->tenant);
}

static int
count(const Holder *of, UjobsCapKind kind)
{
	int			n = 0;

	for (int i = 0; i < n_held; i++)
		n += is_same(&held[i], of, kind);
	return n;
}

static bool
model_allows(const Holder *h)
{
	int			d = definition_limit[h->definition];
	int			q = rows[h->queue].concurrency;
	int			t = h->tenant == 0 ? 0 : rows[h->queue].per_tenant;

	return (d == 0 || count(h, UJOBS_CAP_DEFINITION) < d) &&
		   (q == 0 || count(h, UJOBS_CAP_QUEUE) < q) &&
		   (t == 0 || count(h, UJOBS_CAP_TENANT) < t);
}

/* ---- the code ---- */

static bool
code_allows(const Holder *h)
{
	UjobsCap   *caps[UJOBS_CAP_KINDS];
	int			n = ujobs_limit_of(&h->ticket, caps);

	for (int i = 0; i < n; i++)
	{
		if (!ujobs_limit_is_free(caps[i]))
			return false;
	}
	return true;
}

static void
take_executor(const Holder *h)
{
	UjobsCap   *caps[UJOBS_CAP_KINDS];
	int			n = ujobs_limit_of(&h->ticket, caps);

	for (int i = 0; i < n; i++)
		ujobs_limit_take_executor(caps[i]);
}

static void
take(const Holder *h)
{
	if (h->outside)
		ujobs_limit_take_outside(&h->ticket);
	else
		take_executor(h);
	held[n_held++] = *h;
}

static void
give_back(int i)
{
	UjobsCap   *caps[UJOBS_CAP_KINDS];
	int			n = ujobs_limit_of(&held[i].ticket, caps);

	if (held[i].outside)
		ujobs_limit_return_outside(&held[i].ticket);
	else
	{
		for (int k = 0; k < n; k++)
			ujobs_limit_return_executor(caps[k]);
	}
	held[i] = held[--n_held];
}

/* As the dispatcher does: units of executors are counted anew, those outside always. */
static void
change_limits(void)
{
	int			definition = unit_random(DEFINITIONS);
	UjobsQueueRow *row = &rows[unit_random(QUEUES)];

	definition_limit[definition] = unit_random(6);
	row->concurrency = unit_random(6);
	row->per_tenant = unit_random(4);
	ujobs_limit_set_definition(ujobs_limit_cap(UJOBS_CAP_DEFINITION, definition + 1, 0),
							   definition_limit[definition]);
	set_queues();
	if (!ujobs_limit_take_change())
		return;
	ujobs_limit_forget_executors();
	for (int i = 0; i < n_held; i++)
	{
		if (!held[i].outside)
			take_executor(&held[i]);
	}
}

/* ---- tests ---- */

static void
agree_with_the_model(void)
{
	int			differs = 0;
	int			taken = 0;
	int			refused = 0;

	for (int i = 0; i < 50000; i++)
	{
		Holder		h = random_holder();
		bool		allowed = code_allows(&h);

		differs += allowed != model_allows(&h);
		if (unit_random(500) == 0)
			change_limits();
		else if (n_held > 0 && unit_random(2) == 0)
			give_back(unit_random(n_held));
		else if (allowed && n_held < HELD && code_allows(&h))
		{
			take(&h);
			taken++;
		}
		else
			refused++;
	}
	unit_ok(differs == 0, "what is allowed is what the model allows: %d differ", differs);
	unit_ok(taken > 5000 && refused > 1000, "both were tried: %d taken, %d refused", taken, refused);
	while (n_held > 0)
		give_back(n_held - 1);
	for (int i = 0; i < DEFINITIONS; i++)
		unit_ok(ujobs_limit_used(ujobs_limit_cap(UJOBS_CAP_DEFINITION, i + 1, 0)) == 0,
				"nothing of definition %d is held at the end", i + 1);
}

/* A limit that is lowered below what is held lets the holders go on, and nothing new start. */
static void
lowered(void)
{
	UjobsCap   *cap = ujobs_limit_cap(UJOBS_CAP_DEFINITION, 99, 0);

	ujobs_limit_set_definition(cap, 3);
	for (int i = 0; i < 3; i++)
		ujobs_limit_take_executor(cap);
	ujobs_limit_set_definition(cap, 1);
	unit_ok(!ujobs_limit_is_free(cap) && !ujobs_limit_is_kept(cap), "three of one are too many");
	ujobs_limit_return_executor(cap);
	ujobs_limit_return_executor(cap);
	unit_ok(!ujobs_limit_is_free(cap) && ujobs_limit_is_kept(cap), "one of one is kept");
	ujobs_limit_return_executor(cap);
	unit_ok(ujobs_limit_is_free(cap), "none of one is free");
	ujobs_limit_set_definition(cap, 0);
	unit_ok(ujobs_limit_take_change(), "the change is told");
	unit_ok(!ujobs_limit_take_change(), "once");
}

void
unit_main(void)
{
	UjobsArea  *area = palloc0(sizeof(UjobsArea));

	unit_random_seed(13);
	for (int i = 0; i < QUEUES; i++)
		strlcpy(rows[i].name, names[i], NAMEDATALEN);
	ujobs_limit_init(area);
	agree_with_the_model();
	lowered();
}
