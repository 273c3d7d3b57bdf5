/*
 * sink_nats_option.c: are the options and secrets of a sink well-formed?
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
#include "sink/sink_nats_error.h"
#include "sink/sink_nats_option.h"
#include "sink/sink_nats_request.h"
#include "sink/sink_nats_subject.h"

#define CLAIM_AGE_MS (24 * 3600 * INT64_C(1000))
#define SHORTEST_CLAIM_MS 1000

bool
ujobs_nats_option_next(const char **list, char *item, size_t size)
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
ujobs_nats_option_claim_age(const UjobsSinkOptions *options)
{
	int64_t		age = CLAIM_AGE_MS;
	UjobsSinkError ignored;

	ujobs_option_read_span(options, "claimAge", &age, &ignored);
	return age;
}

int
ujobs_nats_option_replicas(const UjobsSinkOptions *options)
{
	const char *replicas = ujobs_option_find(options, "replicas");

	return replicas == NULL ? 1 : atoi(replicas);
}

char *
ujobs_nats_option_creds(const char *creds, const char *name)
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
validate_url(const char *url, UjobsSinkError *error)
{
	const char *list = url;
	char		item[512];

	if (url == NULL || url[0] == '\0')
		return ujobs_option_fail(
			error, "a nats sink needs the option \"url\", such as \"nats://127.0.0.1:4222\"");
	if (strchr(url, '@') != NULL)
		return ujobs_option_fail(
			error, "option \"url\" has a user in it: give it to ujobs.set_sink_secret instead");
	while (ujobs_nats_option_next(&list, item, sizeof(item)))
	{
		const char *host = strstr(item, "://");
		const char *port;

		if (host == NULL || (strncmp(item, "nats://", 7) != 0 && strncmp(item, "tls://", 6) != 0))
			return ujobs_option_fail(
				error,
				"option \"url\" takes nats://host:port and tls://host:port, several with commas: \"%.200s\"",
				item);
		host += 3;
		port = *host == '[' ? strchr(host, ']') : host;
		port = port == NULL ? NULL : strchr(port, ':');
		if (host[strcspn(host, " /?#")] != '\0' || *host == '\0' || *host == ':' ||
			(*host == '[' && strchr(host, ']') == NULL) ||
			(port != NULL && (port[1 + strspn(port + 1, "0123456789")] != '\0' ||
							  atoi(port + 1) < 1 || atoi(port + 1) > 65535)))
			return ujobs_option_fail(
				error, "option \"url\" has no such address as host:port in \"%.200s\"", item);
	}
	return true;
}

static bool
validate_stream(const UjobsSinkOptions *options, UjobsSinkError *error)
{
	const char *stream = ujobs_option_find(options, "stream");
	const char *subjects = ujobs_option_find(options, "subjects");
	const char *replicas = ujobs_option_find(options, "replicas");
	char		item[UJOBS_NATS_SUBJECT_SIZE + 1];

	if (stream != NULL && (strlen(stream) > 100 || strpbrk(stream, "./") != NULL ||
						   !ujobs_nats_subject_check(stream, false, error)))
		return ujobs_option_fail(
			error,
			"option \"stream\" takes a name of at most 100 bytes without a dot, a blank, a slash, a quote, \"*\", \">\" or \"$\" at its begin");
	if (subjects != NULL && stream == NULL)
		return ujobs_option_fail(error, "option \"subjects\" needs the option \"stream\"");
	while (ujobs_nats_option_next(&subjects, item, sizeof(item)))
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
validate_tls(const UjobsSinkOptions *options, UjobsSinkError *error)
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
		return ujobs_option_fail(error,
								 "option \"%s\" takes the absolute path of a file on this server%s",
								 files[i],
								 i < 2 ? ", or the certificate itself in PEM" :
										 "; the key itself is the secret \"tlsKey\"");
	}
	if (secret != NULL && (!is_pem(secret) || (cert != NULL && !is_pem(cert))))
		return ujobs_option_fail(
			error,
			"secret \"tlsKey\" takes a key in PEM, and wants option \"tls.cert\" to be PEM too");
	if (key != NULL && cert != NULL && is_pem(cert))
		return ujobs_option_fail(error,
								 "option \"tls.key\" is a file, so \"tls.cert\" has to be one");
	/* A sink is defined before it is given its first secret. */
	if (cert != NULL && key == NULL && secret == NULL && options->n_secrets > 0)
		return ujobs_option_fail(error,
								 "option \"tls.cert\" needs \"tls.key\", or the secret \"tlsKey\"");
	if (cert == NULL && (key != NULL || secret != NULL))
		return ujobs_option_fail(error, "a TLS key needs option \"tls.cert\"");
	return true;
}

