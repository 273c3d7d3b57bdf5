/*
 * sink_nats_take.c: jobs of a queue, from the consumer that all stores share.
 *
 * Messages are pulled: a request names how many, and where to.  The first one
 * of a take asks for what is there and no more, and ends with a status when
 * that is sent.  If nothing was there, the next one asks for a single message
 * and lets the server wait; after that comes another one of the first kind, so
 * that a burst is taken as one.  Nothing is asked for beyond what this take
 * gives away, because what lies here is lost to other stores until the
 * consumer's time for an acknowledgement is over.
 *
 * A message that is left is offered again after some seconds, to the store that asks
 * then.  Of acknowledgements the last of a batch is confirmed: the server works
 * them off in their order.  If one is lost anyway, the claim holds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink/option.h"
#include "sink/sink_nats_error.h"
#include "sink/sink_nats_option.h"
#include "sink/sink_nats_request.h"
#include "sink/sink_nats_stream.h"
#include "sink/sink_nats_subject.h"
#include "sink/sink_nats_take.h"

/*
 * The first store to claim a message's id is its owner.
 *
 * A claim is a message in the stream of claims: its subject ends in the id, its
 * text is the uuid of the store.  It is published on the condition that the
 * subject has no message yet, so JetStream lets one of many succeed and tells
 * the others so (10071); these read who it was.  A store that finds its own
 * uuid owns the message too: its earlier acknowledgement, or its job, was lost.
 *
 * The stream forgets a claim after claimAge.  An answer that says neither "you"
 * nor "another store" is never taken for ownership.
 */

typedef struct Claiming
{
	UjobsNats  *nats;
	UjobsSinkDelivery *deliveries;
	bool	   *taken;			/* of each: a store, perhaps this one, claimed it before */
	UjobsSinkError failure;
} Claiming;

static natsMsg *
compose_claim(void *context, int i, const char *reply)
{
	Claiming   *claiming = context;
	const char *store_id = claiming->nats->options->store_id;
	char		subject[UJOBS_NATS_SUBJECT_SIZE];
	natsMsg    *question = NULL;

	ujobs_nats_subject_of_claim(claiming->nats, claiming->deliveries[i].id, subject);
	if (natsMsg_Create(&question, subject, reply, store_id, (int) strlen(store_id)) == NATS_OK &&
		natsMsgHeader_Set(question, "Nats-Expected-Last-Subject-Sequence", "0") == NATS_OK &&
		natsMsgHeader_Set(question, "Nats-Expected-Stream", claiming->nats->claims) == NATS_OK)
		return question;
	natsMsg_Destroy(question);
	ujobs_option_fail(&claiming->failure, "out of memory");
	return NULL;
}

static void
answer_claim(void *context, int i, UjobsNatsOutcome outcome, natsMsg *reply)
{
	Claiming   *claiming = context;
	UjobsSinkError error = {""};
	int			code = 0;

	if (outcome == UJOBS_NATS_DENIED)
		ujobs_option_fail(&claiming->failure, "the user may not publish to \"%s.claims.*\"",
						  claiming->nats->prefix);
	else if (outcome == UJOBS_NATS_NO_RESPONDER)
		ujobs_option_fail(&claiming->failure, "stream \"%s\" is gone", claiming->nats->claims);
	else if (!ujobs_nats_error_answered(reply, &code, &error))
		claiming->deliveries[i].ours = true;
	else if (code == JSStreamWrongLastSequenceErr)
		claiming->taken[i] = true;
	else
		ujobs_option_fail(&claiming->failure,
						  "a message cannot be claimed in stream \"%s\": %.300s",
						  claiming->nats->claims, error.text);
}

