/*
 * sink_nats_round.c: many questions to the server, in flight at once.
 *
 * Each question is a message whose reply subject is ours and ends in the number
 * of the round and of the question, so that an answer finds its question, and
 * one that comes too late finds none.  JetStream's acknowledgements, claims,
 * and reads are all of this kind.
 *
 * What is in flight is bounded in messages and bytes: it fits into buffers on
 * the way, so that sending does not block when the server has stopped reading,
 * and the server is not handed more than it wants to hold.
 *
 * libnats tells that nobody listens to a subject, but not to which one.  So
 * these are counted, and when no others are open any more it is known which.
 *
 * A server that does not permit a subject does not answer; it complains, and
 * libnats calls ujobs_nats_round_complain in a thread of its own.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink/option.h"
#include "sink/sink_nats.h"
#include "sink/timed_call.h"

#define MOST_MESSAGES 1000
#define MOST_BYTES (512 * 1024)

typedef struct Flight
{
	UjobsNats  *nats;
	const UjobsNatsRound *round;
	natsMsg   **open;			/* of each question: sent and not answered */
	int			next;			/* question to send */
	int			messages;		/* that are open */
	int			nobody;			/* of the open ones: for which nobody listens */
	int64_t		bytes;
} Flight;

bool
ujobs_nats_round_prepare(UjobsNats *nats, UjobsSinkError *error)
{
	char		subject[128];
	natsStatus	status;

	status = natsInbox_Create(&nats->inbox);
	if (status == NATS_OK)
	{
		snprintf(subject, sizeof(subject), "%s.*.*", nats->inbox);
		status = natsConnection_SubscribeSync(&nats->answers, nats->link, subject);
	}
	if (status == NATS_OK)
		status = natsSubscription_SetPendingLimits(nats->answers, -1, -1);
	return status == NATS_OK || ujobs_nats_error_status(error, "cannot subscribe", status);
}

void
ujobs_nats_round_complain(natsConnection *link, natsSubscription *subscription, natsStatus status, void *argument)
{
	UjobsNatsComplaints *complaints = &((UjobsNats *) argument)->complaints;
	const char *text = NULL;
	const char *subject;

	if (status != NATS_NOT_PERMITTED || natsConnection_GetLastError(link, &text) == NATS_OK || text == NULL)
		return;
	subject = strchr(text, '"');
	if (subject == NULL)
		return;
	subject++;
	pthread_mutex_lock(&complaints->lock);
	if (complaints->count < UJOBS_NATS_COMPLAINTS)
		snprintf(complaints->subject[complaints->count++], UJOBS_NATS_SUBJECT_SIZE, "%.*s",
				 (int) strcspn(subject, "\""), subject);
	pthread_mutex_unlock(&complaints->lock);
}

void
ujobs_nats_round_close(natsConnection *link, void *argument)
{
	UjobsNatsComplaints *complaints = &((UjobsNats *) argument)->complaints;

	pthread_mutex_lock(&complaints->lock);
	complaints->closed = true;
	pthread_cond_signal(&complaints->changed);
	pthread_mutex_unlock(&complaints->lock);
}

static void
close_question(Flight *flight, int i, UjobsNatsOutcome outcome, natsMsg *answer)
{
	natsMsg    *question = flight->open[i];

	flight->open[i] = NULL;
	flight->messages--;
	flight->bytes -= natsMsg_GetDataLength(question);
	flight->round->answer(flight->round->context, i, outcome, answer);
	natsMsg_Destroy(question);
}

/* Closes the questions that the server does not permit. */
static void
hear_complaints(Flight *flight)
{
	UjobsNatsComplaints *complaints = &flight->nats->complaints;
	int			i;
	int			c;

	pthread_mutex_lock(&complaints->lock);
	for (c = 0; c < complaints->count; c++)
	{
		for (i = 0; i < flight->next; i++)
		{
			if (flight->open[i] != NULL && strcmp(natsMsg_GetSubject(flight->open[i]), complaints->subject[c]) == 0)
				close_question(flight, i, UJOBS_NATS_FORBIDDEN, NULL);
		}
	}
	complaints->count = 0;
	pthread_mutex_unlock(&complaints->lock);
}

