/*
 * admission.c: the last thing before an engine works.
 *
 * The launcher starts dispatchers without knowing which databases have the
 * extension, so each finds out here whether there is room for it (core/capacity.h):
 * one after the other, under the lock of engines, because all count the same
 * processes.
 */
#include "postgres.h"

#include "core/engine.h"
#include "core/capacity.h"
#include "worker/admission.h"
#include "worker/worker.h"

#define ROOM_MS 100				/* until an executor has left, perhaps */

bool
ujobs_admission_await(UjobsEngine *engine, const char *database_name)
{
	int			wanted = engine->scheduler_pid == 0 ? 1 : 0;

	while (!ujobs_engine_begin(engine, ujobs_capacity_is_there, wanted))
	{
		bool		said = engine->no_worker;

		ujobs_engine_set_shortage(engine, true);
		if (ujobs_capacity_ask(wanted) == UJOBS_CAPACITY_NONE)
		{
			if (!said)
				ereport(LOG,
						(errmsg("ujobs waits in database \"%s\": max_worker_processes is exhausted", database_name),
						 errdetail("An engine needs two processes, and one must be left for executors."),
						 errhint("Raise max_worker_processes.")));
			return false;
		}
		ujobs_worker_wait(ROOM_MS);
	}
	(void) ujobs_capacity_ask(0);	/* keeps the scheduler's for it */
	return true;
}
