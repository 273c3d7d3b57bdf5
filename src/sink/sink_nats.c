/*
 * sink_nats.c: ujobs_nats.so, messages and jobs over NATS with JetStream.
 *
 * This file has the module's table and the life of a connection.  Beside it:
 * what the options may be (option), how to wait (timed_call, request), what is at the broker
 * (subject, stream), and what is done there: publish, and take with its claims.  What
 * they share is in sink_nats_connection.h.
 *
 * libnats is opened with the first connection of a process and closed with the
 * last one, so that a session that only tried a sink is left without its threads.
 * Not so once it used TLS: when it is closed it frees at exit what OpenSSL frees
 * again (nats-io/nats.c#904), and the server takes that for a crash.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sink/option.h"
#include "sink/sink_nats_error.h"
#include "sink/sink_nats_option.h"
#include "sink/sink_nats_publish.h"
#include "sink/sink_nats_request.h"
#include "sink/sink_nats_take.h"
#include "sink/timed_call.h"

#define CLOSE_MS 1000

static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;
static int	library_users = 0;
static bool library_stays = false;

static natsStatus
open_library(void)
{
	natsStatus	status;

	pthread_mutex_lock(&library_lock);
	status = nats_Open(-1);
	library_users++;
	pthread_mutex_unlock(&library_lock);
	return status;
}

static void
close_library(bool used_tls)
{
	pthread_mutex_lock(&library_lock);
	library_stays |= used_tls;
	if (--library_users == 0 && !library_stays)
	{
		nats_ReleaseThreadMemory();
		nats_CloseAndWait(CLOSE_MS);
	}
	pthread_mutex_unlock(&library_lock);
}

/* libnats calls back in a thread of its own, which must not find the connection freed. */
static bool
wait_for_callbacks(UjobsNats *nats)
{
	UjobsNatsDenials *denials = &nats->denials;
	struct timespec until;
	bool		closed;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += CLOSE_MS / 1000;
	pthread_mutex_lock(&denials->lock);
	while (!denials->closed &&
		   pthread_cond_timedwait(&denials->changed, &denials->lock, &until) == 0)
		;
	closed = denials->closed;
	pthread_mutex_unlock(&denials->lock);
	return closed;
}

/* All that a connection has; also when connect came to nothing. */
static void
release(void *argument)
{
	UjobsNats  *nats = argument;
	bool		quiet = true;
	bool		used_tls = nats->used_tls;

	if (nats->connection != NULL)
	{
		natsConnection_Close(nats->connection);
		quiet = wait_for_callbacks(nats);
	}
	natsSubscription_Destroy(nats->answers);
	natsInbox_Destroy(nats->inbox);
	jsCtx_Destroy(nats->js);
	natsConnection_Destroy(nats->connection);
	natsOptions_Destroy(nats->how);
	free(nats->seed);
	free(nats->jwt);
	if (quiet)					/* or lose a little memory */
	{
		pthread_cond_destroy(&nats->denials.changed);
		pthread_mutex_destroy(&nats->denials.lock);
		free(nats);
	}
	close_library(used_tls);
}

/* Keeps what libnats says, which it says only to the thread that asked. */
static void
keep_error(UjobsNats *nats, natsStatus status)
{
	nats->status = status;
	snprintf(nats->detail, sizeof(nats->detail), "%s", ujobs_nats_error_detail());
}

/* Is there a JetStream for this user?  A user who may not ask is given credit. */
static natsStatus
ask_for_jetstream(UjobsNats *nats)
{
	jsOptions	options;
	jsAccountInfo *info = NULL;
	natsStatus	status;
	bool		forbidden;

	jsOptions_Init(&options);
	options.Wait = nats->deadline - ujobs_option_now();
	options.Wait = options.Wait > 2 ? options.Wait / 2 : 1;
	status = js_GetAccountInfo(&info, nats->js, &options, &nats->code);
	jsAccountInfo_Destroy(info);
	pthread_mutex_lock(&nats->denials.lock);
	forbidden = nats->denials.count > 0;
	nats->denials.count = 0;
	pthread_mutex_unlock(&nats->denials.lock);
	return forbidden && nats->code == 0 ? NATS_OK : status;
}

/* A timed call: in a thread of its own. */
static void
connect_server(void *argument)
{
	UjobsNats  *nats = argument;
	natsStatus	status = natsConnection_Connect(&nats->connection, nats->how);

	if (status == NATS_OK)
		status = natsConnection_JetStream(&nats->js, nats->connection, NULL);
	if (status == NATS_OK)
		status = ask_for_jetstream(nats);
	keep_error(nats, status);
	nats_ReleaseThreadMemory();
}

