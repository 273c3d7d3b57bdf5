/*
 * sink_module.h: finding the module that speaks to a kind of system, and what
 * it is told of one.
 */
#ifndef UJOBS_CORE_SINK_MODULE_H
#define UJOBS_CORE_SINK_MODULE_H

#include "postgres.h"

#include "utils/jsonb.h"

#include "core/sink.h"

/*
 * The module of a kind, loaded into this process if it was not yet.  NULL:
 * it is not installed or does not fit, and *reason says why (palloc'd).  Runs
 * in a transaction of the caller's.
 */
extern const UjobsSinkModule *ujobs_sink_module(const char *kind, char **reason);

/* What its module is built with, for hints. */
extern const char *ujobs_sink_module_library(const char *kind);

/*
 * Options and secrets as a module takes them, flattened, in UTF-8, all of it
 * in the current context.  What the core reads itself (attempts, check,
 * maxPayload, timeout) is left out.  `stop` is the caller's.  Raises UJ003 when a value is
 * not a string, a number or a boolean.
 */
typedef struct UjobsSinkFacts
{
	const char *sink;
	const char *store_id;			/* ujobs_store_identity_uuid() */
	Jsonb	   *options;
	Jsonb	   *secret;			/* NULL = none */
} UjobsSinkFacts;

extern UjobsSinkOptions *ujobs_sink_module_options(const UjobsSinkFacts *facts,
												   const volatile bool *stop);

/* Does the object hold names that the module does not know?  The first of them, or NULL. */
extern const char *ujobs_sink_module_unknown_option(const UjobsSinkModule *module,
													const UjobsSinkOptions *options);
extern const char *ujobs_sink_module_unknown_secret(const UjobsSinkModule *module,
													const UjobsSinkOptions *options);

/* The greatest payload that a publisher may write, in bytes of JSON text. */
extern int64 ujobs_sink_module_max_payload(const char *kind, Jsonb *options);

/* After how many tries that count a message is parked. */
extern int	ujobs_sink_module_attempts(Jsonb *options);

/* Is the option "check" true? */
extern bool ujobs_sink_module_wants_check(Jsonb *options);

/* Copies headers (an object of strings) as pairs in UTF-8 into the current context. */
extern UjobsSinkPair *ujobs_sink_module_pairs(Jsonb *object, int *n);

#endif							/* UJOBS_CORE_SINK_MODULE_H */
