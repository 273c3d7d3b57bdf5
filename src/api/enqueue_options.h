/*
 * enqueue_options.h: the arguments that enqueue, enqueue_many and enqueue_as share.
 */
#ifndef UJOBS_API_ENQUEUE_OPTIONS_H
#define UJOBS_API_ENQUEUE_OPTIONS_H

#include "fmgr.h"

#include "store/enqueue_store.h"

/* Checked, with the definition's and the session's defaults filled in. */
typedef struct UjobsEnqueueCall
{
	UjobsEnqueueOptions options;
	const char *tenant;			/* as given; NULL = by template */
	const char *key;			/* as given; NULL = by template */
} UjobsEnqueueCall;

/* From where the arguments are read; the options begin right after the input. */
typedef struct UjobsEnqueueForm
{
	const char *function;		/* for messages, such as "ujobs.enqueue()" */
	int			job;			/* argument number of the job's name; input and options follow */
	bool		has_key;		/* takes idempotency_key */
} UjobsEnqueueForm;

/*
 * Finds the definition, checks that the caller may enqueue it here and now,
 * and reads the options.  Raises 25006, UJ011, 42501, UJ010 and UJ003.
 */
extern void ujobs_enqueue_options_read(FunctionCallInfo fcinfo, const UjobsEnqueueForm *form,
									UjobsEnqueueCall *call);

/*
 * One input is checked against the definition's schema, then tenant and key:
 * as given, or rendered into the current context.  number: which input of the
 * call, from 1; 0 when it has one.  Raises UJ004, UJ002 and UJ003.
 */
extern void ujobs_enqueue_options_item(const UjobsEnqueueCall *call, Jsonb *input, int number,
									UjobsEnqueueItem *item);

/* What the actor of enqueue_as says where no argument does; UJ003 when it is not an object. */
extern void ujobs_enqueue_options_actor(UjobsEnqueueCall *call, Jsonb *actor);

#endif							/* UJOBS_API_ENQUEUE_OPTIONS_H */
