/*
 * sink_http.c: the module of HTTP: a webhook for each message.
 *
 *   url        https://host[:port]/path, or http; {topic} behind the host stands for the topic
 *   timeout    of one request
 *   method     POST, PUT or PATCH
 *   headers    more headers, {"Name": "value"}
 *   tls.ca, tls.cert, tls.key    files on this server
 *
 * and the secrets bearer; user and password; headers.
 *
 * The files: this one; publish (a batch) and request (one of it); header; and
 * address, which says whom a server does not speak to for others.
 */
#include "sink/sink_http.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PLACEHOLDER "{topic}"

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
init_library(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* The parts of a url that a sink's may or must not have. */
static bool
examine_parts(CURLU *parts, UjobsSinkError *error)
{
	char	   *scheme = NULL;
	char	   *text = NULL;
	bool		is_http;

	curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0);
	is_http = scheme != NULL && (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
	curl_free(scheme);
	if (!is_http)
		return ujobs_option_fail(error, "option \"url\" must begin with https:// or http://");
	if (curl_url_get(parts, CURLUPART_USER, &text, 0) == CURLUE_OK || curl_url_get(parts, CURLUPART_PASSWORD, &text, 0) == CURLUE_OK)
	{
		curl_free(text);
		return ujobs_option_fail(error, "option \"url\" holds a user or a password, which belong to set_sink_secret");
	}
	if (curl_url_get(parts, CURLUPART_FRAGMENT, &text, 0) == CURLUE_OK)
	{
		curl_free(text);
		return ujobs_option_fail(error, "option \"url\" has a # in it, which no receiver would see");
	}
	return true;
}

static bool
examine_url(const char *url, UjobsSinkError *error)
{
	const char *authority;
	const char *place;
	CURLU	   *parts;
	bool		good;

	if (url == NULL)
		return ujobs_option_fail(error, "option \"url\" is missing, such as https://example.com/hook");
	authority = strstr(url, "://");
	place = strstr(url, PLACEHOLDER);
	if (authority == NULL)
		return ujobs_option_fail(error, "option \"url\" must begin with https:// or http://");
	if (place != NULL && (place < authority || memchr(authority + 3, '/', place - authority - 3) == NULL))
		return ujobs_option_fail(error, "option \"url\" may have %s only behind the host", PLACEHOLDER);
	if (place != NULL && strstr(place + 1, PLACEHOLDER) != NULL)
		return ujobs_option_fail(error, "option \"url\" may have %s only once", PLACEHOLDER);
	parts = curl_url();
	if (parts == NULL)
		return ujobs_option_fail(error, "out of memory");
	good = curl_url_set(parts, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK ? examine_parts(parts, error)
		: ujobs_option_fail(error, "option \"url\" is not a url");
	curl_url_cleanup(parts);
	return good;
}

static bool
examine_method(const char *method, UjobsSinkError *error)
{
	if (method == NULL || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 || strcmp(method, "PATCH") == 0)
		return true;
	return ujobs_option_fail(error, "option \"method\" is none of POST, PUT and PATCH: \"%s\"", method);
}

static bool
examine(const UjobsSinkOptions *options, UjobsSinkError *error)
{
	int64_t		ignored;

	if ((ujobs_option_find(options, "tls.cert") == NULL) != (ujobs_option_find(options, "tls.key") == NULL))
		return ujobs_option_fail(error, "options \"tls.cert\" and \"tls.key\" belong together");
	return examine_url(ujobs_option_find(options, "url"), error) &&
		examine_method(ujobs_option_find(options, "method"), error) &&
		ujobs_option_read_span(options, "timeout", &ignored, error) &&
		ujobs_http_header_examine(options, error);
}

static void
disconnect(void *connection)
{
	UjobsHttp  *http = connection;

	for (int i = 0; i < UJOBS_HTTP_MOST; i++)
		ujobs_http_request_close(&http->requests[i]);
	if (http->multi != NULL)
		curl_multi_cleanup(http->multi);
	free(http);
}

static bool
open_all(UjobsHttp *http, UjobsSinkError *error)
{
	http->multi = curl_multi_init();
	if (http->multi == NULL)
		return ujobs_option_fail(error, "out of memory");
	curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long) UJOBS_HTTP_MOST);
	for (int i = 0; i < UJOBS_HTTP_MOST; i++)
	{
		if (!ujobs_http_request_open(http, &http->requests[i]))
			return ujobs_option_fail(error, "out of memory");
	}
	return ujobs_http_probe(http, error);
}

static void *
connect_http(const UjobsSinkOptions *options, UjobsSinkError *error)
{
	UjobsHttp  *http;

	pthread_once(&once, init_library);
	if (!examine(options, error))
		return NULL;
	http = calloc(1, sizeof(UjobsHttp));
	if (http == NULL)
	{
		ujobs_option_fail(error, "out of memory");
		return NULL;
	}
	http->options = options;
	http->url = ujobs_option_find(options, "url");
	http->timeout_ms = options->timeout_ms;
	ujobs_option_read_span(options, "timeout", &http->timeout_ms, error);
	if (!open_all(http, error))
	{
		disconnect(http);
		return NULL;
	}
	return http;
}

static const char *const option_names[] = {"url", "timeout", "method", "headers.", "tls.ca", "tls.cert", "tls.key", NULL};
static const char *const secret_names[] = {"bearer", "user", "password", "headers.", NULL};

static const UjobsSinkModule module = {
	.version = UJOBS_SINK_VERSION,
	.size = sizeof(UjobsSinkModule),
	.kind = "http",
	.takes_jobs = false,
	.option_names = option_names,
	.secret_names = secret_names,
	.examine = examine,
	.connect = connect_http,
	.publish = ujobs_http_publish,
	.disconnect = disconnect
};

UJOBS_SINK_EXPORT const UjobsSinkModule *ujobs_sink_module(void);

UJOBS_SINK_EXPORT const UjobsSinkModule *
ujobs_sink_module(void)
{
	return &module;
}
