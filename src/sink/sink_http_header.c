/*
 * sink_http_header.c: the headers of a request.
 *
 * The module's own first (what the message is, and its id, by which a receiver
 * knows a repetition), then those of the sink's secret and options, then those
 * of the message.  Of two with one name the first counts.  A header that could
 * change where the request ends or whom it is for is refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sink/option.h"
#include "sink/sink_http_header.h"

#define PREFIX "headers."

/* Is this name of a header one that only this module or libcurl sets? */
static bool
is_reserved(const char *name)
{
	static const char *const names[] = {"Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Upgrade",
	"TE", "Trailer", "Expect", "Idempotency-Key", NULL};

	for (int i = 0; names[i] != NULL; i++)
	{
		if (strcasecmp(name, names[i]) == 0)
			return true;
	}
	return strncasecmp(name, "Proxy-", 6) == 0 || strncasecmp(name, "Ujobs-", 6) == 0;
}

/* A token of RFC 9110. */
static bool
is_name(const char *name)
{
	return name[0] != '\0' && strlen(name) <= 200 &&
		   strspn(
			   name,
			   "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") ==
			   strlen(name);
}

static bool
is_value(const char *value)
{
	for (; *value != '\0'; value++)
	{
		if (((unsigned char) *value < 0x20 && *value != '\t') || *value == 0x7f)
			return false;
	}
	return true;
}

static bool
validate_header(const char *name, const char *value, UjobsSinkError *error)
{
	if (!is_name(name))
		return ujobs_option_fail(error, "\"%s\" is no name of a header", name);
	if (is_reserved(name))
		return ujobs_option_fail(error, "header \"%s\" cannot be set", name);
	if (!is_value(value))
		return ujobs_option_fail(
			error, "the value of header \"%s\" has a line break or another control character",
			name);
	return true;
}

static bool
is_header(const UjobsSinkPair *pair)
{
	return strncmp(pair->name, PREFIX, strlen(PREFIX)) == 0;
}

static bool
validate_access(const UjobsSinkOptions *options, UjobsSinkError *error)
{
	const char *bearer = ujobs_option_secret(options, "bearer");
	const char *user = ujobs_option_secret(options, "user");
	const char *password = ujobs_option_secret(options, "password");

	if (bearer != NULL && user != NULL)
		return ujobs_option_fail(error,
								 "of the secrets \"bearer\" and \"user\" only one can be used");
	if ((user == NULL) != (password == NULL))
		return ujobs_option_fail(error, "the secrets \"user\" and \"password\" belong together");
	if (bearer != NULL && !is_value(bearer))
		return ujobs_option_fail(
			error, "the secret \"bearer\" has a line break or another control character");
	return true;
}

bool
ujobs_http_header_validate(const UjobsSinkOptions *options, UjobsSinkError *error)
{
	for (int i = 0; i < options->n_options; i++)
	{
		const UjobsSinkPair *pair = &options->options[i];

		if (!is_header(pair))
			continue;
		if (strcasecmp(pair->name + strlen(PREFIX), "Authorization") == 0)
			return ujobs_option_fail(error, "header \"%s\" belongs to set_sink_secret",
									 pair->name + strlen(PREFIX));
		if (!validate_header(pair->name + strlen(PREFIX), pair->value, error))
			return false;
	}
	for (int i = 0; i < options->n_secrets; i++)
	{
		const UjobsSinkPair *pair = &options->secrets[i];

		if (is_header(pair) && !validate_header(pair->name + strlen(PREFIX), pair->value, error))
			return false;
	}
	return validate_access(options, error);
}

static bool
has(const struct curl_slist *list, const char *name)
{
	size_t		length = strlen(name);

	for (; list != NULL; list = list->next)
	{
		if (strncasecmp(list->data, name, length) == 0 &&
			(list->data[length] == ':' || list->data[length] == ';'))
			return true;
	}
	return false;
}

