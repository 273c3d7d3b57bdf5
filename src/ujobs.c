/*
 * ujobs.c: module magic and _PG_init.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

#include "core/guc.h"
#include "core/query.h"
#include "core/shmem.h"
#include "worker/launcher.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
	ujobs_guc_define();
	ujobs_query_init();
	if (process_shared_preload_libraries_in_progress)
	{
		ujobs_shmem_preload();
		ujobs_launcher_register();
	}
}
