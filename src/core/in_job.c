/*
 * in_job.c: one flag of this backend; handlers do not nest.
 */
#include "postgres.h"

#include "core/in_job.h"

static bool inside = false;

void
ujobs_in_job_enter(void)
{
	inside = true;
}

void
ujobs_in_job_leave(void)
{
	inside = false;
}

bool
ujobs_in_job_job(void)
{
	return inside;
}
