/*
 * state.c: the table of transitions.
 *
 * A claim by an executor writes nothing, so a pending or suspended row goes
 * straight to its end.  Only a retry leads back from a terminal state.
 */
#include "postgres.h"

#include "core/error.h"
#include "model/state.h"

typedef struct Transitions
{
	UjobsState	from;
	const char *to;				/* the states that may follow */
} Transitions;

static const Transitions transitions[] = {
	{UJOBS_STATE_NONE, "p"},	/* enqueue */
	{UJOBS_STATE_PENDING, "psldxc"},	/* retry, suspend, claim, end, cancel */
	{UJOBS_STATE_SUSPENDED, "psldxc"},	/* due again: it runs as a pending one does */
	{UJOBS_STATE_LEASED, "psldxc"}, /* nack, park, heartbeat, ack, dead letter, cancel */
	{UJOBS_STATE_DONE, "p"},	/* retry */
	{UJOBS_STATE_DEAD, "p"},
	{UJOBS_STATE_CANCELLED, "p"},
};

bool
ujobs_state_allows(UjobsState from, UjobsState to)
{
	for (int i = 0; i < lengthof(transitions); i++)
	{
		if (transitions[i].from == from)
			return to != UJOBS_STATE_NONE && strchr(transitions[i].to, (char) to) != NULL;
	}
	return false;
}

void
ujobs_state_check(int64 job_id, UjobsState from, UjobsState to)
{
	if (!ujobs_state_allows(from, to))
		ereport(ERROR,
				(ujobs_errcode(CORRUPT_STATE),
				 errmsg("job " INT64_FORMAT " cannot go from state \"%c\" to \"%c\"",
						job_id, from ? (char) from : '-', to ? (char) to : '-'),
				 errdetail("The table of transitions has no such one."),
				 errhint("Run SELECT * FROM ujobs.check() and report what it shows.")));
}

bool
ujobs_state_is_terminal(UjobsState state)
{
	return state == UJOBS_STATE_DONE || state == UJOBS_STATE_DEAD || state == UJOBS_STATE_CANCELLED;
}

const char *
ujobs_state_shown(UjobsState state, TimestampTz due_at, TimestampTz now, bool running)
{
	switch (state)
	{
		case UJOBS_STATE_DONE:
			return "done";
		case UJOBS_STATE_DEAD:
			return "dead";
		case UJOBS_STATE_CANCELLED:
			return "cancelled";
		case UJOBS_STATE_LEASED:
			return "running";
		case UJOBS_STATE_PENDING:
			if (running)
				return "running";
			return due_at <= now ? "ready" : "delayed";
		case UJOBS_STATE_SUSPENDED:
			return running ? "running" : "suspended";
	}
	return "unknown";
}
