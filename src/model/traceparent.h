/*
 * traceparent.h: the W3C trace context handed on to jobs.  Pure.
 */
#ifndef UJOBS_MODEL_TRACEPARENT_H
#define UJOBS_MODEL_TRACEPARENT_H

#include "postgres.h"

/*
 * NULL when the text is a traceparent of version 00, else what is wrong with
 * it, as the end of a sentence about the text.
 */
extern const char *ujobs_traceparent_fault(const char *text);

#endif							/* UJOBS_MODEL_TRACEPARENT_H */
