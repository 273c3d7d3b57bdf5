/*
 * current.c: which job this session runs.  Handlers do not nest.
 */
#include "postgres.h"

#include "core/error.h"
#include "run/current.h"

static const UjobsJob *current = NULL;
static bool in_handler = false;
static int64 asked_delay = -1;
static bool gave_up = false;

void
ujobs_current_begin(const UjobsJob *job)
{
	current = job;
	asked_delay = -1;
	gave_up = false;
}

void
ujobs_current_enter(void)
{
	in_handler = true;
}

void
ujobs_current_leave(void)
{
	in_handler = false;
}

bool
ujobs_current_in_handler(void)
{
	return in_handler;
}

const UjobsJob *
ujobs_current_job(void)
{
	/* Errors clear the flag, not the pointer. */
	return in_handler ? current : NULL;
}

void
ujobs_current_ask_delay(int64 delay)
{
	asked_delay = delay;
}

void
ujobs_current_give_up(void)
{
	gave_up = true;
}

bool
ujobs_current_gave_up(void)
{
	return gave_up;
}

int64
ujobs_current_asked_delay(int sqlerrcode)
{
	return sqlerrcode == UJOBS_ERRCODE(RETRY_AFTER) ? asked_delay : -1;
}