/* Adds it unless there is one of that name; false = out of memory. */
static bool
add(struct curl_slist **list, const char *name, const char *value)
{
	size_t		size = strlen(name) + strlen(value) + 4;
	struct curl_slist *longer;
	char	   *line;

	if (has(*list, name))
		return true;
	line = malloc(size);
	if (line == NULL)
		return false;
	/* libcurl's sign for a header without a value is a semicolon. */
	if (value[strspn(value, " \t")] == '\0')
		snprintf(line, size, "%s;", name);
	else
		snprintf(line, size, "%s: %s", name, value);
	longer = curl_slist_append(*list, line);
	free(line);
	if (longer != NULL)
		*list = longer;
	return longer != NULL;
}

/* A text as a value: what is not printable ASCII, and %, as %XX. */
static bool
add_text(struct curl_slist **list, const char *name, const char *text)
{
	char	   *value = malloc(strlen(text) * 3 + 1);
	char	   *end = value;
	bool		added;

	if (value == NULL)
		return false;
	for (; *text != '\0'; text++)
	{
		unsigned char c = (unsigned char) *text;

		if (c <= 0x20 || c >= 0x7f || c == '%')
			end += sprintf(end, "%%%02X", c);
		else
			*end++ = c;
	}
	*end = '\0';
	added = add(list, name, value);
	free(value);
	return added;
}

static bool
add_pairs(struct curl_slist **list, const UjobsSinkPair *pairs, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (is_header(&pairs[i]) && !add(list, pairs[i].name + strlen(PREFIX), pairs[i].value))
			return false;
	}
	return true;
}

/* Those that every message of the sink has. */
static bool
add_fixed(struct curl_slist **list, const UjobsSinkOptions *options,
		  const UjobsSinkMessage *message)
{
	const char *bearer = ujobs_option_secret(options, "bearer");
	struct curl_slist *longer;
	char	   *access;
	bool		added;

	if (!add(list, "Idempotency-Key", message->id) ||
		!add_text(list, "Ujobs-Topic", message->topic) ||
		(message->key != NULL && !add_text(list, "Ujobs-Key", message->key)))
		return false;
	/* Without a value and its semicolon: libcurl is not to send this one. */
	longer = curl_slist_append(*list, "Expect:");
	if (longer == NULL)
		return false;
	*list = longer;
	if (bearer != NULL)
	{
		access = malloc(strlen(bearer) + 8);
		if (access == NULL)
			return false;
		sprintf(access, "Bearer %s", bearer);
		added = add(list, "Authorization", access);
		free(access);
		if (!added)
			return false;
	}
	return add_pairs(list, options->secrets, options->n_secrets) &&
		   add_pairs(list, options->options, options->n_options);
}

static bool
add_own(struct curl_slist **list, const UjobsSinkMessage *message, UjobsSinkError *error)
{
	for (int i = 0; i < message->n_headers; i++)
	{
		const UjobsSinkPair *header = &message->headers[i];

		if (!validate_header(header->name, header->value, error))
			return false;
		if (strcasecmp(header->name, "Authorization") == 0)
			return ujobs_option_fail(
				error, "header \"%s\" of a message cannot be set: it belongs to set_sink_secret",
				header->name);
		if (!add(list, header->name, header->value))
			return ujobs_option_fail(error, "out of memory");
	}
	return true;
}

struct curl_slist *
ujobs_http_header_list(const UjobsSinkOptions *options, const UjobsSinkMessage *message,
					   UjobsSinkError *error)
{
	struct curl_slist *list = NULL;
	bool		complete = false;

	if (!add_fixed(&list, options, message))
		ujobs_option_fail(error, "out of memory");
	else if (add_own(&list, message, error))
		complete = add(&list, "Content-Type", "application/json") &&
				   add(&list, "User-Agent", "ujobs");
	if (complete)
		return list;
	curl_slist_free_all(list);
	return NULL;
}
