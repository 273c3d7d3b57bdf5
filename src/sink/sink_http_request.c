/*
 * sink_http_request.c: one message as one request, and what its end means.
 *
 * 2xx is delivered.  408, 425, 429 and 5xx may go better later, and so may an
 * answer that did not come.  Every other status is meant for good; a redirect
 * too: who follows it can be sent anywhere.  A receiver that cannot be reached at all is no
 * fault of the message.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink/option.h"
#include "sink/sink_http_address.h"
#include "sink/sink_http_header.h"
#include "sink/sink_http_request.h"

#define PLACEHOLDER "{topic}"

/* A longer answer is not read to its end. */
#define LONGEST_BODY 1048576

/* A receiver that wishes for more is asked again then. */
#define LONGEST_PAUSE_S 86400

/*
 * libcurl wants a socket: the last moment to look at the address, for all of
 * its ways to get one.
 */
static curl_socket_t
open_socket(void *argument, curlsocktype purpose, struct curl_sockaddr *address)
{
	UjobsHttpRequest *request = argument;
	char		text[64];
	const char *what = NULL;

	if (!request->options->allow_private)
		what = ujobs_http_address_refusal(&address->addr, text, sizeof(text));
	if (what != NULL)
	{
		snprintf(request->refused, sizeof(request->refused), "%s is %s", text, what);
		return CURL_SOCKET_BAD;
	}
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t
keep_body(char *bytes, size_t unit, size_t count, void *argument)
{
	UjobsHttpRequest *request = argument;
	size_t		space = UJOBS_HTTP_BODY_SIZE - 1 - request->body_size;
	size_t		kept = unit * count < space ? unit * count : space;

	memcpy(request->body + request->body_size, bytes, kept);
	request->body_size += kept;
	request->body_total += unit * count;
	return request->body_total > LONGEST_BODY ? 0 : unit * count;
}

static void
set_files(CURL *curl, const UjobsSinkOptions *options)
{
	const char *ca = ujobs_option_find(options, "tls.ca");
	const char *cert = ujobs_option_find(options, "tls.cert");
	const char *key = ujobs_option_find(options, "tls.key");

	if (ca != NULL)
		curl_easy_setopt(curl, CURLOPT_CAINFO, ca);
	if (cert != NULL)
		curl_easy_setopt(curl, CURLOPT_SSLCERT, cert);
	if (key != NULL)
		curl_easy_setopt(curl, CURLOPT_SSLKEY, key);
	curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);
}

static void
set_protocols(CURL *curl)
{
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
	/* A name that is still being looked up does not hold up the end. */
	curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
#endif
}

bool
ujobs_http_request_open(UjobsHttp *http, UjobsHttpRequest *request)
{
	const char *user = ujobs_option_secret(http->options, "user");
	CURL	   *curl = curl_easy_init();

	request->options = http->options;
	request->curl = curl;
	if (curl == NULL)
		return false;
	set_protocols(curl);
	set_files(curl, http->options);
	curl_easy_setopt(curl, CURLOPT_PRIVATE, request);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, request->error);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long) http->timeout_ms);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long) http->timeout_ms);
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, request);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, request);
	if (user != NULL)
	{
		curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
		curl_easy_setopt(curl, CURLOPT_USERNAME, user);
		curl_easy_setopt(curl, CURLOPT_PASSWORD, ujobs_option_secret(http->options, "password"));
	}
	return true;
}

static void
empty(UjobsHttpRequest *request)
{
	curl_slist_free_all(request->headers);
	free(request->url);
	request->headers = NULL;
	request->url = NULL;
	request->message = NULL;
}

void
ujobs_http_request_close(UjobsHttpRequest *request)
{
	if (request->curl != NULL)
		curl_easy_cleanup(request->curl);
	empty(request);
}

/* The sink's url with the topic in its place. */
static char *
fill_url(CURL *curl, const char *url, const char *topic)
{
	const char *place = strstr(url, PLACEHOLDER);
	char	   *escaped = curl_easy_escape(curl, topic, 0);
	char	   *filled = NULL;
	size_t		size;

	if (escaped != NULL)
	{
		size = strlen(url) + strlen(escaped) + 1;
		filled = malloc(size);
		if (filled != NULL)
			snprintf(filled, size, "%.*s%s%s", (int) (place - url), url, escaped,
					 place + strlen(PLACEHOLDER));
		curl_free(escaped);
	}
	return filled;
}

static bool
refuse(UjobsHttpRequest *request, UjobsSinkMessage *message)
{
	message->fate = UJOBS_SINK_REFUSED;
	empty(request);
	return false;
}

