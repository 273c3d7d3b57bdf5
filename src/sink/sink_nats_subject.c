/*
 * sink_nats_subject.c: names at the broker.
 *
 * A subject is a row of tokens with dots between them; "*" and ">" are
 * wildcards.  A queue's name and a message's id may be any text, so they are
 * written as one token in which every other byte than a letter, a digit, "-" and
 * "_" is "=" and two hexadecimal digits.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "sink/option.h"
#include "sink/sink_nats_subject.h"

#define LONGEST_TOKEN 180		/* a consumer's name has at most 255 bytes */

/* One token of a subject. */
static bool
check_token(const char *token, size_t length, bool wildcards)
{
	size_t		i;

	if (length == 0)
		return false;
	if (wildcards && length == 1 && (*token == '*' || *token == '>'))
		return true;
	for (i = 0; i < length; i++)
	{
		unsigned char c = token[i];

		if (c <= ' ' || c == 0x7F || strchr("*>\"\\", c) != NULL)
			return false;
	}
	return true;
}

bool
ujobs_nats_subject_check(const char *subject, bool wildcards, UjobsSinkError *error)
{
	const char *token = subject;

	if (strlen(subject) >= UJOBS_NATS_SUBJECT_SIZE)
		return ujobs_option_fail(error, "the subject has %zu bytes; it may have %d",
								 strlen(subject), UJOBS_NATS_SUBJECT_SIZE - 1);
	while (subject[0] != '$')
	{
		size_t		length = strcspn(token, ".");

		if (!check_token(token, length, wildcards))
			break;
		if (token[length] == '\0')
			return true;
		if (*token == '>')
			break;
		token += length + 1;
	}
	return ujobs_option_fail(
		error,
		"\"%.200s\" is no NATS subject: it takes words with a dot between them, without a blank, a quote, a backslash%s, and no \"$\" at its begin",
		subject, wildcards ? "" : ", \"*\" or \">\"");
}

void
ujobs_nats_subject_encode(const char *text, char *token, size_t size)
{
	static const char digits[] = "0123456789ABCDEF";
	uint64_t	hash = UINT64_C(14695981039346656037);
	size_t		used = 0;
	const unsigned char *c;

	for (c = (const unsigned char *) text; *c != '\0'; c++)
	{
		hash = (hash ^ *c) * UINT64_C(1099511628211);
		if (used + 4 > size || used + 4 > LONGEST_TOKEN)
			used = LONGEST_TOKEN;	/* the rest is in the hash alone */
		else if ((*c < 0x80 && isalnum(*c)) || *c == '-' || *c == '_')
			token[used++] = (char) *c;
		else
		{
			token[used++] = '=';
			token[used++] = digits[*c >> 4];
			token[used++] = digits[*c & 15];
		}
	}
	if (used < LONGEST_TOKEN)
		token[used] = '\0';
	else
		snprintf(token + LONGEST_TOKEN - 32, size - (LONGEST_TOKEN - 32), "==%016llx",
				 (unsigned long long) hash);
}

bool
ujobs_nats_subject_matches(const char *pattern, const char *subject)
{
	for (;;)
	{
		size_t		length = strcspn(pattern, ".");
		size_t		given = strcspn(subject, ".");

		if (length == 1 && *pattern == '>')
			return given > 0;
		if (!(length == 1 && *pattern == '*') &&
			(length != given || strncmp(pattern, subject, length) != 0))
			return false;
		pattern += length;
		subject += given;
		if (*pattern != *subject)
			return false;
		if (*pattern == '\0')
			return true;
		pattern++;
		subject++;
	}
}

void
ujobs_nats_subject_of_queue(const UjobsNats *nats, const char *queue, char *subject)
{
	char		token[UJOBS_NATS_NAME_SIZE];

	ujobs_nats_subject_encode(queue, token, sizeof(token));
	snprintf(subject, UJOBS_NATS_SUBJECT_SIZE, "%s.jobs.%s", nats->prefix, token);
}

void
ujobs_nats_subject_of_claim(const UjobsNats *nats, const char *id, char *subject)
{
	char		token[UJOBS_NATS_NAME_SIZE];

	ujobs_nats_subject_encode(id, token, sizeof(token));
	snprintf(subject, UJOBS_NATS_SUBJECT_SIZE, "%s.claims.%s", nats->prefix, token);
}
