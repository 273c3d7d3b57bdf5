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
pg_noreturn extern void ujobs_step_place_refuse(UjobsPlace place, const char *name);

/* Raises UJ015. */
pg_noreturn extern void ujobs_step_place_refuse_outside(const char *function);

/* Where the handler was called, and what a SECURITY DEFINER or SET clause changes. */
typedef struct UjobsStepOrigin
{
	bool		plpgsql;		/* the handler's language */
	bool		through_spi;	/* it is called by SPI, not as a portal of its own */
	ErrorContextCallback *frame;	/* the innermost of the caller */
	Oid			user;
	int			security_context;
	int			guc_level;
} UjobsStepOrigin;

/* To be called right before the handler. */
extern void ujobs_step_place_note(UjobsStepOrigin *origin, bool plpgsql, bool through_spi);

/* A step's call cannot commit: finds out why, and refuses it. */
pg_noreturn extern void ujobs_step_place_refuse_atomic(const char *name,
													   const UjobsStepOrigin *origin);

/*
 * In drain, where every call is inside a transaction: refuses what could not
 * commit elsewhere.
 */
extern void ujobs_step_place_check(const char *name, const UjobsStepOrigin *origin);

#endif							/* UJOBS_RUN_STEP_PLACE_H */