bool
ujobs_http_request_fill(UjobsHttp *http, UjobsHttpRequest *request, UjobsSinkMessage *message)
{
	const char *method = ujobs_option_find(http->options, "method");

	request->body_size = request->body_total = 0;
	request->error[0] = request->refused[0] = '\0';
	request->headers = ujobs_http_header_list(http->options, message, &message->error);
	if (request->headers == NULL)
		return refuse(request, message);
	if (strstr(http->url, PLACEHOLDER) != NULL)
	{
		if (message->topic[0] == '\0' || strcmp(message->topic, ".") == 0 ||
			strcmp(message->topic, "..") == 0)
		{
			ujobs_option_fail(&message->error, "topic \"%s\" cannot stand in a url",
							  message->topic);
			return refuse(request, message);
		}
		request->url = fill_url(request->curl, http->url, message->topic);
		if (request->url == NULL)
		{
			ujobs_option_fail(&message->error, "out of memory");
			return refuse(request, message);
		}
	}
	request->message = message;
	curl_easy_setopt(request->curl, CURLOPT_URL, request->url != NULL ? request->url : http->url);
	curl_easy_setopt(request->curl, CURLOPT_POST, 1L);
	curl_easy_setopt(request->curl, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(request->curl, CURLOPT_POSTFIELDS, message->payload);
	curl_easy_setopt(request->curl, CURLOPT_POSTFIELDSIZE_LARGE,
					 (curl_off_t) message->payload_size);
	curl_easy_setopt(request->curl, CURLOPT_HTTPHEADER, request->headers);
	return true;
}

void
ujobs_http_request_explain(UjobsHttpRequest *request, CURLcode code, UjobsSinkError *error)
{
	if (request->refused[0] != '\0')
		ujobs_option_fail(error, "%s, which is not spoken to while ujobs.http_allow_private is off",
						  request->refused);
	else
		ujobs_option_fail(error, "%s",
						  request->error[0] != '\0' ? request->error : curl_easy_strerror(code));
}

/* An answer with a status. */
static void
set_fate(UjobsHttpRequest *request, long status, UjobsSinkMessage *message)
{
	char	   *location = NULL;
	curl_off_t	pause = 0;

	if (status >= 200 && status < 300)
	{
		message->fate = UJOBS_SINK_DELIVERED;
		return;
	}
	message->fate = UJOBS_SINK_REFUSED;
	if (status == 408 || status == 425 || status == 429 || status >= 500)
	{
		message->fate = UJOBS_SINK_FAILED;
		curl_easy_getinfo(request->curl, CURLINFO_RETRY_AFTER, &pause);
		message->retry_after_ms = (int) (pause > LONGEST_PAUSE_S ? LONGEST_PAUSE_S : pause) * 1000;
	}
	curl_easy_getinfo(request->curl, CURLINFO_REDIRECT_URL, &location);
	request->body[request->body_size] = '\0';
	if (status < 400 && location != NULL)
		ujobs_option_fail(&message->error,
						  "status %ld: redirects are not followed, this one is to %s", status,
						  location);
	else if (request->body_size > 0)
		ujobs_option_fail(&message->error, "status %ld: %s", status, request->body);
	else
		ujobs_option_fail(&message->error, "status %ld", status);
}

/* Was there a connection at all? */
static bool
was_reached(UjobsHttpRequest *request, CURLcode code)
{
	curl_off_t	connected = 0;

	switch (code)
	{
		case CURLE_COULDNT_RESOLVE_HOST:
		case CURLE_COULDNT_CONNECT:
		case CURLE_SSL_CONNECT_ERROR:
		case CURLE_PEER_FAILED_VERIFICATION:
		case CURLE_SSL_CERTPROBLEM:
		case CURLE_SSL_CACERT_BADFILE:
		case CURLE_SSL_CIPHER:
		case CURLE_SSL_ISSUER_ERROR:
		case CURLE_OUT_OF_MEMORY:
			return false;
		case CURLE_OPERATION_TIMEDOUT:
			curl_easy_getinfo(request->curl, CURLINFO_PRETRANSFER_TIME_T, &connected);
			return connected > 0;
		default:
			return true;
	}
}

void
ujobs_http_request_finish(UjobsHttpRequest *request, CURLcode code, UjobsSinkError *error)
{
	UjobsSinkMessage *message = request->message;
	long		status = 0;

	curl_easy_getinfo(request->curl, CURLINFO_RESPONSE_CODE, &status);
	if (code == CURLE_OK || (code == CURLE_WRITE_ERROR && status > 0))
		set_fate(request, status, message);
	else
	{
		message->fate = request->refused[0] != '\0' ? UJOBS_SINK_REFUSED :
			was_reached(request, code) ? UJOBS_SINK_FAILED : UJOBS_SINK_BROKEN;
		ujobs_http_request_explain(request, code,
								   message->fate == UJOBS_SINK_BROKEN ? error : &message->error);
	}
	empty(request);
}
