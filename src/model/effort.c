/*
 * effort.c: how much work the evaluation of something that a user made may take.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "core/error.h"
#include "core/guc.h"
#include "model/effort.h"

static int64 spent = 0;
static bool shared = false;

void
ujobs_effort_begin(void)
{
	if (!shared)
		spent = 0;
}

void
ujobs_effort_share(bool share)
{
	shared = share;
	spent = 0;
}

void
ujobs_effort_spend(int64 steps)
{
	CHECK_FOR_INTERRUPTS();
	spent += steps;
	if (spent <= ujobs_guc_max_validation_steps)
		return;
	ereport(ERROR,
			(ujobs_errcode(TOO_COMPLEX),
			 errmsg("to check the input against input_schema takes too many steps"),
			 errdetail("More than ujobs.max_validation_steps, which is %d.",
					   ujobs_guc_max_validation_steps),
			 errhint("Write a simpler schema, send a smaller input, or have an administrator raise the setting.")));
}
