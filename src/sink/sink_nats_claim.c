/*
 * sink_nats_claim.c: the first store to claim a message's id is its owner.
 *
 * A claim is a message in the stream of claims: its subject ends in the id, its
 * text is the uuid of the store.  It is published on the condition that the
 * subject has no message yet, so JetStream lets one of many succeed and tells
 * the others so (10071); these read who it was.  A store that finds its own
 * uuid owns the message too: its earlier acknowledgement, or its job, was lost.
 *
 * The stream forgets a claim after claimAge.  An answer that says neither "you"
 * nor "somebody else" is never taken for ownership.
 */
#include <stdlib.h>
#include <string.h>
#include <stdio.h>

#include "sink/option.h"
#include "sink/sink_nats.h"

typedef struct Claiming
{
	UjobsNats  *nats;
	UjobsSinkDelivery *deliveries;
	bool	   *taken;			/* of each: somebody, maybe we, claimed it before */
	UjobsSinkError failure;
} Claiming;

static natsMsg *
compose_claim(void *context, int i, const char *reply)
{
	Claiming   *claiming = context;
	const char *home = claiming->nats->options->home;
	char		subject[UJOBS_NATS_SUBJECT_SIZE];
	natsMsg    *question = NULL;

	ujobs_nats_subject_of_claim(claiming->nats, claiming->deliveries[i].id, subject);
	if (natsMsg_Create(&question, subject, reply, home, (int) strlen(home)) == NATS_OK &&
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

	if (outcome == UJOBS_NATS_FORBIDDEN)
		ujobs_option_fail(&claiming->failure, "the user may not publish to \"%s.claims.*\"", claiming->nats->prefix);
	else if (outcome == UJOBS_NATS_NOBODY)
		ujobs_option_fail(&claiming->failure, "stream \"%s\" is gone", claiming->nats->claims);
	else if (!ujobs_nats_error_answered(reply, &code, &error))
		claiming->deliveries[i].ours = true;
	else if (code == JSStreamWrongLastSequenceErr)
		claiming->taken[i] = true;
	else
		ujobs_option_fail(&claiming->failure, "a message cannot be claimed in stream \"%s\": %.300s", claiming->nats->claims, error.text);
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
	snprintf(question, sizeof(question), "$JS.API.DIRECT.GET.%s.%s", claiming->nats->claims, subject);
	if (natsMsg_Create(&message, question, reply, NULL, 0) != NATS_OK)
		ujobs_option_fail(&claiming->failure, "out of memory");
	return message;
}

static void
answer_read(void *context, int i, UjobsNatsOutcome outcome, natsMsg *reply)
{
	Claiming   *claiming = context;
	const char *home = claiming->nats->options->home;

	if (outcome != UJOBS_NATS_ANSWERED)
		ujobs_option_fail(&claiming->failure, "claims cannot be read from stream \"%s\"%s", claiming->nats->claims,
						  outcome == UJOBS_NATS_FORBIDDEN ? ": the user may not" : "");
	else
		claiming->deliveries[i].ours = natsMsg_GetDataLength(reply) == (int) strlen(home) &&
			memcmp(natsMsg_GetData(reply), home, strlen(home)) == 0;
}

bool
ujobs_nats_claim_make(UjobsNats *nats, UjobsSinkDelivery *deliveries, int n, UjobsSinkError *error)
{
	Claiming	claiming = {.nats = nats, .deliveries = deliveries};
	UjobsNatsRound claims = {.n = n, .compose = compose_claim, .answer = answer_claim, .context = &claiming};
	UjobsNatsRound reads = {.n = n, .compose = compose_read, .answer = answer_read, .context = &claiming};
	bool		good;

	claiming.taken = calloc(n + 1, sizeof(bool));
	if (claiming.taken == NULL)
		return ujobs_option_fail(error, "out of memory");
	good = ujobs_nats_round_run(nats, &claims, error) && ujobs_nats_round_run(nats, &reads, error);
	free(claiming.taken);
	if (good && claiming.failure.text[0] != '\0')
	{
		*error = claiming.failure;
		return false;
	}
	return good;
}
