/*
 * sink_http.h: one receiver of webhooks, as the files of this module share it.
 */
#ifndef UJOBS_SINK_SINK_HTTP_H
#define UJOBS_SINK_SINK_HTTP_H

#include "sink/option.h"

#include <curl/curl.h>
#include <sys/socket.h>

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

/* sink_http_address.c */

/*
 * Why a server should not speak to this address on a stranger's behalf ("a
 * loopback address"), or NULL.  text: the address as people write it.
 */
extern const char *ujobs_http_address_judge(const struct sockaddr *address, char *text, size_t size);

/* sink_http_header.c */

/* Are the headers of options and secrets well-formed? */
extern bool ujobs_http_header_examine(const UjobsSinkOptions *options, UjobsSinkError *error);

/* All headers of a message; free with curl_slist_free_all.  NULL with an error if one of its own is refused. */
extern struct curl_slist *ujobs_http_header_list(const UjobsSinkOptions *options, const UjobsSinkMessage *message,
												 UjobsSinkError *error);

/* sink_http_request.c: one request. */

/* Makes the handles ready for use; what is the same in all requests is set. */
extern bool ujobs_http_request_open(UjobsHttp *http, UjobsHttpRequest *request);
extern void ujobs_http_request_close(UjobsHttpRequest *request);

/* Makes it one for this message; false: the message is refused. */
extern bool ujobs_http_request_fill(UjobsHttp *http, UjobsHttpRequest *request, UjobsSinkMessage *message);

/* Sets the fate of its message by how it ended, and empties it.  With BROKEN, error says why. */
extern void ujobs_http_request_judge(UjobsHttpRequest *request, CURLcode code, UjobsSinkError *error);

/* Why it failed, in words. */
extern void ujobs_http_request_explain(UjobsHttpRequest *request, CURLcode code, UjobsSinkError *error);

/* sink_http_publish.c: that of UjobsSinkModule. */
extern bool ujobs_http_publish(void *connection, UjobsSinkMessage *messages, int n, UjobsSinkError *error);

/* Can the receiver be reached?  Connects and sends nothing. */
extern bool ujobs_http_probe(UjobsHttp *http, UjobsSinkError *error);

#endif							/* UJOBS_SINK_SINK_HTTP_H */
