/*
 * step_place.h: where a step cannot be durable, in words.
 */
#ifndef UJOBS_RUN_STEP_PLACE_H
#define UJOBS_RUN_STEP_PLACE_H

#include "postgres.h"

#include "core/noreturn.h"

typedef enum UjobsPlace
{
	UJOBS_PLACE_ATOMIC_JOB,		/* its handler is a function or command */
	UJOBS_PLACE_EXCEPTION,
	UJOBS_PLACE_EXECUTE,
	UJOBS_PLACE_FUNCTION,
	UJOBS_PLACE_LANGUAGE,
	UJOBS_PLACE_STEP,			/* inside another step's command */
	UJOBS_PLACE_UNKNOWN
} UjobsPlace;

/* Raises UJ016; name may be NULL. */
pg_noreturn extern void ujobs_step_refuse(UjobsPlace place, const char *name);

/* Raises UJ015. */
pg_noreturn extern void ujobs_step_refuse_outside(const char *function);

/*
 * Reads from the PL/pgSQL frames why a call cannot commit, and refuses it.
 * lenient: where the frames show nothing wrong, it may go on (drain, where
 * every call is inside a transaction).
 */
extern void ujobs_step_check_frames(const char *name, bool lenient);

#endif							/* UJOBS_RUN_STEP_PLACE_H */