static natsMsg *
compose_read(void *context, int i, const char *reply)
{
	Claiming   *claiming = context;
	char		subject[UJOBS_NATS_SUBJECT_SIZE];
	char		question[2 * UJOBS_NATS_SUBJECT_SIZE];
	natsMsg    *message = NULL;

	if (!claiming->taken[i])
		return NULL;
	ujobs_nats_subject_of_claim(claiming->nats, claiming->deliveries[i].id, subject);
	snprintf(question, sizeof(question), "$JS.API.DIRECT.GET.%s.%s", claiming->nats->claims,
			 subject);
	if (natsMsg_Create(&message, question, reply, NULL, 0) != NATS_OK)
		ujobs_option_fail(&claiming->failure, "out of memory");
	return message;
}

static void
answer_read(void *context, int i, UjobsNatsOutcome outcome, natsMsg *reply)
{
	Claiming   *claiming = context;
	const char *store_id = claiming->nats->options->store_id;

	if (outcome != UJOBS_NATS_ANSWERED)
		ujobs_option_fail(&claiming->failure, "claims cannot be read from stream \"%s\"%s",
						  claiming->nats->claims,
						  outcome == UJOBS_NATS_DENIED ? ": the user may not" : "");
	else
		claiming->deliveries[i].ours = natsMsg_GetDataLength(reply) == (int) strlen(store_id) &&
			memcmp(natsMsg_GetData(reply), store_id, strlen(store_id)) == 0;
}

static bool
claim_all(UjobsNats *nats, UjobsSinkDelivery *deliveries, int n, UjobsSinkError *error)
{
	Claiming	claiming = {.nats = nats, .deliveries = deliveries};
	UjobsNatsRequests claims = {.n = n, .compose = compose_claim, .answer = answer_claim, .context = &claiming};
	UjobsNatsRequests reads = {.n = n, .compose = compose_read, .answer = answer_read, .context = &claiming};
	bool		good;

	claiming.taken = calloc(n + 1, sizeof(bool));
	if (claiming.taken == NULL)
		return ujobs_option_fail(error, "out of memory");
	good = ujobs_nats_request_run(nats, &claims, error) &&
		   ujobs_nats_request_run(nats, &reads, error);
	free(claiming.taken);
	if (good && claiming.failure.text[0] != '\0')
	{
		*error = claiming.failure;
		return false;
	}
	return good;
}

/* ---- taking ---- */

#define LONGEST_ID 200
#define LEAVE_MS 2000			/* times how often it was offered ... */
#define LONGEST_LEAVE_MS 20000	/* ... but not longer */

bool
ujobs_nats_take_subscribe(void *connection, const char *queue, UjobsSinkError *error)
{
	UjobsNats  *nats = connection;
	char		subject[128];
	natsStatus	status;

	if (nats->queue.arrivals != NULL)
		return ujobs_option_fail(error, "this connection takes the jobs of another queue");
	nats->deadline = ujobs_option_now() + nats->options->timeout_ms;
	if (!ujobs_nats_stream_open_queue(nats, queue, error))
		return false;
	status = natsInbox_Create(&nats->queue.inbox);
	if (status == NATS_OK)
	{
		snprintf(subject, sizeof(subject), "%s.*", nats->queue.inbox);
		status = natsConnection_SubscribeSync(&nats->queue.arrivals, nats->connection, subject);
	}
	if (status == NATS_OK)
		status = natsSubscription_SetPendingLimits(nats->queue.arrivals, -1, -1);
	return status == NATS_OK || ujobs_nats_error_status(error, "cannot subscribe", status);
}

/* Asks for n messages: those there are (wait_ms 0), or the first that comes. */
static bool
pull(UjobsNats *nats, int n, int64_t wait_ms, UjobsSinkError *error)
{
	UjobsNatsQueue *queue = &nats->queue;
	char		subject[2 * UJOBS_NATS_NAME_SIZE + 64];
	char		reply[128];
	char		request[128];
	natsStatus	status;

	snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.MSG.NEXT.%s.%s", nats->jobs,
			 queue->consumer);
	snprintf(reply, sizeof(reply), "%s.%llu", queue->inbox, (unsigned long long) ++queue->pull);
	if (wait_ms > 0)
		snprintf(request, sizeof(request), "{\"batch\":%d,\"expires\":%lld}", n,
				 (long long) wait_ms * 1000000);
	else
		snprintf(request, sizeof(request), "{\"batch\":%d,\"no_wait\":true}", n);
	queue->pull_left = n;
	queue->pull_ends = ujobs_option_now() + wait_ms;
	status = natsConnection_PublishRequestString(nats->connection, subject, reply, request);
	return status == NATS_OK || ujobs_nats_error_status(error, "the connection is lost", status);
}

