/*
 * inside.c: one flag of this backend; handlers do not nest.
 */
#include "postgres.h"

#include "core/inside.h"

static bool inside = false;

void
ujobs_inside_enter(void)
{
	inside = true;
}

void
ujobs_inside_leave(void)
{
	inside = false;
}

bool
ujobs_inside_job(void)
{
	return inside;
}
