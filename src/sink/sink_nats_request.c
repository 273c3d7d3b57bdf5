/*
 * sink_nats_request.c: many requests to the server, in flight at once.
 *
 * Each request is a message whose reply subject is ours and ends in the number of
 * the batch and of the request, so that an answer finds its request, and one that
 * comes too late finds none.  JetStream's acknowledgements, claims,
 * and reads are all of this kind.
 *
 * What is in flight is bounded in messages and bytes: it fits into buffers on
 * the way, so that sending does not block when the server has stopped reading,
 * and the server is not handed more than it wants to hold.
 *
 * libnats tells that a subject has no responder, but not which subject.  So these
 * answers are counted, and when no other requests are open it is known which.
 *
 * A server that does not permit a subject does not answer; it sends an error, and
 * libnats calls ujobs_nats_request_denied in a thread of its own.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink/option.h"
#include "sink/sink_nats_error.h"
#include "sink/sink_nats_request.h"
#include "sink/timed_call.h"

#define MOST_MESSAGES 1000
#define MOST_BYTES (512 * 1024)

typedef struct Exchange
{
	UjobsNats  *nats;
	const UjobsNatsRequests *requests;
	natsMsg   **open;			/* of each request: sent and not answered */
	int			next;			/* request to send */
	int			messages;		/* that are open */
	int			unserved;		/* of the open ones: that have no responder */
	int64_t		bytes;
} Exchange;

bool
ujobs_nats_request_prepare(UjobsNats *nats, UjobsSinkError *error)
{
	char		subject[128];
	natsStatus	status;

	status = natsInbox_Create(&nats->inbox);
	if (status == NATS_OK)
	{
		snprintf(subject, sizeof(subject), "%s.*.*", nats->inbox);
		status = natsConnection_SubscribeSync(&nats->answers, nats->connection, subject);
	}
	if (status == NATS_OK)
		status = natsSubscription_SetPendingLimits(nats->answers, -1, -1);
	return status == NATS_OK || ujobs_nats_error_status(error, "cannot subscribe", status);
}

void
ujobs_nats_request_denied(natsConnection *connection, natsSubscription *subscription,
						  natsStatus status, void *argument)
{
	UjobsNatsDenials *denials = &((UjobsNats *) argument)->denials;
	const char *text = NULL;
	const char *subject;

	if (status != NATS_NOT_PERMITTED || natsConnection_GetLastError(connection, &text) == NATS_OK ||
		text == NULL)
		return;
	subject = strchr(text, '"');
	if (subject == NULL)
		return;
	subject++;
	pthread_mutex_lock(&denials->lock);
	if (denials->count < UJOBS_NATS_DENIALS)
		snprintf(denials->subject[denials->count++], UJOBS_NATS_SUBJECT_SIZE, "%.*s",
				 (int) strcspn(subject, "\""), subject);
	pthread_mutex_unlock(&denials->lock);
}

void
ujobs_nats_request_close(natsConnection *connection, void *argument)
{
	UjobsNatsDenials *denials = &((UjobsNats *) argument)->denials;

	pthread_mutex_lock(&denials->lock);
	denials->closed = true;
	pthread_cond_signal(&denials->changed);
	pthread_mutex_unlock(&denials->lock);
}

static void
finish_request(Exchange *run, int i, UjobsNatsOutcome outcome, natsMsg *answer)
{
	natsMsg    *request = run->open[i];

	run->open[i] = NULL;
	run->messages--;
	run->bytes -= natsMsg_GetDataLength(request);
	run->requests->answer(run->requests->context, i, outcome, answer);
	natsMsg_Destroy(request);
}

/* Closes the requests that the server does not permit. */
static void
apply_denials(Exchange *run)
{
	UjobsNatsDenials *denials = &run->nats->denials;
	int			i;
	int			c;

	pthread_mutex_lock(&denials->lock);
	for (c = 0; c < denials->count; c++)
	{
		for (i = 0; i < run->next; i++)
		{
			if (run->open[i] != NULL &&
				strcmp(natsMsg_GetSubject(run->open[i]), denials->subject[c]) == 0)
				finish_request(run, i, UJOBS_NATS_DENIED, NULL);
		}
	}
	denials->count = 0;
	pthread_mutex_unlock(&denials->lock);
}

