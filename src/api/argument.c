/*
 * argument.c: refusals of arguments and options that the functions behind SQL share.
 *
 * A message names the argument or option; DETAIL says its value and what it
 * takes, HINT the remedy.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "api/argument.h"
#include "core/error.h"
#include "store/definition_store.h"

void
ujobs_argument_refuse(const char *option, const char *detail, const char *hint)
{
	ereport(ERROR,
			(ujobs_errcode(INVALID_OPTION),
			 errmsg("option \"%s\" has an invalid value", option),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
}

void
ujobs_argument_refuse_conflict(const char *what, const char *name, const char *detail)
{
	ereport(ERROR,
			(ujobs_errcode(DEFINITION_CONFLICT),
			 errmsg("%s \"%s\" is already defined with other options", what, name),
			 errdetail_internal("%s", detail),
			 errhint("Pass replace => true to change the %s, or choose another name.",
					 strcmp(what, "job") == 0 ? "definition" : what)));
}

void
ujobs_argument_refuse_null(const char *what, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("%s must not be null", what),
			 errhint("%s", hint)));
}

void
ujobs_argument_check_null(FunctionCallInfo fcinfo, int argument, const char *name)
{
	if (PG_ARGISNULL(argument))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be NULL", name),
				 errhint("Give it a value.")));
}

char *
ujobs_argument_required(FunctionCallInfo fcinfo, int argument, const char *name)
{
	ujobs_argument_check_null(fcinfo, argument, name);
	return text_to_cstring(PG_GETARG_TEXT_PP(argument));
}

void
ujobs_argument_check_name(const char *option, const char *name)
{
	size_t		length = strlen(name);

	if (length == 0 || length > UJOBS_MAX_NAME_BYTES)
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("option \"%s\" has an invalid value", option),
				 errdetail("\"%s\" has %zu bytes; it takes 1 to %d.", option, length, UJOBS_MAX_NAME_BYTES),
				 errhint("Choose a name of that length.")));
}
