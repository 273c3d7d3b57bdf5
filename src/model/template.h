/*
 * template.h: idempotency keys and tenants rendered from the input.  Pure.
 *
 * 'onboard:{orgId}', '{a.b.c}', '{{' for a literal brace ('}}' too).
 */
#ifndef UJOBS_MODEL_TEMPLATE_H
#define UJOBS_MODEL_TEMPLATE_H

#include "postgres.h"

#include "utils/jsonb.h"

#define UJOBS_MAX_KEY_BYTES 1000
#define UJOBS_MAX_TENANT_BYTES 200

typedef struct UjobsTemplate UjobsTemplate;

/*
 * Parses a template into the current memory context.  `option` names the
 * argument for messages.  An unclosed brace, an empty path or path element
 * raise UJ003.
 */
extern UjobsTemplate *ujobs_template_parse(const char *text, const char *option);

/*
 * Renders over an input.  A path that is absent, null, an object or an array
 * raises UJ002 and names it; numbers render as their jsonb text, booleans as
 * true and false.  Longer than max_bytes raises UJ003.
 */
extern char *ujobs_template_render(const UjobsTemplate *t, Jsonb *input, const char *option,
								   int max_bytes);

#endif							/* UJOBS_MODEL_TEMPLATE_H */
