/*
 * sink_http.c: the module of HTTP: a webhook for each message.
 *
 *   url        https://host[:port]/path, or http; {topic} behind the host is replaced by the topic
 *   timeout    of one request
 *   method     POST, PUT or PATCH
 *   headers    more headers, {"Name": "value"}
 *   tls.ca, tls.cert, tls.key    files on this server
 *
 * and the secrets bearer; user and password; headers.
 *
 * The files: this one, with publish (a batch); request (one of it); header; and
 * address, which says which addresses a server must not reach for others.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "sink/option.h"
#include "sink/sink_http_header.h"
#include "sink/sink_http_request.h"

/*
 * The messages of a batch as requests, several at once.
 *
 * libcurl keeps the connections for the next batch.  A batch is cut when it has
 * taken a second: what is not on its way by then stays untried, so that a slow
 * receiver does not hold the whole of it for long.
 */

#define SLICE_MS 150			/* of a wait, before the stop is looked at */
#define BATCH_MS 1000			/* no request is begun later */

/* The state of one batch. */
typedef struct Batch
{
	UjobsSinkMessage *messages;
	int			n;
	int			next;			/* message to be begun */
	int			running;
	bool		broken;
	int64_t		last_start;
} Batch;

static UjobsHttpRequest *
find_free(UjobsHttp *http)
{
	for (int i = 0; i < UJOBS_HTTP_MOST; i++)
	{
		if (http->requests[i].message == NULL)
			return &http->requests[i];
	}
	return NULL;
}

/* Begins as many as may be on their way. */
static void
begin_some(UjobsHttp *http, Batch *batch)
{
	UjobsHttpRequest *request;

	while (batch->next < batch->n && !batch->broken &&
		   (batch->next == 0 || ujobs_option_now() < batch->last_start) &&
		   (request = find_free(http)) != NULL)
	{
		if (!ujobs_http_request_fill(http, request, &batch->messages[batch->next++]))
			continue;
		curl_multi_add_handle(http->multi, request->curl);
		batch->running++;
	}
}

