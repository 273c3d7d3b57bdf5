/*
 * pattern.h: the regular expressions of JSON Schema, run by PostgreSQL's engine.
 *
 * Users write them as ECMA 262 has them (with its flag u).  Escapes that the
 * two languages spell differently are translated; what has no equal is
 * refused.
 */
#ifndef UJOBS_MODEL_PATTERN_H
#define UJOBS_MODEL_PATTERN_H

#include "postgres.h"

typedef struct UjobsPattern UjobsPattern;

/*
 * Compiles into the current memory context; what the engine allocates beside
 * it goes with that context.  NULL when it cannot, with the reason in *fault.
 */
extern UjobsPattern *ujobs_pattern_compile(const char *source, int length, char **fault);

/* Whether the pattern is found anywhere in the text. */
extern bool ujobs_pattern_matches(const UjobsPattern *pattern, const char *text, int length);

/* The source as written. */
extern const char *ujobs_pattern_source(const UjobsPattern *pattern);

#endif							/* UJOBS_MODEL_PATTERN_H */
