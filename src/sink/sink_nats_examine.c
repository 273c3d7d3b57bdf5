/*
 * sink_nats_examine.c: are the options and secrets of a sink well-formed?
 *
 *   url        nats://host[:port] or tls://..., several with commas; no user in it
 *   stream     of the outbox's messages, and the prefix of the streams of jobs
 *   subjects   what that stream takes if ujobs makes it, with commas
 *   replicas   copies of each stream that ujobs makes
 *   claimAge   how long a message belongs to the store that claimed it
 *   tls.ca, tls.cert, tls.key    absolute paths on this server, or (not the key) PEM text
 *
 * and secrets, one kind of: user and password; token; creds, the text of a
 * .creds file; nkey and nkeyPublic, a seed and its public key; besides, tlsKey,
 * the key of tls.cert as PEM text.  Runs in a session: libnats is not touched.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink/option.h"
#include "sink/sink_nats.h"

#define CLAIM_AGE_MS (24 * 3600 * INT64_C(1000))
#define SHORTEST_CLAIM_MS 1000

bool
ujobs_nats_examine_next(const char **list, char *item, size_t size)
{
	size_t		length;

	if (*list == NULL)
		return false;
	*list += strspn(*list, " ");
	length = strcspn(*list, ",");
	snprintf(item, size, "%.*s", (int) length, *list);
	*list = (*list)[length] == ',' ? *list + length + 1 : NULL;
	for (length = strlen(item); length > 0 && item[length - 1] == ' '; length--)
		item[length - 1] = '\0';
	return true;
}

int64_t
ujobs_nats_examine_claim_age(const UjobsSinkOptions *options)
{
	int64_t		age = CLAIM_AGE_MS;
	UjobsSinkError ignored;

	ujobs_option_read_span(options, "claimAge", &age, &ignored);
	return age;
}

int
ujobs_nats_examine_replicas(const UjobsSinkOptions *options)
{
	const char *replicas = ujobs_option_find(options, "replicas");

	return replicas == NULL ? 1 : atoi(replicas);
}

char *
ujobs_nats_examine_creds(const char *creds, const char *name)
{
	const char *begin = creds;
	const char *end;

	while ((begin = strstr(begin, "BEGIN ")) != NULL)
	{
		begin += strlen("BEGIN ");
		if (strncmp(begin, name, strlen(name)) != 0)
			continue;
		begin += strcspn(begin, "\r\n");
		begin += strspn(begin, "\r\n ");
		end = begin + strcspn(begin, "\r\n ");
		return end > begin && *begin != '-' ? strndup(begin, end - begin) : NULL;
	}
	return NULL;
}

static bool
examine_url(const char *url, UjobsSinkError *error)
{
	const char *list = url;
	char		item[512];

	if (url == NULL || url[0] == '\0')
		return ujobs_option_fail(error, "a nats sink needs the option \"url\", such as \"nats://127.0.0.1:4222\"");
	if (strchr(url, '@') != NULL)
		return ujobs_option_fail(error, "option \"url\" has a user in it: give it to ujobs.set_sink_secret instead");
	while (ujobs_nats_examine_next(&list, item, sizeof(item)))
	{
		const char *host = strstr(item, "://");
		const char *port;

		if (host == NULL || (strncmp(item, "nats://", 7) != 0 && strncmp(item, "tls://", 6) != 0))
			return ujobs_option_fail(error, "option \"url\" takes nats://host:port and tls://host:port, several with commas: \"%.200s\"", item);
		host += 3;
		port = *host == '[' ? strchr(host, ']') : host;
		port = port == NULL ? NULL : strchr(port, ':');
		if (host[strcspn(host, " /?#")] != '\0' || *host == '\0' || *host == ':' ||
			(*host == '[' && strchr(host, ']') == NULL) ||
			(port != NULL && (port[1 + strspn(port + 1, "0123456789")] != '\0' || atoi(port + 1) < 1 || atoi(port + 1) > 65535)))
			return ujobs_option_fail(error, "option \"url\" has no such address as host:port in \"%.200s\"", item);
	}
	return true;
}

static bool
examine_stream(const UjobsSinkOptions *options, UjobsSinkError *error)
{
	const char *stream = ujobs_option_find(options, "stream");
	const char *subjects = ujobs_option_find(options, "subjects");
	const char *replicas = ujobs_option_find(options, "replicas");
	char		item[UJOBS_NATS_SUBJECT_SIZE + 1];

	if (stream != NULL && (strlen(stream) > 100 || strpbrk(stream, "./") != NULL || !ujobs_nats_subject_check(stream, false, error)))
		return ujobs_option_fail(error, "option \"stream\" takes a name of at most 100 bytes without a dot, a blank, a slash, a quote, \"*\", \">\" or \"$\" at its begin");
	if (subjects != NULL && stream == NULL)
		return ujobs_option_fail(error, "option \"subjects\" needs the option \"stream\"");
	while (ujobs_nats_examine_next(&subjects, item, sizeof(item)))
	{
		if (!ujobs_nats_subject_check(item, true, error))
			return false;
	}
	if (replicas != NULL && (strlen(replicas) != 1 || *replicas < '1' || *replicas > '5'))
		return ujobs_option_fail(error, "option \"replicas\" takes 1 to 5");
	return true;
}

static bool
is_pem(const char *text)
{
	return strncmp(text, "-----BEGIN ", 11) == 0;
}

static bool
examine_tls(const UjobsSinkOptions *options, UjobsSinkError *error)
{
	static const char *const files[] = {"tls.ca", "tls.cert", "tls.key", NULL};
	const char *cert = ujobs_option_find(options, "tls.cert");
	const char *key = ujobs_option_find(options, "tls.key");
	const char *secret = ujobs_option_secret(options, "tlsKey");
	int			i;

	for (i = 0; files[i] != NULL; i++)
	{
		const char *value = ujobs_option_find(options, files[i]);

		if (value == NULL || value[0] == '/' || (is_pem(value) && i < 2))
			continue;
		return ujobs_option_fail(error, "option \"%s\" takes the absolute path of a file on this server%s", files[i],
								 i < 2 ? ", or the certificate itself in PEM" : "; the key itself is the secret \"tlsKey\"");
	}
	if (secret != NULL && (!is_pem(secret) || (cert != NULL && !is_pem(cert))))
		return ujobs_option_fail(error, "secret \"tlsKey\" takes a key in PEM, and wants option \"tls.cert\" to be PEM too");
	if (key != NULL && cert != NULL && is_pem(cert))
		return ujobs_option_fail(error, "option \"tls.key\" is a file, so \"tls.cert\" has to be one");
	/* A sink is defined before it is given its first secret. */
	if (cert != NULL && key == NULL && secret == NULL && options->n_secrets > 0)
		return ujobs_option_fail(error, "option \"tls.cert\" needs \"tls.key\", or the secret \"tlsKey\"");
	if (cert == NULL && (key != NULL || secret != NULL))
		return ujobs_option_fail(error, "a TLS key needs option \"tls.cert\"");
	return true;
}

