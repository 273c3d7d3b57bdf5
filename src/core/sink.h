/*
 * sink.h: what a loadable module offers that speaks to one kind of system.
 *
 * ujobs_nats.so, ujobs_redis.so and ujobs_http.so are such modules.  Each has
 * one exported function, UJOBS_SINK_ENTRY, that returns its UjobsSinkModule;
 * the core looks it up when a sink of that kind is first needed, so that it
 * depends on no client library itself.
 *
 * A module never calls PostgreSQL, never raises and never keeps a signal:
 * apart from `validate`, its functions run in a thread of their own (connection.h)
 * in which every signal is blocked.  Its memory comes from malloc.  One
 * connection is used by one thread, which calls one function at a time; each
 * call may block, but never longer than the connection's timeout, and comes
 * back within 200 ms once *options->stop is true.
 *
 * The version grows when anything in this file changes its meaning.
 */
#ifndef UJOBS_CORE_SINK_H
#define UJOBS_CORE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define UJOBS_SINK_VERSION 1
#define UJOBS_SINK_ENTRY "ujobs_sink_module"
#define UJOBS_SINK_ERROR_SIZE 512

/* Text for people, in UTF-8, without a password in it; "" = none. */
typedef struct UjobsSinkError
{
	char		text[UJOBS_SINK_ERROR_SIZE];
} UjobsSinkError;

typedef struct UjobsSinkPair
{
	const char *name;
	const char *value;
} UjobsSinkPair;

/* The value of the pair of that name, or NULL. */
static inline const char *
ujobs_sink_pair_find(const UjobsSinkPair *pairs, int n, const char *name)
{
	for (int i = 0; i < n; i++)
	{
		if (strcmp(pairs[i].name, name) == 0)
			return pairs[i].value;
	}
	return NULL;
}

/* How to reach the system.  Valid as long as the connection is. */
typedef struct UjobsSinkOptions
{
	const char *sink;			/* its name */
	const char *store_id;			/* uuid of this store: whom claims belong to */
	const UjobsSinkPair *options;	/* as given to define_sink; a nested object's as "tls.ca" */
	int			n_options;
	const UjobsSinkPair *secrets;	/* as given to set_sink_secret */
	int			n_secrets;
	int			timeout_ms;		/* of one exchange with the system */
	bool		allow_private;	/* addresses of the host's own networks (http) */
	bool		check;			/* connect is only asked whether the system can be reached */
	const volatile bool *stop;	/* give up: the process wants to leave */
} UjobsSinkOptions;

typedef enum UjobsSinkFate
{
	UJOBS_SINK_UNTRIED,			/* not sent; of no message is this an error */
	UJOBS_SINK_DELIVERED,		/* the system has confirmed it */
	UJOBS_SINK_BROKEN,			/* the connection failed: unknown; no fault of the message */
	UJOBS_SINK_FAILED,			/* refused now, may be taken later: counts an attempt */
	UJOBS_SINK_REFUSED			/* refused for good */
} UjobsSinkFate;

/* One message to be sent. */
typedef struct UjobsSinkMessage
{
	const char *id;				/* uuid; the same at every repetition */
	const char *topic;
	const char *key;			/* NULL = none */
	const char *payload;		/* JSON text */
	size_t		payload_size;
	const UjobsSinkPair *headers;
	int			n_headers;
	bool		is_job;			/* of a queue: topic is the queue's name */
	UjobsSinkFate fate;			/* the answer */
	int			retry_after_ms; /* the system's wish with FAILED; 0 = none */
	UjobsSinkError error;		/* with FAILED and REFUSED */
} UjobsSinkMessage;

typedef enum UjobsSinkVerdict
{
	UJOBS_SINK_LEAVE,			/* not ours now: let it be delivered again, later */
	UJOBS_SINK_DONE				/* stored: never deliver it again */
} UjobsSinkVerdict;

/* One message of a queue that was taken in. */
typedef struct UjobsSinkDelivery
{
	const char *id;				/* as UjobsSinkMessage; the module's own text if it has none */
	const char *payload;		/* NUL-terminated; the module's until settle */
	size_t		payload_size;
	bool		ours;			/* the claim on its id is this store's (see take) */
	UjobsSinkVerdict verdict;
	void	   *handle;			/* the module's */
} UjobsSinkDelivery;

typedef struct UjobsSinkModule
{
	uint32_t	version;		/* UJOBS_SINK_VERSION */
	uint32_t	size;			/* sizeof(UjobsSinkModule) */
	const char *kind;
	bool		takes_jobs;		/* may be a queue's driver: has subscribe, take and settle */
	const char *const *option_names;	/* those it knows, NULL-terminated; others are refused; "x.": x.anything */
	const char *const *secret_names;	/* as well; a name "headers." means all that begin so */

	/*
	 * Are the options and secrets well-formed?  No network, no thread: called
	 * by the session that defines the sink.
	 */
	bool		(*validate) (const UjobsSinkOptions *options, UjobsSinkError *error);

	/* A connection that is ready to publish, or NULL. */
	void	   *(*connect) (const UjobsSinkOptions *options, UjobsSinkError *error);

	/*
	 * Sends n messages and waits for the answers; sets the fate of each.  No two
	 * of them have the same key.  It may send fewer and leave the rest UNTRIED,
	 * so that it does not take too long.  False: the connection is of no more use
	 * (error says why); messages whose answer is unknown are BROKEN.
	 */
	bool (*publish)(void *connection, UjobsSinkMessage *messages, int n, UjobsSinkError *error);

	/* From now on this connection takes the jobs of the queue.  Makes what is missing there. */
	bool		(*subscribe) (void *connection, const char *queue, UjobsSinkError *error);

	/*
	 * At most max messages, waiting up to wait_ms for the first; the count, or
	 * -1 with an error.  Before it gives a message it claims its id for this
	 * store, durably and at the system itself, the first store wins and keeps it:
	 * ours says whether that is this store.  So a message which is delivered
	 * twice, published twice, or whose acknowledgement was lost can only become
	 * a job in one store.
	 */
	int (*take)(void *connection, UjobsSinkDelivery *deliveries, int max, int wait_ms,
				UjobsSinkError *error);

	/* Tells the verdicts of what take gave, all of it, and frees it, also when it fails. */
	bool (*settle)(void *connection, UjobsSinkDelivery *deliveries, int n, UjobsSinkError *error);

	void		(*disconnect) (void *connection);
} UjobsSinkModule;

typedef const UjobsSinkModule *(*UjobsSinkEntry) (void);

#endif							/* UJOBS_CORE_SINK_H */