/* If all that are open have no responder it is known which these are. */
static void
finish_unserved(Exchange *run)
{
	int			i;

	if (run->unserved == 0 || run->unserved < run->messages)
		return;
	for (i = 0; i < run->next; i++)
	{
		if (run->open[i] != NULL)
			finish_request(run, i, UJOBS_NATS_NO_RESPONDER, NULL);
	}
	run->unserved = 0;
}

/* As many as may be in flight; at least one. */
static natsStatus
send_more(Exchange *run)
{
	char		reply[192];

	while (run->next < run->requests->n &&
		   (run->messages == 0 || (run->messages < MOST_MESSAGES && run->bytes < MOST_BYTES)))
	{
		int			i = run->next;
		natsStatus	status;

		snprintf(reply, sizeof(reply), "%s.%llu.%d", run->nats->inbox,
				 (unsigned long long) run->nats->batch, i);
		run->open[i] = run->requests->compose(run->requests->context, i, reply);
		run->next++;
		if (run->open[i] == NULL)
			continue;
		run->messages++;
		run->bytes += natsMsg_GetDataLength(run->open[i]);
		status = natsConnection_PublishMsg(run->nats->connection, run->open[i]);
		if (status != NATS_OK)
			return status;
	}
	return NATS_OK;
}

/* The request that this answers; -1 = none of this batch. */
static int
find_request(Exchange *run, natsMsg *answer)
{
	const char *subject = natsMsg_GetSubject(answer) + strlen(run->nats->inbox) + 1;
	char	   *end;
	unsigned long long batch = strtoull(subject, &end, 10);
	long		i = *end == '.' ? strtol(end + 1, NULL, 10) : -1;

	if (batch != run->nats->batch || i < 0 || i >= run->requests->n || run->open[i] == NULL)
		return -1;
	return (int) i;
}

/* One answer, or a slice of time without any. */
static natsStatus
receive_one(Exchange *run)
{
	natsMsg    *answer = NULL;
	natsStatus	status = natsSubscription_NextMsg(&answer, run->nats->answers, UJOBS_NATS_SLICE_MS);
	int			i;

	switch (status)
	{
		case NATS_OK:
			i = find_request(run, answer);
			if (i >= 0)
				finish_request(run, i, UJOBS_NATS_ANSWERED, answer);
			natsMsg_Destroy(answer);
			finish_unserved(run);
			return NATS_OK;
		case NATS_NO_RESPONDERS:
			run->unserved++;
			finish_unserved(run);
			return NATS_OK;
		case NATS_TIMEOUT:
			apply_denials(run);
			finish_unserved(run);
			return NATS_OK;
		default:
			return status;
	}
}

static bool
exchange(Exchange *run, UjobsSinkError *error)
{
	for (;;)
	{
		natsStatus	status = send_more(run);

		if (status == NATS_OK && run->messages == 0)
			return true;
		if (status == NATS_OK)
			status = receive_one(run);
		if (status != NATS_OK)
			return ujobs_nats_error_status(error, "the connection is lost", status);
		if (run->messages > 0 &&
			ujobs_timed_call_is_late(run->nats->options, run->nats->deadline, error))
			return false;
	}
}

bool
ujobs_nats_request_run(UjobsNats *nats, const UjobsNatsRequests *requests, UjobsSinkError *error)
{
	Exchange	run = {.nats = nats, .requests = requests};
	bool		good;
	int			i;

	run.open = calloc(requests->n + 1, sizeof(natsMsg *));
	if (run.open == NULL)
		return ujobs_option_fail(error, "out of memory");
	nats->batch++;
	good = exchange(&run, error);
	for (i = 0; i < run.next; i++)
		natsMsg_Destroy(run.open[i]);
	free(run.open);
	return good;
}
