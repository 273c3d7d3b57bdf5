/*
 * spawn.c: the birth of processes.
 *
 * A registration cannot be rolled back, so a new dispatcher is told which
 * transaction asked for it and waits for that one's end.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/xid8.h"

#include "core/shmem.h"
#include "core/spawn.h"

#define RESTART_SECONDS 2

void
ujobs_spawn_describe(BackgroundWorker *worker, const char *kind, Datum arg)
{
	memset(worker, 0, sizeof(*worker));
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker->bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker->bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker->bgw_library_name, "ujobs", BGW_MAXLEN);
	snprintf(worker->bgw_function_name, BGW_MAXLEN, "ujobs_%s_main", kind);
	snprintf(worker->bgw_name, BGW_MAXLEN, "ujobs %s", kind);
	snprintf(worker->bgw_type, BGW_MAXLEN, "ujobs %s", kind);
	worker->bgw_main_arg = arg;
}

bool
ujobs_spawn_dispatcher(Oid database, FullTransactionId wait_for, bool restart)
{
	BackgroundWorker worker;

	ujobs_spawn_describe(&worker, "dispatcher", ObjectIdGetDatum(database));
	if (restart)
		worker.bgw_restart_time = RESTART_SECONDS;
	memcpy(worker.bgw_extra, &wait_for, sizeof(wait_for));
	return RegisterDynamicBackgroundWorker(&worker, NULL);
}

/* NULL, the outcome being forgotten, means long ago: then it was not rolled back. */
static bool
was_rolled_back(FullTransactionId xid)
{
	LOCAL_FCINFO(fcinfo, 1);
	Datum		status;

	InitFunctionCallInfoData(*fcinfo, NULL, 1, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = FullTransactionIdGetDatum(xid);
	fcinfo->args[0].isnull = false;
	status = pg_xact_status(fcinfo);
	return !fcinfo->isnull && strcmp(TextDatumGetCString(status), "aborted") == 0;
}

bool
ujobs_spawn_confirmed(void)
{
	FullTransactionId wait_for;
	bool		rolled_back;

	memcpy(&wait_for, MyBgworkerEntry->bgw_extra, sizeof(wait_for));
	if (!FullTransactionIdIsNormal(wait_for))
		return true;
	StartTransactionCommand();
	XactLockTableWait(XidFromFullTransactionId(wait_for), NULL, NULL, XLTW_None);
	rolled_back = was_rolled_back(wait_for);
	CommitTransactionCommand();
	return !rolled_back;
}

bool
ujobs_spawn_has_launcher(void)
{
	return ujobs_shmem_control()->launcher_pid != 0;
}
