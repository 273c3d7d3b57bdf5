/*
 * current.c: a pointer that is only followed while a handler runs.
 */
#include "postgres.h"

#include "core/error.h"
#include "core/inside.h"
#include "run/current.h"

static const UjobsJob *current = NULL;
static int64 asked_delay = -1;

void
ujobs_current_begin(const UjobsJob *job)
{
	current = job;
	asked_delay = -1;
}

const UjobsJob *
ujobs_current_job(void)
{
	/* Errors clear the flag, not the pointer. */
	return ujobs_inside_job() ? current : NULL;
}

void
ujobs_current_ask_delay(int64 delay)
{
	asked_delay = delay;
}

int64
ujobs_current_asked_delay(int sqlerrcode)
{
	return sqlerrcode == UJOBS_ERRCODE(RETRY_AFTER) ? asked_delay : -1;
}