/* If all that are open have no listener it is known which these are. */
static void
close_nobodies(Flight *flight)
{
	int			i;

	if (flight->nobody == 0 || flight->nobody < flight->messages)
		return;
	for (i = 0; i < flight->next; i++)
	{
		if (flight->open[i] != NULL)
			close_question(flight, i, UJOBS_NATS_NOBODY, NULL);
	}
	flight->nobody = 0;
}

/* As many as may be in flight; at least one. */
static natsStatus
send_more(Flight *flight)
{
	char		reply[192];

	while (flight->next < flight->round->n &&
		   (flight->messages == 0 || (flight->messages < MOST_MESSAGES && flight->bytes < MOST_BYTES)))
	{
		int			i = flight->next;
		natsStatus	status;

		snprintf(reply, sizeof(reply), "%s.%llu.%d", flight->nats->inbox, (unsigned long long) flight->nats->round, i);
		flight->open[i] = flight->round->compose(flight->round->context, i, reply);
		flight->next++;
		if (flight->open[i] == NULL)
			continue;
		flight->messages++;
		flight->bytes += natsMsg_GetDataLength(flight->open[i]);
		status = natsConnection_PublishMsg(flight->nats->link, flight->open[i]);
		if (status != NATS_OK)
			return status;
	}
	return NATS_OK;
}

/* Which question is it that this answers?  -1: none of this round. */
static int
find_question(Flight *flight, natsMsg *answer)
{
	const char *subject = natsMsg_GetSubject(answer) + strlen(flight->nats->inbox) + 1;
	char	   *end;
	unsigned long long round = strtoull(subject, &end, 10);
	long		i = *end == '.' ? strtol(end + 1, NULL, 10) : -1;

	if (round != flight->nats->round || i < 0 || i >= flight->round->n || flight->open[i] == NULL)
		return -1;
	return (int) i;
}

/* One answer, or a slice of time without any. */
static natsStatus
hear_one(Flight *flight)
{
	natsMsg    *answer = NULL;
	natsStatus	status = natsSubscription_NextMsg(&answer, flight->nats->answers, UJOBS_NATS_SLICE_MS);
	int			i;

	switch (status)
	{
		case NATS_OK:
			i = find_question(flight, answer);
			if (i >= 0)
				close_question(flight, i, UJOBS_NATS_ANSWERED, answer);
			natsMsg_Destroy(answer);
			close_nobodies(flight);
			return NATS_OK;
		case NATS_NO_RESPONDERS:
			flight->nobody++;
			close_nobodies(flight);
			return NATS_OK;
		case NATS_TIMEOUT:
			hear_complaints(flight);
			close_nobodies(flight);
			return NATS_OK;
		default:
			return status;
	}
}

static bool
fly(Flight *flight, UjobsSinkError *error)
{
	for (;;)
	{
		natsStatus	status = send_more(flight);

		if (status == NATS_OK && flight->messages == 0)
			return true;
		if (status == NATS_OK)
			status = hear_one(flight);
		if (status != NATS_OK)
			return ujobs_nats_error_status(error, "the connection is lost", status);
		if (flight->messages > 0 && ujobs_timed_call_is_late(flight->nats->options, flight->nats->deadline, error))
			return false;
	}
}

bool
ujobs_nats_round_run(UjobsNats *nats, const UjobsNatsRound *round, UjobsSinkError *error)
{
	Flight		flight = {.nats = nats, .round = round};
	bool		good;
	int			i;

	flight.open = calloc(round->n + 1, sizeof(natsMsg *));
	if (flight.open == NULL)
		return ujobs_option_fail(error, "out of memory");
	nats->round++;
	good = fly(&flight, error);
	for (i = 0; i < flight.next; i++)
		natsMsg_Destroy(flight.open[i]);
	free(flight.open);
	return good;
}