static bool
validate_secrets(const UjobsSinkOptions *options, UjobsSinkError *error)
{
	bool		user = ujobs_option_secret(options, "user") != NULL;
	const char *creds = ujobs_option_secret(options, "creds");
	const char *seed = ujobs_option_secret(options, "nkey");
	const char *public = ujobs_option_secret(options, "nkeyPublic");
	char	   *jwt;
	char	   *key;

	if (user + (ujobs_option_secret(options, "token") != NULL) + (creds != NULL) + (seed != NULL) >
		1)
		return ujobs_option_fail(
			error,
			"a nats sink takes one of the secrets \"user\", \"token\", \"creds\" and \"nkey\"");
	if (user != (ujobs_option_secret(options, "password") != NULL))
		return ujobs_option_fail(error, "secrets \"user\" and \"password\" need each other");
	if ((seed != NULL) != (public != NULL) ||
		(seed != NULL && (strncmp(seed, "SU", 2) != 0 || public[0] != 'U')))
		return ujobs_option_fail(
			error,
			"secret \"nkey\" takes a user's seed (\"SU...\") and needs \"nkeyPublic\", its public key (\"U...\")");
	if (creds == NULL)
		return true;
	jwt = ujobs_nats_option_creds(creds, "NATS USER JWT");
	key = ujobs_nats_option_creds(creds, "USER NKEY SEED");
	user = jwt != NULL && key != NULL;
	free(jwt);
	free(key);
	return user ||
		   ujobs_option_fail(
			   error,
			   "secret \"creds\" takes the text of a .creds file: a user's JWT and seed, with their BEGIN and END lines");
}

bool
ujobs_nats_option_validate(const UjobsSinkOptions *options, UjobsSinkError *error)
{
	int64_t		age = CLAIM_AGE_MS;

	if (!validate_url(ujobs_option_find(options, "url"), error) ||
		!validate_stream(options, error) ||
		!ujobs_option_read_span(options, "claimAge", &age, error) ||
		!validate_tls(options, error))
		return false;
	if (age < SHORTEST_CLAIM_MS)
		return ujobs_option_fail(error, "option \"claimAge\" takes a second or more");
	return validate_secrets(options, error);
}

/*
 * What libnats has to know before it connects.
 *
 * libnats does not reconnect by itself: the relay decides when to try again, and
 * a lost connection has to show at once.  It writes with a deadline, because a
 * server that stopped reading would otherwise hold us for ever.  libnats asks
 * for the JWT and for signatures when the server has sent its nonce, so these
 * are copies that live as long as the connection.
 */

#define MAX_SERVERS 32

static natsStatus
give_jwt(char **jwt, char **refusal, void *nats)
{
	*jwt = strdup(((UjobsNats *) nats)->jwt);
	return *jwt == NULL ? NATS_NO_MEMORY : NATS_OK;
}

static natsStatus
sign(char **refusal, unsigned char **signature, int *length, const char *nonce, void *nats)
{
	return nats_Sign(((UjobsNats *) nats)->seed, nonce, signature, length);
}

static natsStatus
set_servers(UjobsNats *nats)
{
	const char *list = ujobs_option_find(nats->options, "url");
	char		items[MAX_SERVERS][512];
	const char *urls[MAX_SERVERS];
	int			n = 0;

	while (n < MAX_SERVERS && ujobs_nats_option_next(&list, items[n], sizeof(items[n])))
	{
		urls[n] = items[n];
		n++;
	}
	return natsOptions_SetServers(nats->how, urls, n);
}

