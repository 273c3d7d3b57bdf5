/*
 * sink_nats_request.h: many requests to the server, in flight at once.
 */
#ifndef UJOBS_SINK_SINK_NATS_REQUEST_H
#define UJOBS_SINK_SINK_NATS_REQUEST_H

#include "sink/sink_nats_connection.h"

typedef enum UjobsNatsOutcome
{
	UJOBS_NATS_ANSWERED,
	UJOBS_NATS_NO_RESPONDER,	/* for the subject: there is no such stream */
	UJOBS_NATS_DENIED			/* for this user */
} UjobsNatsOutcome;

/*
 * n requests, sent without waiting for each other's answers.  compose gives the
 * message to send, with the reply subject given, or NULL if there is nothing to ask;
 * answer gets the reply, which is NULL in all cases but the first.
 */
typedef struct UjobsNatsRequests
{
	int			n;
	natsMsg    *(*compose) (void *context, int i, const char *reply);
	void		(*answer) (void *context, int i, UjobsNatsOutcome outcome, natsMsg *reply);
	void	   *context;
} UjobsNatsRequests;

/* Subscribes to the answers; once for a connection. */
extern bool ujobs_nats_request_prepare(UjobsNats *nats, UjobsSinkError *error);

/* False: the connection is of no more use, and what was not answered stays so. */
extern bool ujobs_nats_request_run(UjobsNats *nats, const UjobsNatsRequests *requests,
								   UjobsSinkError *error);

/* libnats's callback for what the server does not permit. */
extern void ujobs_nats_request_denied(natsConnection *connection, natsSubscription *subscription,
									  natsStatus status, void *nats);

/* The last one that it makes for a connection. */
extern void ujobs_nats_request_close(natsConnection *connection, void *nats);

#endif							/* UJOBS_SINK_SINK_NATS_REQUEST_H */
