/*
 * sink_nats_publish.c: messages to JetStream, confirmed one by one.
 *
 * The broker knows a repetition by the header Nats-Msg-Id; the relay only moves
 * on when JetStream has said that it stored the message.  A topic is the subject as it is; the key travels in the
 * header Ujobs-Key, the message's headers beside it.
 *
 * A subject that no stream takes comes back without a responder.  Then the
 * stream is made or the subject added (sink_nats_stream.c), and those messages
 * are sent again in the same call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink/option.h"
#include "sink/sink_nats_error.h"
#include "sink/sink_nats_publish.h"
#include "sink/sink_nats_request.h"
#include "sink/sink_nats_stream.h"
#include "sink/sink_nats_subject.h"

#define MOST_ROUNDS 3

typedef struct Publishing
{
	UjobsNats  *nats;
	UjobsSinkMessage *messages;
	bool	   *unrouted;		/* of each message: no stream took it */
	bool		shortage;		/* the server cannot take messages now */
	UjobsSinkError *error;
} Publishing;

static void
subject_of(const UjobsNats *nats, const UjobsSinkMessage *message, char *subject)
{
	if (message->is_job)
		ujobs_nats_subject_of_queue(nats, message->topic, subject);
	else
		snprintf(subject, UJOBS_NATS_SUBJECT_SIZE, "%s", message->topic);
}

/* A key as a header's value: control characters and "%" become %XX. */
static void
write_key(char *to, const char *key)
{
	for (; *key != '\0'; key++)
	{
		if ((unsigned char) *key < ' ' || *key == '%' || *key == 0x7F)
			to += sprintf(to, "%%%02X", (unsigned char) *key);
		else
			*to++ = *key;
	}
	*to = '\0';
}

static natsStatus
set_headers(natsMsg *question, const UjobsNats *nats, const UjobsSinkMessage *message)
{
	natsStatus	status = natsMsgHeader_Set(question, "Nats-Msg-Id", message->id);
	const char *stream = message->is_job ? nats->jobs : nats->stream;
	int			i;

	if (status == NATS_OK && stream != NULL)
		status = natsMsgHeader_Set(question, "Nats-Expected-Stream", stream);
	if (status == NATS_OK && message->key != NULL)
	{
		char	   *key = malloc(strlen(message->key) * 3 + 1);

		if (key == NULL)
			return NATS_NO_MEMORY;
		write_key(key, message->key);
		status = natsMsgHeader_Set(question, "Ujobs-Key", key);
		free(key);
	}
	for (i = 0; status == NATS_OK && i < message->n_headers; i++)
		status = natsMsgHeader_Set(question, message->headers[i].name, message->headers[i].value);
	return status;
}

static natsMsg *
compose(void *context, int i, const char *reply)
{
	Publishing *publishing = context;
	UjobsSinkMessage *message = &publishing->messages[i];
	char		subject[UJOBS_NATS_SUBJECT_SIZE];
	natsMsg    *question = NULL;
	natsStatus	status;

	if (message->fate != UJOBS_SINK_UNTRIED)
		return NULL;
	subject_of(publishing->nats, message, subject);
	status = natsMsg_Create(&question, subject, reply, message->payload,
							(int) message->payload_size);
	if (status == NATS_OK)
		status = set_headers(question, publishing->nats, message);
	if (status != NATS_OK)
	{
		message->fate = UJOBS_SINK_FAILED;
		ujobs_nats_error_status(&message->error, "the message cannot be composed", status);
		natsMsg_Destroy(question);
		return NULL;
	}
	message->fate = UJOBS_SINK_BROKEN;	/* until an answer comes */
	return question;
}

/* JetStream's number as the fate of the message. */
static void
set_fate(Publishing *publishing, UjobsSinkMessage *message, int code)
{
	if (ujobs_nats_error_is_shortage(code))
	{
		if (!publishing->shortage)
			*publishing->error = message->error;
		publishing->shortage = true;
		message->fate = UJOBS_SINK_BROKEN;
		return;
	}
	message->fate = code == JSStreamMessageExceedsMaximumErr ? UJOBS_SINK_REFUSED :
															   UJOBS_SINK_FAILED;
	if (code == JSStreamNotMatchErr)
		ujobs_option_fail(&message->error,
						  "subject \"%.200s\" belongs to another stream than \"%s\" (JetStream %d)",
						  message->topic,
						  message->is_job ? publishing->nats->jobs : publishing->nats->stream,
						  code);
}

static void
answer(void *context, int i, UjobsNatsOutcome outcome, natsMsg *reply)
{
	Publishing *publishing = context;
	UjobsSinkMessage *message = &publishing->messages[i];
	int			code;

	if (outcome == UJOBS_NATS_NO_RESPONDER)
		publishing->unrouted[i] = true;
	else if (outcome == UJOBS_NATS_DENIED)
	{
		message->fate = UJOBS_SINK_FAILED;
		ujobs_option_fail(&message->error, "the user may not publish to \"%.200s\"",
						  message->topic);
	}
	else if (!ujobs_nats_error_answered(reply, &code, &message->error))
		message->fate = UJOBS_SINK_DELIVERED;
	else
		set_fate(publishing, message, code);
}

static bool
refuse(UjobsSinkMessage *message)
{
	message->fate = UJOBS_SINK_REFUSED;
	return false;
}

