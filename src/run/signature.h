/*
 * signature.h: who wrote a message of a broker's queue.
 *
 * The last member of a signed message is "signatureSha256": the HMAC-SHA256,
 * in hexadecimal, of the message's text (UTF-8) without that member.  So a
 * program signs the JSON text that it made, and puts the member before the
 * last brace.
 */
#ifndef UJOBS_RUN_SIGNATURE_H
#define UJOBS_RUN_SIGNATURE_H

#include "postgres.h"

#include "utils/jsonb.h"

#define UJOBS_KEY_BYTES 32

/* The message with its signature; memory from the current context. */
extern Jsonb *ujobs_signature_add(Jsonb *message, const bytea *key);

/*
 * Is the text (UTF-8) signed with one of the keys?  *why: what is wrong, a
 * sentence.
 */
extern bool ujobs_signature_check(const char *text, size_t size, bytea *const *keys, int n,
								  const char **why);

#endif							/* UJOBS_RUN_SIGNATURE_H */