static bool
explain(const UjobsNats *nats, UjobsSinkError *error)
{
	const char *url = ujobs_option_find(nats->options, "url");

	if (nats->connection != NULL &&
		(nats->status == NATS_NO_RESPONDERS || nats->code == JSNotEnabledErr ||
		 nats->code == JSNotEnabledForAccountErr))
		return ujobs_option_fail(
			error, "the server at %.200s has no JetStream for this user: start it with -js", url);
	switch (nats->status)
	{
		case NATS_NO_SERVER:
		case NATS_TIMEOUT:
			return ujobs_option_fail(error, "no NATS server can be reached at %.200s", url);
		case NATS_CONNECTION_AUTH_FAILED:
			return ujobs_option_fail(error, "the server at %.200s refused the user or its secrets",
									 url);
		case NATS_SECURE_CONNECTION_WANTED:
			return ujobs_option_fail(error, "the server at %.200s has no TLS", url);
		case NATS_SECURE_CONNECTION_REQUIRED:
			return ujobs_option_fail(error, "the server at %.200s wants TLS: use tls://", url);
		default:
			return ujobs_option_fail(error, "cannot connect to %.200s: %s%s%.200s", url,
									 natsStatus_GetText(nats->status), nats->detail[0] ? ": " : "",
									 nats->detail);
	}
}

static UjobsNats *
make_nats(const UjobsSinkOptions *options, UjobsSinkError *error)
{
	UjobsNats  *nats = calloc(1, sizeof(UjobsNats));

	if (nats == NULL)
	{
		ujobs_option_fail(error, "out of memory");
		return NULL;
	}
	nats->options = options;
	nats->deadline = ujobs_option_now() + options->timeout_ms;
	pthread_mutex_init(&nats->denials.lock, NULL);
	pthread_cond_init(&nats->denials.changed, NULL);
	nats->stream = ujobs_option_find(options, "stream");
	snprintf(nats->prefix, sizeof(nats->prefix), "%s",
			 nats->stream != NULL ? nats->stream : UJOBS_NATS_JOBS);
	snprintf(nats->jobs, sizeof(nats->jobs), "%.200s_JOBS", nats->prefix);
	snprintf(nats->claims, sizeof(nats->claims), "%.200s_CLAIMS", nats->prefix);
	return nats;
}

static void *
nats_connect(const UjobsSinkOptions *options, UjobsSinkError *error)
{
	UjobsNats  *nats = make_nats(options, error);
	UjobsTimedCall call = {.work = connect_server, .release = release, .argument = nats};
	natsStatus	status;

	if (nats == NULL)
		return NULL;
	status = open_library();
	if (status != NATS_OK)
		ujobs_nats_error_status(error, "libnats cannot start", status);
	if (status != NATS_OK || !ujobs_nats_option_apply(nats, error))
	{
		release(nats);
		return NULL;
	}
	if (ujobs_timed_call_run(options, nats->deadline, &call, error) != UJOBS_TIMED_CALL_DONE)
		return NULL;			/* the call releases it */
	if (nats->status == NATS_OK ? ujobs_nats_request_prepare(nats, error) : explain(nats, error))
		return nats;
	release(nats);
	return NULL;
}

static void
nats_disconnect(void *connection)
{
	UjobsNats  *nats = connection;

	ujobs_nats_take_end(nats);
	release(nats);
}

static const char *const option_names[] = {
	"url", "stream", "subjects", "replicas", "claimAge", "tls.ca", "tls.cert", "tls.key", NULL
};

static const char *const secret_names[] = {
	"user", "password", "token", "creds", "nkey", "nkeyPublic", "tlsKey", NULL
};

static const UjobsSinkModule module = {
	.version = UJOBS_SINK_VERSION,
	.size = sizeof(UjobsSinkModule),
	.kind = "nats",
	.takes_jobs = true,
	.option_names = option_names,
	.secret_names = secret_names,
	.validate = ujobs_nats_option_validate,
	.connect = nats_connect,
	.publish = ujobs_nats_publish,
	.subscribe = ujobs_nats_take_subscribe,
	.take = ujobs_nats_take,
	.settle = ujobs_nats_take_settle,
	.disconnect = nats_disconnect
};

UJOBS_SINK_EXPORT const UjobsSinkModule *
ujobs_sink_module(void)
{
	return &module;
}