static bool
examine_secrets(const UjobsSinkOptions *options, UjobsSinkError *error)
{
	bool		user = ujobs_option_secret(options, "user") != NULL;
	const char *creds = ujobs_option_secret(options, "creds");
	const char *seed = ujobs_option_secret(options, "nkey");
	const char *public = ujobs_option_secret(options, "nkeyPublic");
	char	   *jwt;
	char	   *key;

	if (user + (ujobs_option_secret(options, "token") != NULL) + (creds != NULL) + (seed != NULL) > 1)
		return ujobs_option_fail(error, "a nats sink takes one of the secrets \"user\", \"token\", \"creds\" and \"nkey\"");
	if (user != (ujobs_option_secret(options, "password") != NULL))
		return ujobs_option_fail(error, "secrets \"user\" and \"password\" need each other");
	if ((seed != NULL) != (public != NULL) || (seed != NULL && (strncmp(seed, "SU", 2) != 0 || public[0] != 'U')))
		return ujobs_option_fail(error, "secret \"nkey\" takes a user's seed (\"SU...\") and needs \"nkeyPublic\", its public key (\"U...\")");
	if (creds == NULL)
		return true;
	jwt = ujobs_nats_examine_creds(creds, "NATS USER JWT");
	key = ujobs_nats_examine_creds(creds, "USER NKEY SEED");
	user = jwt != NULL && key != NULL;
	free(jwt);
	free(key);
	return user || ujobs_option_fail(error, "secret \"creds\" takes the text of a .creds file: a user's JWT and seed, with their BEGIN and END lines");
}

bool
ujobs_nats_examine(const UjobsSinkOptions *options, UjobsSinkError *error)
{
	int64_t		age = CLAIM_AGE_MS;

	if (!examine_url(ujobs_option_find(options, "url"), error) ||
		!examine_stream(options, error) ||
		!ujobs_option_read_span(options, "claimAge", &age, error) ||
		!examine_tls(options, error))
		return false;
	if (age < SHORTEST_CLAIM_MS)
		return ujobs_option_fail(error, "option \"claimAge\" takes a second or more");
	return examine_secrets(options, error);
}