/*
 * A part of the subject that a message is acknowledged by:
 * $JS.ACK.stream.consumer.delivered.sequence.consumersequence.time.pending,
 * or with the domain and the account's hash before the stream.
 */
enum
{
	PART_DELIVERED = 2, PART_SEQUENCE = 3, PART_TIME = 5
};

static unsigned long long
part_of(const char *reply, int part)
{
	const char *c;
	int			dots = 0;

	for (c = reply; *c != '\0'; c++)
		dots += *c == '.';
	part += dots == 8 ? 2 : 4;
	for (c = reply; part > 0 && c != NULL; part--)
	{
		c = strchr(c, '.');
		c = c != NULL ? c + 1 : NULL;
	}
	return c != NULL ? strtoull(c, NULL, 10) : 0;
}

/* The id that the sender gave, or one that no other message has; from malloc. */
static char *
id_of(natsMsg *message)
{
	const char *id = NULL;
	const char *reply = natsMsg_GetReply(message);
	char		made[64];

	if (natsMsgHeader_Get(message, "Nats-Msg-Id", &id) == NATS_OK && id[0] != '\0' &&
		strlen(id) <= LONGEST_ID)
		return strdup(id);

	/* The time, because a stream that is made anew counts from one. */
	snprintf(made, sizeof(made), "nats-%llu-%llu", part_of(reply, PART_SEQUENCE),
			 part_of(reply, PART_TIME));
	return strdup(made);
}

static natsStatus
send_verdict(UjobsNats *nats, natsMsg *message, UjobsSinkVerdict verdict)
{
	int64_t		offered = (int64_t) part_of(natsMsg_GetReply(message), PART_DELIVERED);
	int64_t		delay = LEAVE_MS * (offered > 1 ? offered : 1);
	char		text[64];

	if (verdict == UJOBS_SINK_DONE)
		snprintf(text, sizeof(text), "+ACK");
	else
		snprintf(text, sizeof(text), "-NAK {\"delay\":%lld}",
				 (long long) (delay < LONGEST_LEAVE_MS ? delay : LONGEST_LEAVE_MS) * 1000000);
	return natsConnection_PublishString(nats->connection, natsMsg_GetReply(message), text);
}

/* What one call of take has so far. */
typedef struct Taking
{
	UjobsNats  *nats;
	UjobsSinkDelivery *deliveries;
	int			n;
	int			max;
	int64_t		until;
	UjobsSinkError *error;
} Taking;

static bool
is_gone(const UjobsNats *nats, UjobsSinkError *error)
{
	return ujobs_option_fail(error, "the consumer \"%s\" of stream \"%s\" is gone",
							 nats->queue.consumer, nats->jobs);
}

/* A status instead of a message: the pull is over, or the consumer is gone. */
static bool
read_status(UjobsNats *nats, natsMsg *message, UjobsSinkError *error)
{
	const char *number = strrchr(natsMsg_GetSubject(message), '.');
	const char *description = "";

	if (number == NULL || strtoull(number + 1, NULL, 10) != nats->queue.pull)
		return true;			/* of an earlier pull */
	nats->queue.pull_left = 0;
	natsMsgHeader_Get(message, "Description", &description);
	return strcmp(description, "Consumer Deleted") != 0 || is_gone(nats, error);
}

/*
 * Collects what the pull brings, until it is over, there are enough, or the
 * time has come.  What has come is kept also if it fails.
 */
