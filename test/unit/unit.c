/*
 * unit.c: runs a unit test inside the server's own program.
 *
 * The test and the sources that it names are a library that is loaded before
 * the server's main function (LD_PRELOAD=test.so postgres).  Its constructor
 * makes memory contexts, runs the test and exits; main is never reached, so
 * there are no data directory, no shared memory and no other process.  The
 * functions of the server that model code calls are therefore the real ones.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

#include "unit.h"

/* Of the server; its header differs from version to version. */
extern void assign_max_stack_depth(int newval, void *extra);

static uint64 random_state = UINT64CONST(88172645463325252);

void
unit_ok(bool holds, const char *name,...)
{
	va_list		args;

	printf("%s - ", holds ? "ok" : "not ok");
	va_start(args, name);
	vprintf(name, args);
	va_end(args);
	printf("\n");
}

void
unit_note(const char *text,...)
{
	va_list		args;

	printf("# ");
	va_start(args, text);
	vprintf(text, args);
	va_end(args);
	printf("\n");
}

static int	unit_raised = 0;
static int	unit_named = 0;

/* An error of class UJ has its name as the last word of its DETAIL: apart from the rest. */
static const char *
split_name(char *detail)
{
	char	   *at = detail == NULL ? NULL : strrchr(detail, '[');

	if (at == NULL || strncmp(at, "[X_", 3) != 0 || detail[strlen(detail) - 1] != ']')
		return "";
	detail[strlen(detail) - 1] = '\0';
	if (at > detail)
		at[-1] = '\0';
	*at = '\0';
	return at + 1;
}

void
unit_error_keep(UnitError *error)
{
	ErrorData  *data = CopyErrorData();

	error->raised = true;
	strlcpy(error->sqlstate, unpack_sql_state(data->sqlerrcode), sizeof(error->sqlstate));
	error->name = split_name(data->detail);
	unit_named += strncmp(error->sqlstate, "UJ", 2) != 0 || error->name[0] != '\0';
	unit_raised++;
	error->message = data->message ? data->message : "";
	error->detail = data->detail ? data->detail : "";
	error->hint = data->hint ? data->hint : "";
	FlushErrorState();
}

Jsonb *
unit_jsonb(const char *text)
{
	return DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(text)));
}

/* xorshift */
uint32
unit_random(uint32 n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32) (random_state >> 33) % n;
}

void
unit_random_seed(uint64 seed)
{
	random_state = seed | 1;
}

void
unit_stack_limit(int kilobytes)
{
	assign_max_stack_depth(kilobytes, NULL);
}

__attribute__((constructor))
static void
unit_run(void)
{
	MemoryContextInit();
	MemoryContextSwitchTo(TopMemoryContext);
	(void) set_stack_base();
	unit_stack_limit(UNIT_STACK);
	SetDatabaseEncoding(PG_UTF8);
	PG_TRY();
	{
		unit_main();
	}
	PG_CATCH();
	{
		UnitError	error;

		MemoryContextSwitchTo(TopMemoryContext);
		unit_error_keep(&error);
		unit_ok(false, "raised %s: %s (%s)", error.sqlstate, error.message, error.detail);
	}
	PG_END_TRY();
	if (unit_raised > 0)
		unit_ok(unit_named == unit_raised, "each error of class UJ has its name in its DETAIL");
	fflush(stdout);
	exit(0);					/* failures are in the output */
}
