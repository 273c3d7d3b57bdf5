/*
 * sink_nats_connection.h: one connection to a NATS server, as the files of this module share it.
 */
#ifndef UJOBS_SINK_SINK_NATS_CONNECTION_H
#define UJOBS_SINK_SINK_NATS_CONNECTION_H

#include <pthread.h>

#include <nats/nats.h>

#include "core/sink.h"

#define UJOBS_NATS_JOBS "UJOBS"	/* the prefix if no stream is named */
#define UJOBS_NATS_NAME_SIZE 256	/* of a stream, a consumer */
#define UJOBS_NATS_SUBJECT_SIZE 512
#define UJOBS_NATS_SLICE_MS 150		/* how long a wait may overlook *stop */
#define UJOBS_NATS_DENIALS 8

/* The subjects that the server lately did not permit this user; see sink_nats_request.c. */
typedef struct UjobsNatsDenials
{
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool		closed;			/* libnats will make no more callbacks */
	int			count;
	char		subject[UJOBS_NATS_DENIALS][UJOBS_NATS_SUBJECT_SIZE];
} UjobsNatsDenials;

/* A queue that is taken from. */
typedef struct UjobsNatsQueue
{
	char		consumer[UJOBS_NATS_NAME_SIZE];
	natsSubscription *arrivals;
	natsInbox  *inbox;			/* prefix of where pulls are answered */
	uint64_t	pull;			/* number of the latest pull */
	int			pull_left;		/* messages it may still bring; 0 = over */
	int64_t		pull_ends;		/* when the server is to end it by itself, in ms */
} UjobsNatsQueue;

/* One connection; what the core calls `void *connection`. */
typedef struct UjobsNats
{
	const UjobsSinkOptions *options;
	int64_t		deadline;		/* of the call that runs, in ms of ujobs_option_now */
	natsOptions *how;
	char	   *seed;			/* copies, for libnats's callbacks */
	char	   *jwt;
	bool		used_tls;		/* libnats has started OpenSSL for it */
	natsConnection *connection;
	jsCtx	   *js;
	natsStatus	status;			/* of the connect call */
	jsErrCode	code;
	char		detail[256];
	natsSubscription *answers;	/* to requests; see sink_nats_request.c */
	natsInbox  *inbox;
	uint64_t	batch;			/* number of the latest batch of requests */
	UjobsNatsDenials denials;
	const char *stream;			/* of the outbox; NULL = whichever takes the subject */
	char		prefix[UJOBS_NATS_NAME_SIZE];	/* of the two below */
	char		jobs[UJOBS_NATS_NAME_SIZE];
	char		claims[UJOBS_NATS_NAME_SIZE];
	UjobsNatsQueue queue;
} UjobsNats;

#endif							/* UJOBS_SINK_SINK_NATS_CONNECTION_H */
