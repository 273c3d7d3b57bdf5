/*
 * json.h: building jsonb, the one place that does.
 *
 *     UjobsJson json = {0};
 *
 *     ujobs_json_begin_object(&json, NULL);
 *     ujobs_json_text(&json, "queue", queue);
 *     ujobs_json_number(&json, "attempt", 3);
 *     return ujobs_json_end(&json);
 *
 * Inside an object every value has a key; inside an array, and for the
 * outermost container, the key is NULL.  Texts are not copied: they must live
 * until the end, which allocates the result in the current context.
 */
#ifndef UJOBS_CORE_JSON_H
#define UJOBS_CORE_JSON_H

#include "postgres.h"

#include "utils/jsonb.h"

/* All zero: nothing begun. */
typedef struct UjobsJson
{
	JsonbParseState *state;
} UjobsJson;

extern void ujobs_json_begin_object(UjobsJson *json, const char *key);
extern void ujobs_json_begin_array(UjobsJson *json, const char *key);

/* Ends the innermost container.  Of the outermost one it is the jsonb, else NULL. */
extern Jsonb *ujobs_json_end(UjobsJson *json);

/* One value; text and jsonb NULL are null.  length: bytes of the text that count. */
extern void ujobs_json_text(UjobsJson *json, const char *key, const char *text);
extern void ujobs_json_text_of(UjobsJson *json, const char *key, const char *text, int length);
extern void ujobs_json_number(UjobsJson *json, const char *key, int64 number);
extern void ujobs_json_boolean(UjobsJson *json, const char *key, bool boolean);
extern void ujobs_json_null(UjobsJson *json, const char *key);
extern void ujobs_json_jsonb(UjobsJson *json, const char *key, const Jsonb *jsonb);

/* A value as an iterator gives it. */
extern void ujobs_json_value(UjobsJson *json, const char *key, JsonbValue *value);

#endif							/* UJOBS_CORE_JSON_H */
