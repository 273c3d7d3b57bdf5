/*
 * uri.h: URI references, as far as a schema needs them.  Pure.
 */
#ifndef UJOBS_MODEL_URI_H
#define UJOBS_MODEL_URI_H

#include "postgres.h"

/* RFC 3986, 5.2: a reference, without its fragment, seen from a base. */
extern char *ujobs_uri_resolve(const char *base, const char *reference);

/* A URI's fragment, decoded; "" when it has none. */
extern char *ujobs_uri_fragment(const char *uri);

#endif							/* UJOBS_MODEL_URI_H */
