/*
 * handler.h: from a definition to something that can be called.
 */
#ifndef UJOBS_RUN_HANDLER_H
#define UJOBS_RUN_HANDLER_H

#include "fmgr.h"

#include "model/job.h"

typedef struct UjobsHandler
{
	UjobsKind	kind;
	Oid			proc;			/* atomic and durable */
	Oid			result_type;	/* atomic */
	bool		has_result;		/* durable: (input jsonb, INOUT result jsonb) */
	bool		plpgsql;		/* its language */
	FmgrInfo	function;		/* atomic; lives in the context of the find */
	FmgrInfo	to_jsonb;		/* of result_type */
	char	   *text;			/* durable and command: what to run */
} UjobsHandler;

/*
 * Looks the handler up as the current user, who must be the definition's
 * owner.  False when it does not exist or no longer has a shape that can be
 * called; *missing then is a sentence for people.  Raises 42501 when the
 * owner may not execute it.  Allocates in the current context.
 */
extern bool ujobs_handler_find(const UjobsDefinition *definition, UjobsHandler *handler,
							   char **missing);

#endif							/* UJOBS_RUN_HANDLER_H */
