/*
 * step_place.c: names the cause of a step that could not commit.
 *
 * The server only says that a call is atomic.  Why, is told by the statements
 * that PL/pgSQL runs between the handler and the step: each call of a PL/pgSQL
 * function has a frame on the stack of error callbacks, whose argument is the
 * function's execution state with the statement at hand.  A handler that
 * calls a step by plain CALL statements has frames at CALL, the server's own
 * for the SQL text of each, and no others (docs/decisions/021).
 */
#include "postgres.h"

#include "miscadmin.h"
#include "plpgsql.h"
#include "utils/elog.h"
#include "utils/guc.h"

#include "core/error.h"
#include "run/step_place.h"

static const struct
{
	const char *detail;
	const char *hint;
}			causes[] = {
	[UJOBS_PLACE_ATOMIC_JOB] = {
		"The job's handler is a function or a command: all of it is one transaction.",
		"Make the handler a PL/pgSQL procedure, and define the job again."
	},
	[UJOBS_PLACE_EXCEPTION] = {
		"It is inside a BEGIN ... EXCEPTION block, whose subtransaction cannot be committed.",
		"Move the step out of the block; inside step_begin and step_end an EXCEPTION block may stand around statements."
	},
	[UJOBS_PLACE_EXECUTE] = {
		"It was called through EXECUTE, which keeps its statement in the transaction around it.",
		"Write it as a plain CALL statement."
	},
	[UJOBS_PLACE_FUNCTION] = {
		"It was called inside a function, or in a procedure with SECURITY DEFINER or SET, which cannot commit.",
		"Call steps in the handler itself, or in a plain PL/pgSQL procedure that it calls by CALL."
	},
	[UJOBS_PLACE_LANGUAGE] = {
		"It was called from a language other than PL/pgSQL, whose procedures cannot commit for a step.",
		"Write the handler in PL/pgSQL; its steps may call functions in any language."
	},
	[UJOBS_PLACE_STEP] = {
		"It was called by the command of another step, which is one transaction.",
		"Call steps one after another in the handler."
	},
	[UJOBS_PLACE_UNKNOWN] = {
		"It was called where the transaction cannot be committed.",
		"Call steps by plain CALL statements in the handler, outside EXCEPTION blocks, functions and EXECUTE."
	},
};

void
ujobs_step_place_refuse(UjobsPlace place, const char *name)
{
	ereport(ERROR,
			(ujobs_errcode(STEP_NOT_DURABLE),
			 errmsg("step \"%s\" could not be remembered here", name != NULL ? name : ""),
			 errdetail("%s", causes[place].detail),
			 errhint("%s", causes[place].hint)));
	pg_unreachable();
}

void
ujobs_step_place_refuse_outside(const char *function)
{
	ereport(ERROR,
			(ujobs_errcode(STEP_OUTSIDE_JOB),
			 errmsg("ujobs.%s was called outside a running job", function),
			 errdetail("This session runs no job's handler."),
			 errhint("Call it from a job's handler.")));
	pg_unreachable();
}

/* The callbacks by which frames are told apart. */
typedef struct Callbacks
{
	void		(*plpgsql) (void *arg);
	void		(*spi) (void *arg);	/* NULL: there is no such frame */
} Callbacks;

/*
 * The outermost frame is the handler's, or in drain that of the CALL by which
 * SPI runs it; the other kind is the outermost of another callback.  (A simple
 * expression calls a function without SPI.)
 */
static Callbacks
callbacks_of(const UjobsStepOrigin *origin)
{
	void		(*first) (void *arg) = NULL;
	void		(*other) (void *arg) = NULL;

	for (const ErrorContextCallback *frame = error_context_stack;
		 frame != NULL && frame != origin->frame; frame = frame->previous)
		first = frame->callback;
	for (const ErrorContextCallback *frame = error_context_stack;
		 frame != NULL && frame != origin->frame; frame = frame->previous)
	{
		if (frame->callback != first)
			other = frame->callback;
	}
	if (origin->through_spi)
		return (Callbacks) {.plpgsql = other, .spi = first};
	return (Callbacks) {.plpgsql = first, .spi = other};
}

/* What a PL/pgSQL function at this statement makes of a step that it calls. */
static UjobsPlace
place_of_statement(const PLpgSQL_stmt *statement)
{
	if (statement != NULL && statement->cmd_type == PLPGSQL_STMT_CALL)
		return UJOBS_PLACE_UNKNOWN;
	if (statement != NULL && statement->cmd_type == PLPGSQL_STMT_DYNEXECUTE)
		return UJOBS_PLACE_EXECUTE;
	return UJOBS_PLACE_FUNCTION;
}

/* The innermost cause; UNKNOWN when all of it are CALL statements. */
static UjobsPlace
place_since(const UjobsStepOrigin *origin)
{
	Callbacks	callbacks = callbacks_of(origin);

	if (!origin->plpgsql)
		return UJOBS_PLACE_LANGUAGE;
	for (const ErrorContextCallback *frame = error_context_stack;
		 frame != NULL && frame != origin->frame; frame = frame->previous)
	{
		UjobsPlace	place;

		if (frame->callback == callbacks.spi)
			continue;
		if (frame->callback != callbacks.plpgsql)
			return UJOBS_PLACE_LANGUAGE;
		place = place_of_statement(((const PLpgSQL_execstate *) frame->arg)->err_stmt);
		if (place != UJOBS_PLACE_UNKNOWN)
			return place;
	}
	return UJOBS_PLACE_UNKNOWN;
}

void
ujobs_step_place_refuse_atomic(const char *name, const UjobsStepOrigin *origin)
{
	UjobsPlace	place = place_since(origin);

	/* All frames are CALLs: a SECURITY DEFINER or SET clause on the way. */
	ujobs_step_place_refuse(place == UJOBS_PLACE_UNKNOWN ? UJOBS_PLACE_FUNCTION : place, name);
}

void
ujobs_step_place_note(UjobsStepOrigin *origin, bool plpgsql, bool through_spi)
{
	origin->plpgsql = plpgsql;
	origin->through_spi = through_spi;
	origin->frame = error_context_stack;
	GetUserIdAndSecContext(&origin->user, &origin->security_context);
	origin->guc_level = NewGUCNestLevel();
	AtEOXact_GUC(false, origin->guc_level);
}

/*
 * Is a SECURITY DEFINER or SET clause on the way?  SET ROLE changes the user
 * alone, and is refused where the context says so.
 */
static bool
is_in_other_context(const UjobsStepOrigin *origin)
{
	UjobsStepOrigin here;

	ujobs_step_place_note(&here, origin->plpgsql, origin->through_spi);
	return here.guc_level != origin->guc_level ||
		   here.security_context != origin->security_context ||
		   (here.user != origin->user && (origin->security_context & SECURITY_LOCAL_USERID_CHANGE));
}

void
ujobs_step_place_check(const char *name, const UjobsStepOrigin *origin)
{
	UjobsPlace	place = place_since(origin);

	if (place == UJOBS_PLACE_UNKNOWN && is_in_other_context(origin))
		place = UJOBS_PLACE_FUNCTION;
	if (place != UJOBS_PLACE_UNKNOWN)
		ujobs_step_place_refuse(place, name);
}