/* Sets the fate of those that have ended. */
static void
end_some(UjobsHttp *http, Batch *batch, UjobsSinkError *error)
{
	CURLMsg    *end;
	int			left;

	while ((end = curl_multi_info_read(http->multi, &left)) != NULL)
	{
		UjobsHttpRequest *request = NULL;
		UjobsSinkMessage *message;
		CURLcode	code = end->data.result;

		if (end->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(end->easy_handle, CURLINFO_PRIVATE, &request);
		curl_multi_remove_handle(http->multi, end->easy_handle);
		message = request->message;
		ujobs_http_request_finish(request, code, error);
		batch->running--;
		batch->broken = batch->broken || message->fate == UJOBS_SINK_BROKEN;
	}
}

/* Ends those that are on their way: whether they arrived is unknown. */
static void
give_up(UjobsHttp *http)
{
	for (int i = 0; i < UJOBS_HTTP_MOST; i++)
	{
		UjobsHttpRequest *request = &http->requests[i];

		if (request->message == NULL)
			continue;
		request->message->fate = UJOBS_SINK_BROKEN;
		curl_multi_remove_handle(http->multi, request->curl);
		ujobs_http_request_close(request);
		request->curl = NULL;
	}
}

static bool
publish(void *connection, UjobsSinkMessage *messages, int n, UjobsSinkError *error)
{
	UjobsHttp  *http = connection;
	Batch		batch = {.messages = messages, .n = n, .last_start = ujobs_option_now() + BATCH_MS};
	int			ignored;

	for (int i = 0; i < n; i++)
	{
		messages[i].fate = UJOBS_SINK_UNTRIED;
		messages[i].retry_after_ms = 0;
	}
	begin_some(http, &batch);
	while (batch.running > 0)
	{
		if (ujobs_option_is_stopped(http->options))
		{
			give_up(http);
			return ujobs_option_fail(error, "stopped while it waited for an answer");
		}
		if (curl_multi_perform(http->multi, &ignored) != CURLM_OK)
		{
			give_up(http);
			return ujobs_option_fail(error, "libcurl could not go on");
		}
		end_some(http, &batch, error);
		begin_some(http, &batch);
		if (batch.running > 0)
			curl_multi_poll(http->multi, NULL, 0, SLICE_MS, NULL);
	}
	return !batch.broken;
}

/* Waits for the end of the one request; CURLE_ABORTED_BY_CALLBACK = stopped. */
static CURLcode
run_alone(UjobsHttp *http)
{
	int			running = 1;
	int			left;
	CURLMsg    *end;

	while (curl_multi_perform(http->multi, &running) == CURLM_OK)
	{
		end = curl_multi_info_read(http->multi, &left);
		if (end != NULL && end->msg == CURLMSG_DONE)
			return end->data.result;
		if (running == 0 || ujobs_option_is_stopped(http->options))
			break;
		curl_multi_poll(http->multi, NULL, 0, SLICE_MS, NULL);
	}
	return CURLE_ABORTED_BY_CALLBACK;
}

static bool
probe(UjobsHttp *http, UjobsSinkError *error)
{
	UjobsHttpRequest request;
	CURLcode	code;

	memset(&request, 0, sizeof(request));
	if (!ujobs_http_request_open(http, &request))
		return ujobs_option_fail(error, "out of memory");
	curl_easy_setopt(request.curl, CURLOPT_URL, http->url);
	curl_easy_setopt(request.curl, CURLOPT_CONNECT_ONLY, 1L);
	curl_multi_add_handle(http->multi, request.curl);
	code = run_alone(http);
	curl_multi_remove_handle(http->multi, request.curl);
	if (code != CURLE_OK)
		ujobs_http_request_explain(&request, code, error);
	ujobs_http_request_close(&request);
	if (code == CURLE_OK)
		return true;
	/* A refused address is the messages' fate, unless the sink is only checked. */
	if (request.refused[0] == '\0' || http->options->check)
		return false;
	error->text[0] = '\0';
	return true;
}

/* ---- the module ---- */

#define PLACEHOLDER "{topic}"

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
init_library(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* The parts of a url that a sink's may or must not have. */
static bool
validate_parts(CURLU *parts, UjobsSinkError *error)
{
	char	   *scheme = NULL;
	char	   *text = NULL;
	bool		is_http;

	curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0);
	is_http = scheme != NULL && (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
	curl_free(scheme);
	if (!is_http)
		return ujobs_option_fail(error, "option \"url\" must begin with https:// or http://");
	if (curl_url_get(parts, CURLUPART_USER, &text, 0) == CURLUE_OK ||
		curl_url_get(parts, CURLUPART_PASSWORD, &text, 0) == CURLUE_OK)
	{
		curl_free(text);
		return ujobs_option_fail(
			error, "option \"url\" holds a user or a password, which belong to set_sink_secret");
	}
	if (curl_url_get(parts, CURLUPART_FRAGMENT, &text, 0) == CURLUE_OK)
	{
		curl_free(text);
		return ujobs_option_fail(error,
								 "option \"url\" has a # in it, which no receiver would see");
	}
	return true;
}

static bool
validate_url(const char *url, UjobsSinkError *error)
{
	const char *authority;
	const char *place;
	CURLU	   *parts;
	bool		good;

	if (url == NULL)
		return ujobs_option_fail(error,
								 "option \"url\" is missing, such as https://example.com/hook");
	authority = strstr(url, "://");
	place = strstr(url, PLACEHOLDER);
	if (authority == NULL)
		return ujobs_option_fail(error, "option \"url\" must begin with https:// or http://");
	if (place != NULL &&
		(place < authority || memchr(authority + 3, '/', place - authority - 3) == NULL))
		return ujobs_option_fail(error, "option \"url\" may have %s only behind the host",
								 PLACEHOLDER);
	if (place != NULL && strstr(place + 1, PLACEHOLDER) != NULL)
		return ujobs_option_fail(error, "option \"url\" may have %s only once", PLACEHOLDER);
	parts = curl_url();
	if (parts == NULL)
		return ujobs_option_fail(error, "out of memory");
	good = curl_url_set(parts, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK ?
			   validate_parts(parts, error) :
			   ujobs_option_fail(error, "option \"url\" is not a url");
	curl_url_cleanup(parts);
	return good;
}

static bool
validate_method(const char *method, UjobsSinkError *error)
{
	if (method == NULL || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
		strcmp(method, "PATCH") == 0)
		return true;
	return ujobs_option_fail(error, "option \"method\" is none of POST, PUT and PATCH: \"%s\"",
							 method);
}

static bool
validate(const UjobsSinkOptions *options, UjobsSinkError *error)
{
	int64_t		ignored;

	if ((ujobs_option_find(options, "tls.cert") == NULL) !=
		(ujobs_option_find(options, "tls.key") == NULL))
		return ujobs_option_fail(error, "options \"tls.cert\" and \"tls.key\" belong together");
	return validate_url(ujobs_option_find(options, "url"), error) &&
		validate_method(ujobs_option_find(options, "method"), error) &&
		ujobs_option_read_span(options, "timeout", &ignored, error) &&
		ujobs_http_header_validate(options, error);
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
	return probe(http, error);
}

static void *
connect_http(const UjobsSinkOptions *options, UjobsSinkError *error)
{
	UjobsHttp  *http;

	pthread_once(&once, init_library);
	if (!validate(options, error))
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
	.validate = validate,
	.connect = connect_http,
	.publish = publish,
	.disconnect = disconnect
};

UJOBS_SINK_EXPORT const UjobsSinkModule *
ujobs_sink_module(void)
{
	return &module;
}
