/*
 * error.c: look-ups in the list of errors, and the name of an error in its DETAIL.
 *
 * The DETAIL is written after the code, or not at all.  So the name is added
 * when the error is complete: by a context callback that the code pushes, and
 * that takes itself off the stack.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "core/error.h"

#define UJOBS_ERROR_ROW(constant, number, name, terminal, meaning, fix) \
	{"UJ" number, name, terminal, meaning, fix},

static const UjobsErrorInfo error_rows[] = {
	UJOBS_ERROR_LIST(UJOBS_ERROR_ROW)
	{NULL, NULL, false, NULL, NULL}
};

const UjobsErrorInfo *
ujobs_error_list(void)
{
	return error_rows;
}

const UjobsErrorInfo *
ujobs_error_find(int sqlerrcode)
{
	const char *state = unpack_sql_state(sqlerrcode);

	for (const UjobsErrorInfo *row = error_rows; row->sqlstate != NULL; row++)
	{
		if (strcmp(row->sqlstate, state) == 0)
			return row;
	}
	return NULL;
}

/* ---- the name in the DETAIL ---- */

static ErrorContextCallback frame;
static bool pushed = false;

/* The server has a function for every part of the error at hand but this one. */
static char *
detail_so_far(MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	ErrorData  *error = CopyErrorData();

	MemoryContextSwitchTo(old);
	return error->detail;
}

static void
add_name(void *arg)
{
	const UjobsErrorInfo *info = ujobs_error_find(geterrcode());
	MemoryContext context;
	char	   *detail;

	pushed = false;
	if (error_context_stack == &frame)
		error_context_stack = frame.previous;
	if (info == NULL || geterrcode() != *(int *) arg)
		return;					/* another error, raised while this one was put together */
	context = AllocSetContextCreate(TopMemoryContext, "ujobs error detail", ALLOCSET_SMALL_SIZES);
	detail = detail_so_far(context);
	if (detail == NULL)
		errdetail_internal("[%s]", info->name);
	else
		errdetail_internal("%s [%s]", detail, info->name);
	MemoryContextDelete(context);
}

int
ujobs_error_set(int sqlerrcode)
{
	static int	code;

	code = sqlerrcode;
	if (!pushed)
	{
		frame.previous = error_context_stack;
		frame.callback = add_name;
		frame.arg = &code;
		error_context_stack = &frame;
		pushed = true;
	}
	return errcode(sqlerrcode);
}
