/*
 * sink_nats_access.c: what libnats has to know before it connects.
 *
 * libnats does not reconnect by itself: the relay decides when to try again, and
 * a lost connection has to show at once.  It writes with a deadline, because a
 * server that stopped reading would otherwise hold us for ever.  libnats asks
 * for the JWT and for signatures when the server has sent its nonce, so these
 * are copies that live as long as the connection.
 */
#include <stdlib.h>
#include <string.h>

#include "sink/option.h"
#include "sink/sink_nats.h"

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

	while (n < MAX_SERVERS && ujobs_nats_examine_next(&list, items[n], sizeof(items[n])))
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
		nats->jwt = ujobs_nats_examine_creds(creds, "NATS USER JWT");
		nats->seed = ujobs_nats_examine_creds(creds, "USER NKEY SEED");
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
ujobs_nats_access_prepare(UjobsNats *nats, UjobsSinkError *error)
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
		status = natsOptions_SetErrorHandler(nats->how, ujobs_nats_round_complain, nats);
	if (status == NATS_OK)
		status = natsOptions_SetClosedCB(nats->how, ujobs_nats_round_close, nats);
	if (status != NATS_OK)
		return ujobs_nats_error_status(error, "cannot prepare the connection", status);
	if ((status = set_tls(nats)) != NATS_OK)
		return ujobs_nats_error_status(error, "the TLS certificates or the key cannot be used", status);
	if ((status = set_user(nats)) != NATS_OK)
		return ujobs_nats_error_status(error, "the user's secrets cannot be used", status);
	return true;
}
