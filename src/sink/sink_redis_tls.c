/*
 * sink_redis_tls.c: reads and writes of a socket, plain or encrypted.
 *
 * The hiredis of many systems has no TLS of its own.  The socket never blocks:
 * a call that cannot go on says for which poll() events to wait.  The server's
 * certificate and its name are verified, always.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "sink/option.h"
#include "sink/sink_redis_tls.h"

static const char *
last_reason(void)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);

	if (reason != NULL)
		return reason;
	if (code != 0 && ERR_SYSTEM_ERROR(code))
		return strerror(ERR_GET_REASON(code));
	return code == 0 && errno != 0 ? strerror(errno) : "closed by the server";
}

/* The files of the options: whom to trust, and who this client is. */
static bool
load_files(UjobsRedis *redis, UjobsSinkError *error)
{
	const char *ca = ujobs_option_find(redis->options, "tls.ca");
	const char *cert = ujobs_option_find(redis->options, "tls.cert");
	const char *key = ujobs_option_find(redis->options, "tls.key");

	if (ca != NULL && SSL_CTX_load_verify_locations(redis->tls_context, ca, NULL) != 1)
		return ujobs_option_fail(error,
								 "could not read certificates of option \"tls.ca\" from \"%s\": %s",
								 ca, last_reason());
	if (ca == NULL && SSL_CTX_set_default_verify_paths(redis->tls_context) != 1)
		return ujobs_option_fail(error, "could not read the system's certificates: %s",
								 last_reason());
	if (cert != NULL && SSL_CTX_use_certificate_chain_file(redis->tls_context, cert) != 1)
		return ujobs_option_fail(
			error, "could not read the certificate of option \"tls.cert\" from \"%s\": %s", cert,
			last_reason());
	if (key != NULL && SSL_CTX_use_PrivateKey_file(redis->tls_context, key, SSL_FILETYPE_PEM) != 1)
		return ujobs_option_fail(error,
								 "could not read the key of option \"tls.key\" from \"%s\": %s",
								 key, last_reason());
	return true;
}

/* The name in the certificate must be the host's of the url. */
static bool
expect_name(UjobsRedis *redis)
{
	const char *host = redis->place.host;
	X509_VERIFY_PARAM *verify = SSL_get0_param(redis->tls);
	struct in6_addr address;

	if (inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(verify, host) == 1;
	X509_VERIFY_PARAM_set_hostflags(verify, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set_tlsext_host_name(redis->tls, host) == 1 &&
		   X509_VERIFY_PARAM_set1_host(verify, host, 0) == 1;
}

/* There is no terminal on which to ask for a key's pass phrase. */
static int
no_pass_phrase(char *buffer, int size, int for_writing, void *argument)
{
	return 0;
}

bool
ujobs_redis_tls_prepare(UjobsRedis *redis, UjobsSinkError *error)
{
	ERR_clear_error();
	redis->tls_context = SSL_CTX_new(TLS_client_method());
	if (redis->tls_context == NULL)
		return ujobs_option_fail(error, "could not prepare TLS: %s", last_reason());
	SSL_CTX_set_min_proto_version(redis->tls_context, TLS1_2_VERSION);
	SSL_CTX_set_verify(redis->tls_context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_default_passwd_cb(redis->tls_context, no_pass_phrase);
	SSL_CTX_set_mode(redis->tls_context,
					 SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	if (!load_files(redis, error))
		return false;
	redis->tls = SSL_new(redis->tls_context);
	if (redis->tls == NULL || !expect_name(redis) || SSL_set_fd(redis->tls, redis->socket) != 1)
		return ujobs_option_fail(error, "could not prepare TLS: %s", last_reason());
	return true;
}

/* What a call that did not succeed waits for; 0 = it failed. */
static short
wait_events(UjobsRedis *redis, int result)
{
	switch (SSL_get_error(redis->tls, result))
	{
		case SSL_ERROR_WANT_READ:
			return POLLIN;
		case SSL_ERROR_WANT_WRITE:
			return POLLOUT;
		default:
			return 0;
	}
}

bool
ujobs_redis_tls_step(UjobsRedis *redis, bool *done, UjobsSinkError *error)
{
	int			result;
	long		verdict;

	ERR_clear_error();
	errno = 0;
	result = SSL_connect(redis->tls);
	*done = result == 1;
	if (*done)
		return true;
	redis->read_waits = wait_events(redis, result);
	if (redis->read_waits != 0)
		return true;
	verdict = SSL_get_verify_result(redis->tls);
	return ujobs_option_fail(
		error, "no TLS with \"%s:%s\": %s", redis->place.host, redis->place.port,
		verdict != X509_V_OK ? X509_verify_cert_error_string(verdict) : last_reason());
}

static ssize_t
lost(UjobsRedis *redis, const char *reason, UjobsSinkError *error)
{
	ujobs_option_fail(error, "lost the connection to \"%s:%s\": %s", redis->place.host,
					  redis->place.port, reason);
	return -1;
}

/* What a read or write of the socket itself came to. */
static ssize_t
moved(UjobsRedis *redis, ssize_t result, bool reading, UjobsSinkError *error)
{
	if (result > 0)
		return result;
	if (result == 0 && reading)
		return lost(redis, "closed by the server", error);
	if (result == 0 || errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
		return 0;
	return lost(redis, strerror(errno), error);
}

static ssize_t
moved_tls(UjobsRedis *redis, int result, short *waits, UjobsSinkError *error)
{
	if (result > 0)
		return result;
	if (SSL_get_error(redis->tls, result) == SSL_ERROR_ZERO_RETURN)
		return lost(redis, "closed by the server", error);
	*waits = wait_events(redis, result);
	return *waits != 0 ? 0 : lost(redis, last_reason(), error);
}

ssize_t
ujobs_redis_tls_read(UjobsRedis *redis, char *bytes, size_t size, UjobsSinkError *error)
{
	redis->read_waits = POLLIN;
	if (redis->tls == NULL)
		return moved(redis, recv(redis->socket, bytes, size, 0), true, error);
	ERR_clear_error();
	errno = 0;
	return moved_tls(redis, SSL_read(redis->tls, bytes, (int) size), &redis->read_waits, error);
}

ssize_t
ujobs_redis_tls_write(UjobsRedis *redis, const char *bytes, size_t size, UjobsSinkError *error)
{
	redis->write_waits = POLLOUT;
	if (redis->tls == NULL)
		return moved(redis, send(redis->socket, bytes, size, MSG_NOSIGNAL), false, error);
	ERR_clear_error();
	errno = 0;
	return moved_tls(redis, SSL_write(redis->tls, bytes, size > 1 << 20 ? 1 << 20 : (int) size),
					 &redis->write_waits, error);
}
