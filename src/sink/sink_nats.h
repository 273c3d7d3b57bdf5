/*
 * sink_nats.h: what the files of ujobs_nats.so share: the connection and its parts.
 *
 * The parts, from the ground: error (texts), examine and access (what define_sink was given), round (many questions, many
 * answers), subject (names at the broker), stream (making what is missing there),
 * publish, and take.  Each function sets `error` when it returns false.
 */
#ifndef UJOBS_SINK_SINK_NATS_H
#define UJOBS_SINK_SINK_NATS_H

#include <pthread.h>

#include <nats/nats.h>

#include "core/sink.h"

#define UJOBS_NATS_JOBS "UJOBS"	/* the prefix if no stream is named */
#define UJOBS_NATS_NAME_SIZE 256	/* of a stream, a consumer */
#define UJOBS_NATS_SUBJECT_SIZE 512
#define UJOBS_NATS_SLICE_MS 150		/* how long a wait may overlook *stop */
#define UJOBS_NATS_COMPLAINTS 8

/* The subjects that the server lately did not permit this user; see round. */
typedef struct UjobsNatsComplaints
{
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool		closed;			/* libnats will make no more callbacks */
	int			count;
	char		subject[UJOBS_NATS_COMPLAINTS][UJOBS_NATS_SUBJECT_SIZE];
} UjobsNatsComplaints;

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
	natsConnection *link;
	jsCtx	   *js;
	natsStatus	status;			/* of the connect call */
	jsErrCode	code;
	char		detail[256];
	natsSubscription *answers;	/* see round */
	natsInbox  *inbox;
	uint64_t	round;
	UjobsNatsComplaints complaints;
	const char *stream;			/* of the outbox; NULL = whichever takes the subject */
	char		prefix[UJOBS_NATS_NAME_SIZE];	/* of the two below */
	char		jobs[UJOBS_NATS_NAME_SIZE];
	char		claims[UJOBS_NATS_NAME_SIZE];
	UjobsNatsQueue queue;
} UjobsNats;

/* sink_nats_error.c: what libnats says of the last call of this thread, or "". */
extern const char *ujobs_nats_error_detail(void);

/* "what: what libnats says" of a call of this thread that just failed; false. */
extern bool ujobs_nats_error_status(UjobsSinkError *error, const char *what, natsStatus status);

/* Is the answer of JetStream an error?  Its number, 10000 and more, and text. */
extern bool ujobs_nats_error_answered(natsMsg *answer, int *code, UjobsSinkError *error);

/* The number means: the server cannot now, whatever the message. */
extern bool ujobs_nats_error_is_shortage(int code);

/* sink_nats_examine.c: as in core/sink.h. */
extern bool ujobs_nats_examine(const UjobsSinkOptions *options, UjobsSinkError *error);

/* How long a claim stands, in ms; how many copies of a stream there are. */
extern int64_t ujobs_nats_examine_claim_age(const UjobsSinkOptions *options);
extern int	ujobs_nats_examine_replicas(const UjobsSinkOptions *options);

/* The next of a list with commas, trimmed, copied to item; false at the end; *list moves on. */
extern bool ujobs_nats_examine_next(const char **list, char *item, size_t size);

/* What stands between the lines "---BEGIN name---" and "---END name---" of a .creds file; from malloc, NULL = not there. */
extern char *ujobs_nats_examine_creds(const char *creds, const char *name);

/* sink_nats_access.c: nats->how, from the options; keeps copies of what libnats asks for later. */
extern bool ujobs_nats_access_prepare(UjobsNats *nats, UjobsSinkError *error);

/*
 * sink_nats_round.c: n questions, sent without waiting for each other's
 * answers.  compose gives the message to send, with the reply subject given, or
 * NULL if there is nothing to ask; answer gets the reply, which is NULL in all
 * cases but the first.  False: the connection is of no more use, and what was
 * not answered stays so.
 */
typedef enum UjobsNatsOutcome
{
	UJOBS_NATS_ANSWERED,
	UJOBS_NATS_NOBODY,			/* listens to the subject: there is no such stream */
	UJOBS_NATS_FORBIDDEN		/* for this user */
} UjobsNatsOutcome;

typedef struct UjobsNatsRound
{
	int			n;
	natsMsg    *(*compose) (void *context, int i, const char *reply);
	void		(*answer) (void *context, int i, UjobsNatsOutcome outcome, natsMsg *reply);
	void	   *context;
} UjobsNatsRound;

extern bool ujobs_nats_round_prepare(UjobsNats *nats, UjobsSinkError *error);
extern bool ujobs_nats_round_run(UjobsNats *nats, const UjobsNatsRound *round, UjobsSinkError *error);

/* libnats's callback for what the server complains about. */
extern void ujobs_nats_round_complain(natsConnection *link, natsSubscription *subscription, natsStatus status, void *nats);

/* The last one that it makes for a connection. */
extern void ujobs_nats_round_close(natsConnection *link, void *nats);

/* sink_nats_subject.c: may a message be published to the subject? */
extern bool ujobs_nats_subject_check(const char *subject, bool wildcards, UjobsSinkError *error);

/* Any text as one token of letters, digits, "-", "_" and "=XX". */
extern void ujobs_nats_subject_encode(const char *text, char *token, size_t size);

/* Does the subject fit the pattern, with * for one token and > for the rest? */
extern bool ujobs_nats_subject_matches(const char *pattern, const char *subject);

/* Where jobs of a queue and the claim on a message stand. */
extern void ujobs_nats_subject_of_queue(const UjobsNats *nats, const char *queue, char *subject);
extern void ujobs_nats_subject_of_claim(const UjobsNats *nats, const char *id, char *subject);

/*
 * sink_nats_stream.c: makes the stream that takes the subject, or adds the
 * subject to the one that ujobs made.  The fate of messages to the subject:
 * UNTRIED if they should be sent now, else FAILED or BROKEN with the reason.
 */
extern UjobsSinkFate ujobs_nats_stream_open(UjobsNats *nats, const char *subject, bool is_job, UjobsSinkError *error);

/* What taking needs: the streams of jobs and of claims, and the queue's consumer. */
extern bool ujobs_nats_stream_open_queue(UjobsNats *nats, const char *queue, UjobsSinkError *error);

/* sink_nats_publish.c, sink_nats_take.c, sink_nats_claim.c: as in core/sink.h. */
extern bool ujobs_nats_publish(void *connection, UjobsSinkMessage *messages, int n, UjobsSinkError *error);
extern bool ujobs_nats_take_subscribe(void *connection, const char *queue, UjobsSinkError *error);
extern int	ujobs_nats_take(void *connection, UjobsSinkDelivery *deliveries, int max, int wait_ms, UjobsSinkError *error);
extern bool ujobs_nats_take_settle(void *connection, UjobsSinkDelivery *deliveries, int n, UjobsSinkError *error);

/* Gives back what has arrived but was not taken, and forgets the queue. */
extern void ujobs_nats_take_end(UjobsNats *nats);

/* Claims the ids for this home; sets `ours` of each delivery. */
extern bool ujobs_nats_claim_make(UjobsNats *nats, UjobsSinkDelivery *deliveries, int n, UjobsSinkError *error);

#endif							/* UJOBS_SINK_SINK_NATS_H */
