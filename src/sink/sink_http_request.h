/*
 * sink_http_request.h: one message as one request, and what its end means.
 */
#ifndef UJOBS_SINK_SINK_HTTP_REQUEST_H
#define UJOBS_SINK_SINK_HTTP_REQUEST_H

#include <curl/curl.h>

#include "sink/option.h"

/* Requests on their way at once. */
#define UJOBS_HTTP_MOST 16

/* So much of an answer is kept, for the text of an error. */
#define UJOBS_HTTP_BODY_SIZE 2048

/* One request; its connection is kept for the next one. */
typedef struct UjobsHttpRequest
{
	const UjobsSinkOptions *options;
	CURL	   *curl;
	UjobsSinkMessage *message;	/* NULL = not at work */
	char	   *url;			/* with the topic in it; NULL = that of the sink */
	struct curl_slist *headers;
	char		body[UJOBS_HTTP_BODY_SIZE];
	size_t		body_size;		/* kept */
	size_t		body_total;		/* seen */
	char		error[CURL_ERROR_SIZE];
	char		refused[128];	/* an address that may not be spoken to; "" = none */
} UjobsHttpRequest;

typedef struct UjobsHttp
{
	const UjobsSinkOptions *options;
	const char *url;
	int64_t		timeout_ms;		/* of one request */
	CURLM	   *multi;
	UjobsHttpRequest requests[UJOBS_HTTP_MOST];
} UjobsHttp;

/* Makes the handles ready for use; what is the same in all requests is set. */
extern bool ujobs_http_request_open(UjobsHttp *http, UjobsHttpRequest *request);
extern void ujobs_http_request_close(UjobsHttpRequest *request);

/* Makes it one for this message; false: the message is refused. */
extern bool ujobs_http_request_fill(UjobsHttp *http, UjobsHttpRequest *request,
									UjobsSinkMessage *message);

/* Sets the fate of its message by how it ended, and empties it.  With BROKEN, error says why. */
extern void ujobs_http_request_finish(UjobsHttpRequest *request, CURLcode code,
									  UjobsSinkError *error);

/* Why it failed, in words. */
extern void ujobs_http_request_explain(UjobsHttpRequest *request, CURLcode code,
									   UjobsSinkError *error);

#endif							/* UJOBS_SINK_SINK_HTTP_REQUEST_H */
