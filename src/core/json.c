/*
 * json.c: building jsonb.
 */
#include "postgres.h"

#include "utils/numeric.h"

#include "core/json.h"

static JsonbValue
text_value(const char *text, int length)
{
	JsonbValue	value = {.type = jbvString};

	value.val.string.val = unconstify(char *, text);
	value.val.string.len = length;
	return value;
}

static void
push_key(UjobsJson *json, const char *key)
{
	JsonbValue	value = text_value(key, strlen(key));

	(void) pushJsonbValue(&json->state, WJB_KEY, &value);
}

static void
begin(UjobsJson *json, const char *key, JsonbIteratorToken token)
{
	if (key != NULL)
		push_key(json, key);
	(void) pushJsonbValue(&json->state, token, NULL);
}

void
ujobs_json_begin_object(UjobsJson *json, const char *key)
{
	begin(json, key, WJB_BEGIN_OBJECT);
}

void
ujobs_json_begin_array(UjobsJson *json, const char *key)
{
	begin(json, key, WJB_BEGIN_ARRAY);
}

Jsonb *
ujobs_json_end(UjobsJson *json)
{
	bool		is_outermost = json->state->next == NULL;
	bool		is_array = json->state->contVal.type == jbvArray;
	JsonbValue *value = pushJsonbValue(&json->state, is_array ? WJB_END_ARRAY : WJB_END_OBJECT,
									   NULL);

	return is_outermost ? JsonbValueToJsonb(value) : NULL;
}

void
ujobs_json_value(UjobsJson *json, const char *key, JsonbValue *value)
{
	Assert((key != NULL) == (json->state->contVal.type == jbvObject));
	if (key != NULL)
		push_key(json, key);
	(void) pushJsonbValue(&json->state, key != NULL ? WJB_VALUE : WJB_ELEM, value);
}

void
ujobs_json_null(UjobsJson *json, const char *key)
{
	JsonbValue	value = {.type = jbvNull};

	ujobs_json_value(json, key, &value);
}

void
ujobs_json_text_of(UjobsJson *json, const char *key, const char *text, int length)
{
	JsonbValue	value = text_value(text, length);

	ujobs_json_value(json, key, &value);
}

void
ujobs_json_text(UjobsJson *json, const char *key, const char *text)
{
	if (text == NULL)
		ujobs_json_null(json, key);
	else
		ujobs_json_text_of(json, key, text, strlen(text));
}

void
ujobs_json_number(UjobsJson *json, const char *key, int64 number)
{
	JsonbValue	value = {.type = jbvNumeric};

	value.val.numeric = int64_to_numeric(number);
	ujobs_json_value(json, key, &value);
}

void
ujobs_json_boolean(UjobsJson *json, const char *key, bool boolean)
{
	JsonbValue	value = {.type = jbvBool};

	value.val.boolean = boolean;
	ujobs_json_value(json, key, &value);
}

/* A container goes in as it is, a scalar without the array around it. */
void
ujobs_json_jsonb(UjobsJson *json, const char *key, const Jsonb *jsonb)
{
	Jsonb	   *in = unconstify(Jsonb *, jsonb);
	JsonbValue	value = {.type = jbvNull};

	if (in != NULL && !JsonbExtractScalar(&in->root, &value))
	{
		value.type = jbvBinary;
		value.val.binary.data = &in->root;
		value.val.binary.len = VARSIZE_ANY_EXHDR(in);
	}
	ujobs_json_value(json, key, &value);
}