static natsStatus
set_tls(UjobsNats *nats)
{
	const char *url = ujobs_option_find(nats->options, "url");
	const char *ca = ujobs_option_find(nats->options, "tls.ca");
	const char *cert = ujobs_option_find(nats->options, "tls.cert");
	const char *key = ujobs_option_find(nats->options, "tls.key");
	const char *secret = ujobs_option_secret(nats->options, "tlsKey");
	natsStatus	status = NATS_OK;

	if (strstr(url, "tls://") == NULL && ca == NULL && cert == NULL)
		return NATS_OK;
	nats->used_tls = true;
	status = natsOptions_SetSecure(nats->how, true);
	if (status == NATS_OK && ca != NULL)
		status = ca[0] == '/' ? natsOptions_LoadCATrustedCertificates(nats->how, ca)
			: natsOptions_SetCATrustedCertificates(nats->how, ca);
	if (status == NATS_OK && cert != NULL && key != NULL)
		status = natsOptions_LoadCertificatesChain(nats->how, cert, key);
	else if (status == NATS_OK && cert != NULL && secret != NULL)
		status = natsOptions_SetCertificatesChain(nats->how, cert, secret);
	return status;
}

static natsStatus
set_user(UjobsNats *nats)
{
	const UjobsSinkOptions *options = nats->options;
	const char *user = ujobs_option_secret(options, "user");
	const char *token = ujobs_option_secret(options, "token");
	const char *creds = ujobs_option_secret(options, "creds");
	const char *seed = ujobs_option_secret(options, "nkey");

	if (user != NULL)
		return natsOptions_SetUserInfo(nats->how, user, ujobs_option_secret(options, "password"));
	if (token != NULL)
		return natsOptions_SetToken(nats->how, token);
	if (creds != NULL)
	{
		nats->jwt = ujobs_nats_option_creds(creds, "NATS USER JWT");
		nats->seed = ujobs_nats_option_creds(creds, "USER NKEY SEED");
		if (nats->jwt == NULL || nats->seed == NULL)
			return NATS_INVALID_ARG;
		return natsOptions_SetUserCredentialsCallbacks(nats->how, give_jwt, nats, sign, nats);
	}
	if (seed == NULL)
		return NATS_OK;
	nats->seed = strdup(seed);
	return natsOptions_SetNKey(nats->how, ujobs_option_secret(options, "nkeyPublic"), sign, nats);
}

bool
ujobs_nats_option_apply(UjobsNats *nats, UjobsSinkError *error)
{
	char		name[128] = "ujobs ";
	natsStatus	status;

	strncat(name, nats->options->sink, sizeof(name) - sizeof("ujobs "));
	status = natsOptions_Create(&nats->how);
	if (status == NATS_OK)
		status = set_servers(nats);
	if (status == NATS_OK)
		status = natsOptions_SetName(nats->how, name);
	if (status == NATS_OK)
		status = natsOptions_SetAllowReconnect(nats->how, false);
	if (status == NATS_OK)
		status = natsOptions_SetTimeout(nats->how, nats->options->timeout_ms);
	if (status == NATS_OK)
		status = natsOptions_SetWriteDeadline(nats->how, nats->options->timeout_ms);
	if (status == NATS_OK)
		status = natsOptions_SetErrorHandler(nats->how, ujobs_nats_request_denied, nats);
	if (status == NATS_OK)
		status = natsOptions_SetClosedCB(nats->how, ujobs_nats_request_close, nats);
	if (status != NATS_OK)
		return ujobs_nats_error_status(error, "cannot prepare the connection", status);
	if ((status = set_tls(nats)) != NATS_OK)
		return ujobs_nats_error_status(error, "the TLS certificates or the key cannot be used",
									   status);
	if ((status = set_user(nats)) != NATS_OK)
		return ujobs_nats_error_status(error, "the user's secrets cannot be used", status);
	return true;
}
