/*
 * state_test.c: every pair of states against a matrix, and the states that users read.
 *
 * sources: src/model/state.c src/core/error.c
 */
#include "postgres.h"

#include "unit.h"
#include "model/state.h"

static const char states[] = {0, 'p', 's', 'l', 'd', 'x', 'c'};

/* Rows: from; columns: to.  In the order of `states`. */
static const char *const allowed[] = {
	".p.....",					/* no row yet */
	".psldxc",
	".psldxc",
	".psldxc",
	".p.....",					/* retry of an ended job */
	".p.....",
	".p.....",
};

static void
test_transitions(void)
{
	int			wrong = 0;

	for (int from = 0; from < lengthof(states); from++)
	{
		for (int to = 0; to < lengthof(states); to++)
		{
			bool		expected = allowed[from][to] != '.';
			UnitError	error;

			unit_try(&error, ujobs_state_check(42, (UjobsState) states[from],
											   (UjobsState) states[to]));
			wrong += ujobs_state_allows((UjobsState) states[from],
										(UjobsState) states[to]) != expected;
			wrong += error.raised == expected ||
				(error.raised && strcmp(error.sqlstate, "UJ099") != 0);
		}
	}
	unit_ok(wrong == 0, "state: all 49 pairs of states");
	unit_ok(!ujobs_state_allows((UjobsState) 'q', UJOBS_STATE_PENDING) &&
				!ujobs_state_allows(UJOBS_STATE_PENDING, (UjobsState) 'q'),
			"state: what is no state has no transition");
}

static void
test_message(void)
{
	UnitError	error;

	unit_try(&error, ujobs_state_check(42, UJOBS_STATE_DONE, UJOBS_STATE_LEASED));
	unit_ok(error.raised && strcmp(error.message,
								   "job 42 cannot go from state \"d\" to \"l\"") == 0,
			"state: a message names job and states");
}

static void
test_shown(void)
{
	static const struct
	{
		char		state;
		int			due_at;		/* now is 10 */
		bool		running;
		const char *shown;
	}			cases[] =
	{
		{'p', 9, false, "ready"}, {'p', 10, false, "ready"}, {'p', 11, false, "delayed"},
		{'p', 9, true, "running"}, {'p', 11, true, "running"},
		{'s', 9, false, "suspended"}, {'s', 11, true, "running"},
		{'l', 9, false, "running"}, {'l', 11, true, "running"},
		{'d', 9, false, "done"}, {'x', 9, false, "dead"}, {'c', 9, false, "cancelled"},
		{'q', 9, false, "unknown"}
	};
	int			wrong = 0;

	for (int i = 0; i < lengthof(cases); i++)
		wrong += strcmp(ujobs_state_shown((UjobsState) cases[i].state, cases[i].due_at, 10,
										  cases[i].running), cases[i].shown) != 0;
	unit_ok(wrong == 0, "state: the words that users read");
	for (int i = 0; i < lengthof(states); i++)
		wrong += ujobs_state_is_terminal((UjobsState) states[i]) != (states[i] != 0 &&
																	 strchr("dxc",
																			states[i]) != NULL);
	unit_ok(wrong == 0, "state: done, dead and cancelled are terminal");
}

void
unit_main(void)
{
	test_transitions();
	test_message();
	test_shown();
}