/* A header of the message's own: not one by which JetStream is told what to do. */
static bool
check_header(const UjobsSinkPair *header, UjobsSinkError *error)
{
	const unsigned char *c;

	if (header->name[0] == '\0' || strncasecmp(header->name, "Nats-", 5) == 0 ||
		strcasecmp(header->name, "Ujobs-Key") == 0)
		return ujobs_option_fail(error, "header name \"%.100s\" is reserved or empty",
								 header->name);
	for (c = (const unsigned char *) header->name; *c != '\0'; c++)
	{
		if (*c <= ' ' || *c >= 0x7F || *c == ':')
			return ujobs_option_fail(
				error, "header name \"%.100s\" has a character that NATS does not take",
				header->name);
	}
	if (strpbrk(header->value, "\r\n") != NULL)
		return ujobs_option_fail(error, "the value of header \"%.100s\" has more than one line",
								 header->name);
	return true;
}

/* Bytes of the message at the server, which counts the headers too. */
static size_t
size_of(const UjobsNats *nats, const UjobsSinkMessage *message)
{
	const char *stream = message->is_job ? nats->jobs : nats->stream;
	size_t		size = strlen("NATS/1.0\r\n\r\n") + strlen("Nats-Msg-Id: \r\n") + strlen(message->id) + message->payload_size;
	const char *c;
	int			i;

	if (stream != NULL)
		size += strlen("Nats-Expected-Stream: \r\n") + strlen(stream);
	if (message->key != NULL)
	{
		size += strlen("Ujobs-Key: \r\n");
		for (c = message->key; *c != '\0'; c++)
			size += (unsigned char) *c < ' ' || *c == '%' || *c == 0x7F ? 3 : 1;
	}
	for (i = 0; i < message->n_headers; i++)
		size += strlen(message->headers[i].name) + strlen(message->headers[i].value) + 4;
	return size;
}

/* Can it be sent at all?  If not, it is refused without asking the server. */
static bool
check_message(const UjobsNats *nats, UjobsSinkMessage *message)
{
	size_t		most = (size_t) natsConnection_GetMaxPayload(nats->connection);
	size_t		size = size_of(nats, message);
	size_t		length = strlen(nats->prefix);
	int			i;

	if (!message->is_job && !ujobs_nats_subject_check(message->topic, false, &message->error))
		return refuse(message);
	if (!message->is_job && strncmp(message->topic, nats->prefix, length) == 0 &&
		(strncmp(message->topic + length, ".jobs.", 6) == 0 ||
		 strncmp(message->topic + length, ".claims.", 8) == 0))
	{
		ujobs_option_fail(&message->error,
						  "subject \"%.200s\" is one of those that ujobs keeps jobs and claims in",
						  message->topic);
		return refuse(message);
	}
	for (i = 0; i < message->n_headers; i++)
	{
		if (!check_header(&message->headers[i], &message->error))
			return refuse(message);
	}
	if (size > most)
	{
		ujobs_option_fail(
			&message->error,
			"the message has %zu bytes with its headers; the server takes %zu (max_payload)", size,
			most);
		return refuse(message);
	}
	return true;
}

/* Opens the streams of unrouted messages; false if none can be sent again. */
static bool
open_streams(Publishing *publishing, int n)
{
	bool		again = false;
	int			i;
	int			j;

	for (i = 0; i < n; i++)
	{
		char		subject[UJOBS_NATS_SUBJECT_SIZE];
		UjobsSinkError error = {""};
		UjobsSinkMessage *first = &publishing->messages[i];
		UjobsSinkFate fate;

		if (!publishing->unrouted[i])
			continue;
		subject_of(publishing->nats, first, subject);
		fate = ujobs_nats_stream_open(publishing->nats, subject, first->is_job, &error);
		again |= fate == UJOBS_SINK_UNTRIED;
		for (j = n - 1; j >= i; j--)
		{
			UjobsSinkMessage *message = &publishing->messages[j];

			if (!publishing->unrouted[j] || message->is_job != first->is_job ||
				strcmp(message->topic, first->topic) != 0)
				continue;
			publishing->unrouted[j] = false;
			message->fate = fate;
			message->error = error;
		}
		if (fate != UJOBS_SINK_BROKEN)
			continue;
		publishing->shortage = true;
		*publishing->error = error;
		return false;
	}
	return again;
}

static bool
publish(Publishing *publishing, int n, UjobsSinkError *error)
{
	UjobsNatsRequests requests = {.n = n, .compose = compose, .answer = answer, .context = publishing};
	int			rounds = 0;

	do
	{
		if (!ujobs_nats_request_run(publishing->nats, &requests, error))
			return false;
	} while (open_streams(publishing, n) && ++rounds < MOST_ROUNDS);
	return !publishing->shortage;
}

bool
ujobs_nats_publish(void *connection, UjobsSinkMessage *messages, int n, UjobsSinkError *error)
{
	UjobsNats  *nats = connection;
	Publishing	publishing = {.nats = nats, .messages = messages, .error = error};
	bool		good;
	int			i;

	nats->deadline = ujobs_option_now() + nats->options->timeout_ms;
	publishing.unrouted = calloc(n + 1, sizeof(bool));
	if (publishing.unrouted == NULL)
		return ujobs_option_fail(error, "out of memory");
	for (i = 0; i < n; i++)
	{
		messages[i].fate = UJOBS_SINK_UNTRIED;
		check_message(nats, &messages[i]);
	}
	good = publish(&publishing, n, error);
	for (i = 0; good && i < n; i++)
	{
		if (!publishing.unrouted[i] && messages[i].fate != UJOBS_SINK_UNTRIED)
			continue;
		good = ujobs_option_fail(error, "no stream answers for subject \"%.200s\"",
								 messages[i].topic);
	}
	free(publishing.unrouted);
	return good;
}
