/*
 * step_place.c: names the cause of a step that could not commit.
 *
 * The server only says that a call is atomic.  Why, is told by the frames of
 * the error context: a handler that calls a step by plain CALL statements has
 * frames "at CALL" and nothing else.
 */
#include "postgres.h"

#include "miscadmin.h"
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
		"It stands inside a BEGIN ... EXCEPTION block, whose subtransaction cannot be committed.",
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
ujobs_step_refuse(UjobsPlace place, const char *name)
{
	ereport(ERROR,
			(errcode(UJOBS_ERRCODE(STEP_NOT_DURABLE)),
			 errmsg("step \"%s\" could not be remembered here", name != NULL ? name : ""),
			 errdetail("%s", causes[place].detail),
			 errhint("%s", causes[place].hint)));
	pg_unreachable();
}

void
ujobs_step_refuse_outside(const char *function)
{
	ereport(ERROR,
			(errcode(UJOBS_ERRCODE(STEP_OUTSIDE_JOB)),
			 errmsg("ujobs.%s was called outside a running job", function),
			 errdetail("This session runs no job's handler."),
			 errhint("Call it from a job's handler.")));
	pg_unreachable();
}

/* The statement kind of a frame "PL/pgSQL function f(jsonb) line 3 at CALL", or NULL. */
static const char *
statement_of(const char *line, size_t length)
{
	static const char frame[] = "PL/pgSQL function ";
	const char *at = NULL;

	if (length < sizeof(frame) || strncmp(line, frame, sizeof(frame) - 1) != 0)
		return NULL;
	for (const char *p = line; p + 4 < line + length; p++)
	{
		if (strncmp(p, " at ", 4) == 0)
			at = p + 4;
	}
	return at;
}

static UjobsPlace
place_of(const char *frames)
{
	UjobsPlace	place = UJOBS_PLACE_LANGUAGE;

	for (const char *line = frames; *line != '\0';)
	{
		size_t		length = strcspn(line, "\n");
		const char *statement = statement_of(line, length);

		if (strncmp(line, "SQL function ", 13) == 0)
			return UJOBS_PLACE_LANGUAGE;
		if (statement != NULL)
		{
			if (strncmp(statement, "EXECUTE", 7) == 0)
				return UJOBS_PLACE_EXECUTE;
			if (strncmp(statement, "CALL", 4) != 0)
				return UJOBS_PLACE_FUNCTION;
			place = UJOBS_PLACE_UNKNOWN;
		}
		line += length;
		line += *line == '\n';
	}
	return place;
}

/* Where the handler's outermost frame points on to its caller's. */
static ErrorContextCallback **
end_of_frames(const UjobsStepGround *ground)
{
	ErrorContextCallback **frame = &error_context_stack;

	while (*frame != NULL && *frame != ground->frame)
		frame = &(*frame)->previous;
	return frame;
}

/* The handler's own, without those of a client that called drain. */
static char *
frames_since(const UjobsStepGround *ground)
{
	ErrorContextCallback **volatile end = end_of_frames(ground);
	char	   *frames = NULL;

	*end = NULL;
	PG_TRY();
	{
		frames = GetErrorContextStack();
	}
	PG_FINALLY();
	{
		*end = ground->frame;
	}
	PG_END_TRY();
	return frames;
}

/* In English, whatever the session's language: the frames are read, not shown. */
static UjobsPlace
place_since(const UjobsStepGround *ground)
{
	int			level = NewGUCNestLevel();
	UjobsPlace	place;

	(void) set_config_option("lc_messages", "C", PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	place = place_of(frames_since(ground));
	AtEOXact_GUC(false, level);
	return place;
}

void
ujobs_step_refuse_frames(const char *name, const UjobsStepGround *ground)
{
	UjobsPlace	place = place_since(ground);

	/* All frames are CALLs: a SECURITY DEFINER or SET clause on the way. */
	ujobs_step_refuse(place == UJOBS_PLACE_UNKNOWN ? UJOBS_PLACE_FUNCTION : place, name);
}

void
ujobs_step_ground_note(UjobsStepGround *ground)
{
	ground->frame = error_context_stack;
	GetUserIdAndSecContext(&ground->user, &ground->security_context);
	ground->guc_level = NewGUCNestLevel();
	AtEOXact_GUC(false, ground->guc_level);
}

/* SET ROLE changes the user alone, and is refused where the context says so. */
static bool
is_elsewhere(const UjobsStepGround *ground)
{
	UjobsStepGround here;

	ujobs_step_ground_note(&here);
	return here.guc_level != ground->guc_level || here.security_context != ground->security_context ||
		(here.user != ground->user && (ground->security_context & SECURITY_LOCAL_USERID_CHANGE));
}

void
ujobs_step_check_frames(const char *name, const UjobsStepGround *ground)
{
	UjobsPlace	place = place_since(ground);

	if (place == UJOBS_PLACE_UNKNOWN && is_elsewhere(ground))
		place = UJOBS_PLACE_FUNCTION;
	if (place != UJOBS_PLACE_UNKNOWN)
		ujobs_step_refuse(place, name);
}