static bool
collect(Taking *taking, int64_t until)
{
	UjobsNatsQueue *queue = &taking->nats->queue;

	while (taking->n < taking->max && queue->pull_left > 0)
	{
		natsMsg    *message = NULL;
		int64_t		left = until - ujobs_option_now();
		natsStatus	status;
		bool		good = true;

		if (ujobs_option_is_stopped(taking->nats->options) || left < 0)
			return true;
		status = natsSubscription_NextMsg(&message, queue->arrivals,
										  left < 1					 ? 1 :
										  left < UJOBS_NATS_SLICE_MS ? left :
																	   UJOBS_NATS_SLICE_MS);
		if (status == NATS_TIMEOUT)
			continue;
		if (status == NATS_NO_RESPONDERS)
			return is_gone(taking->nats, taking->error);
		if (status != NATS_OK)
			return ujobs_nats_error_status(taking->error, "the connection is lost", status);
		if (natsMsg_GetReply(message) != NULL)
		{
			queue->pull_left--;
			memset(&taking->deliveries[taking->n], 0, sizeof(UjobsSinkDelivery));
			taking->deliveries[taking->n++].handle = message;
			continue;
		}
		good = read_status(taking->nats, message, taking->error);
		natsMsg_Destroy(message);
		if (!good)
			return false;
	}
	return true;
}

/* Is the server overdue with what it was asked for? */
static bool
check_answered(const Taking *taking, int64_t due)
{
	if (taking->nats->queue.pull_left == 0 || taking->n == taking->max ||
		ujobs_option_now() < due || ujobs_option_is_stopped(taking->nats->options))
		return true;
	return ujobs_option_fail(
		taking->error,
		"the server did not answer within %d ms about consumer \"%s\" of stream \"%s\"",
		taking->nats->options->timeout_ms, taking->nats->queue.consumer, taking->nats->jobs);
}

/* What is there now: asks, and waits for the end of the answer. */
static bool
take_present(Taking *taking)
{
	int64_t		due = taking->nats->deadline;

	return pull(taking->nats, taking->max - taking->n, 0, taking->error) &&
		collect(taking, due) && check_answered(taking, due);
}

static bool
take_some(Taking *taking)
{
	UjobsNats  *nats = taking->nats;
	UjobsNatsQueue *queue = &nats->queue;

	/* A pull of the last take that the server has not ended yet. */
	if (!collect(taking, taking->until) ||
		!check_answered(taking, queue->pull_ends + nats->options->timeout_ms))
		return false;
	if (queue->pull_left > 0 || taking->n == taking->max)
		return true;
	if (!take_present(taking))
		return false;

	while (taking->n == 0 && taking->until > ujobs_option_now() &&
		   !ujobs_option_is_stopped(nats->options))
	{
		int64_t		began = ujobs_option_now();

		if (!pull(nats, 1, taking->until - began, taking->error) || !collect(taking, taking->until))
			return false;
		if (taking->n > 0 && taking->n < taking->max)
			return take_present(taking);
		if (taking->n == 0 && queue->pull_left == 0 &&
			ujobs_option_now() < began + UJOBS_NATS_SLICE_MS)
			nats_Sleep(UJOBS_NATS_SLICE_MS);	/* the server would not wait */
	}
	return true;
}

/* Fills in what the core wants to know of the messages. */
static bool
open_deliveries(UjobsSinkDelivery *deliveries, int n, UjobsSinkError *error)
{
	int			i;

	for (i = 0; i < n; i++)
	{
		natsMsg    *message = deliveries[i].handle;
		const char *data = natsMsg_GetData(message);	/* libnats puts a NUL behind it */

		deliveries[i].id = id_of(message);
		deliveries[i].payload = data != NULL ? data : "";
		deliveries[i].payload_size = (size_t) natsMsg_GetDataLength(message);
		deliveries[i].verdict = UJOBS_SINK_LEAVE;
		if (deliveries[i].id == NULL)
			return ujobs_option_fail(error, "out of memory");
	}
	return true;
}

