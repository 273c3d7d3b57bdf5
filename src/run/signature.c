/*
 * signature.c: who wrote a message of a broker's queue.
 */
#include "postgres.h"

#include "common/hmac.h"
#include "common/sha2.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "core/error.h"
#include "run/signature.h"

#define MEMBER "\"signatureSha256\""
#define HEX_BYTES (PG_SHA256_DIGEST_LENGTH * 2)

/* Of the text and a closing brace. */
static void
hmac(const char *text, size_t size, const bytea *key, uint8 *digest)
{
	pg_hmac_ctx *context = pg_hmac_create(PG_SHA256);

	if (context == NULL ||
		pg_hmac_init(context, (const uint8 *) VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key)) < 0 ||
		pg_hmac_update(context, (const uint8 *) text, size) < 0 ||
		pg_hmac_update(context, (const uint8 *) "}", 1) < 0 ||
		pg_hmac_final(context, digest, PG_SHA256_DIGEST_LENGTH) < 0)
	{
		pg_hmac_free(context);
		elog(ERROR, "could not compute a signature");
	}
	pg_hmac_free(context);
}

Jsonb *
ujobs_signature_add(Jsonb *message, const bytea *key)
{
	char	   *text = JsonbToCString(NULL, &message->root, VARSIZE(message));
	size_t		size = strlen(text) - 1;	/* without the brace */
	char	   *utf8 = pg_server_to_any(text, size, PG_UTF8);
	uint8		digest[PG_SHA256_DIGEST_LENGTH];
	char		hex[HEX_BYTES + 1];

	hmac(utf8, utf8 == text ? size : strlen(utf8), key, digest);
	hex_encode((const char *) digest, sizeof(digest), hex);
	hex[HEX_BYTES] = '\0';
	text[size] = '\0';
	return DatumGetJsonbP(DirectFunctionCall1(
		jsonb_in, CStringGetDatum(psprintf("%s, " MEMBER ": \"%s\"}", text, hex))));
}

/* ---- checking ---- */

/* Steps back over blanks, then over this text; false when it is not there. */
static bool
step_back(const char *text, size_t *at, const char *expected)
{
	size_t		length = strlen(expected);

	while (*at > 0 && strchr(" \t\r\n", text[*at - 1]) != NULL)
		(*at)--;
	if (*at < length || memcmp(text + *at - length, expected, length) != 0)
		return false;
	*at -= length;
	return true;
}

/* Where the signed text ends, and the signature; false: there is none. */
static bool
find_signature(const char *text, size_t size, size_t *signed_size, const char **hex)
{
	size_t		at = size;

	if (!step_back(text, &at, "}") || !step_back(text, &at, "\"") || at < HEX_BYTES)
		return false;
	at -= HEX_BYTES;
	*hex = text + at;
	if (!step_back(text, &at, "\"") || !step_back(text, &at, ":") ||
		!step_back(text, &at, MEMBER) || !step_back(text, &at, ","))
		return false;
	*signed_size = at;
	return true;
}

/* In the same time whatever differs. */
static bool
is_same(const char *a, const char *b, size_t size)
{
	int			difference = 0;

	for (size_t i = 0; i < size; i++)
		difference |= a[i] ^ b[i];
	return difference == 0;
}

bool
ujobs_signature_check(const char *text, size_t size, bytea *const *keys, int n, const char **why)
{
	size_t		signed_size;
	const char *hex;

	*why = "It is not signed";
	if (!find_signature(text, size, &signed_size, &hex))
		return false;
	*why = "Its signature was made with none of the queue's keys, or for another text";
	for (int i = 0; i < n; i++)
	{
		uint8		digest[PG_SHA256_DIGEST_LENGTH];
		char		expected[HEX_BYTES];

		hmac(text, signed_size, keys[i], digest);
		hex_encode((const char *) digest, sizeof(digest), expected);
		if (is_same(expected, hex, HEX_BYTES))
			return true;
	}
	return false;
}
