/*
 * sink_http_publish.c: the messages of a batch as requests, several at once.
 *
 * libcurl keeps the connections for the next batch.  A batch is cut when it has
 * taken a second: what is not on its way by then stays untried, so that a slow
 * receiver does not hold the whole of it for long.
 */
#include "sink/sink_http.h"

#include <string.h>

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

	while (batch->next < batch->n && !batch->broken && (batch->next == 0 || ujobs_option_now() < batch->last_start) &&
		   (request = find_free(http)) != NULL)
	{
		if (!ujobs_http_request_fill(http, request, &batch->messages[batch->next++]))
			continue;
		curl_multi_add_handle(http->multi, request->curl);
		batch->running++;
	}
}

/* Judges those that have ended. */
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
		ujobs_http_request_judge(request, code, error);
		batch->running--;
		batch->broken = batch->broken || message->fate == UJOBS_SINK_BROKEN;
	}
}

/* Ends those that are on their way: nobody knows whether they arrived. */
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

bool
ujobs_http_publish(void *connection, UjobsSinkMessage *messages, int n, UjobsSinkError *error)
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

bool
ujobs_http_probe(UjobsHttp *http, UjobsSinkError *error)
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
	/* A refused address is the messages' fate, unless somebody only asks. */
	if (request.refused[0] == '\0' || http->options->check)
		return false;
	error->text[0] = '\0';
	return true;
}
