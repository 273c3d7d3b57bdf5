/*
 * error.c: look-ups in the list of errors.
 */
#include "postgres.h"

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