static void
free_deliveries(UjobsSinkDelivery *deliveries, int n)
{
	int			i;

	for (i = 0; i < n; i++)
	{
		free((char *) deliveries[i].id);
		natsMsg_Destroy(deliveries[i].handle);
		deliveries[i].id = NULL;
		deliveries[i].handle = NULL;
	}
}

/* Gives back what cannot be given to the core. */
static void
return_deliveries(UjobsNats *nats, UjobsSinkDelivery *deliveries, int n)
{
	int			i;

	for (i = 0; i < n; i++)
	{
		if (send_verdict(nats, deliveries[i].handle, UJOBS_SINK_LEAVE) != NATS_OK)
			break;
	}
	free_deliveries(deliveries, n);
}

int
ujobs_nats_take(void *connection, UjobsSinkDelivery *deliveries, int max, int wait_ms,
				UjobsSinkError *error)
{
	UjobsNats  *nats = connection;
	Taking		taking = {.nats = nats, .deliveries = deliveries, .max = max, .error = error};
	bool		good;

	taking.until = ujobs_option_now() + wait_ms;
	nats->deadline = taking.until + nats->options->timeout_ms;
	good = take_some(&taking);
	if (good && taking.n > 0)
	{
		nats->deadline = ujobs_option_now() + nats->options->timeout_ms;
		good = open_deliveries(deliveries, taking.n, error) &&
			   claim_all(nats, deliveries, taking.n, error);
	}
	if (good)
		return taking.n;
	return_deliveries(nats, deliveries, taking.n);
	return -1;
}

static natsMsg *
compose_last(void *context, int i, const char *reply)
{
	UjobsSinkDelivery *delivery = context;
	const char *text = delivery->verdict == UJOBS_SINK_DONE ? "+ACK" : "+WPI";
	natsMsg    *question = NULL;

	natsMsg_Create(&question, natsMsg_GetReply(delivery->handle), reply, text, (int) strlen(text));
	return question;
}

static void
answer_last(void *context, int i, UjobsNatsOutcome outcome, natsMsg *reply)
{
}

bool
ujobs_nats_take_settle(void *connection, UjobsSinkDelivery *deliveries, int n,
					   UjobsSinkError *error)
{
	UjobsNats  *nats = connection;
	UjobsNatsRequests last = {.n = 1, .compose = compose_last, .answer = answer_last};
	natsStatus	status = NATS_OK;
	bool		good;
	int			done = -1;
	int			i;

	nats->deadline = ujobs_option_now() + nats->options->timeout_ms;
	for (i = 0; i < n; i++)
		done = deliveries[i].verdict == UJOBS_SINK_DONE ? i : done;
	for (i = 0; i < n && status == NATS_OK; i++)
	{
		if (i != done)
			status = send_verdict(nats, deliveries[i].handle, deliveries[i].verdict);
	}
	good = status == NATS_OK || ujobs_nats_error_status(error, "the connection is lost", status);
	if (good && done >= 0)
	{
		last.context = &deliveries[done];
		good = ujobs_nats_request_run(nats, &last, error);
	}
	free_deliveries(deliveries, n);
	return good;
}

void
ujobs_nats_take_end(UjobsNats *nats)
{
	natsMsg    *message;

	while (nats->queue.arrivals != NULL &&
		   natsSubscription_NextMsg(&message, nats->queue.arrivals, 1) == NATS_OK)
	{
		if (natsMsg_GetReply(message) != NULL)
			natsConnection_PublishString(nats->connection, natsMsg_GetReply(message), "-NAK");
		natsMsg_Destroy(message);
	}
	natsSubscription_Destroy(nats->queue.arrivals);
	natsInbox_Destroy(nats->queue.inbox);
	nats->queue.arrivals = NULL;
	nats->queue.inbox = NULL;
}
