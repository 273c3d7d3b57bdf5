/*
 * sink_nats_stream.c: makes what is missing at the broker, and only that.
 *
 * Three streams belong to a sink; STREAM is its option "stream", and for jobs
 * UJOBS if there is none:
 *
 *   STREAM         messages of the outbox, retained by the limits of the stream, so
 *                  that any number of readers sees all of them.  Takes the subjects
 *                  of option "subjects", and each topic that is published besides.
 *   STREAM_JOBS    jobs of all queues, subjects STREAM.jobs.QUEUE, a work queue: a
 *                  job is there until one consumer has acknowledged it.  It does
 *                  not depend on a consumer being there when a job is enqueued.
 *                  Programs in other languages take part by the same consumer, whose
 *                  name is the queue's.
 *   STREAM_CLAIMS  who owns a message, subjects STREAM.claims.ID; see sink_nats_take.c.
 *
 * A stream that is there is used as it is, with its own replicas and limits;
 * only one whose description begins with "made by ujobs" is ever changed.
 * Two relays may do this at once: one of them finds what the other has made,
 * and a subject that was lost between two changes is added again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink/option.h"
#include "sink/sink_nats_error.h"
#include "sink/sink_nats_option.h"
#include "sink/sink_nats_stream.h"
#include "sink/sink_nats_subject.h"
#include "sink/timed_call.h"

#define MADE_BY_US "made by ujobs"
#define MOST_SUBJECTS 256
#define DUPLICATES_MS (2 * 60 * 1000)
#define ACK_WAIT_MS (30 * 1000)
#define MOST_UNACKNOWLEDGED 50000
#define NANOSECONDS(ms) ((int64_t) (ms) * 1000000)

typedef struct Setup
{
	UjobsNats  *nats;
	const char *subject;
	const char *queue;			/* of a queue that is to be consumed, else NULL */
	bool		is_job;
	UjobsSinkFate fate;			/* if it fails */
	bool		good;
	UjobsSinkError *error;
} Setup;

static jsOptions
request_options(UjobsNats *nats)
{
	jsOptions	options;
	int64_t		left = nats->deadline - ujobs_option_now();

	jsOptions_Init(&options);
	options.Wait = left > 1 ? left * 3 / 4 + 1 : 1;	/* less than the call may take */
	return options;
}

/* JetStream did not do it; sets the fate.  Not to be had now, or never in this way? */
static bool
refuse(Setup *setup, const char *what, natsStatus status, jsErrCode code)
{
	UjobsNatsDenials *denials = &setup->nats->denials;
	char		api[UJOBS_NATS_SUBJECT_SIZE] = "";

	pthread_mutex_lock(&denials->lock);
	if (code == 0 && denials->count > 0)
		snprintf(api, sizeof(api), "%s", denials->subject[0]);
	denials->count = 0;
	pthread_mutex_unlock(&denials->lock);

	setup->fate = code == 0 || ujobs_nats_error_is_shortage(code) ? UJOBS_SINK_BROKEN :
																	UJOBS_SINK_FAILED;
	if (api[0] != '\0')
	{
		setup->fate = UJOBS_SINK_FAILED;
		return ujobs_option_fail(setup->error, "%s: the user may not publish to \"%.200s\"", what,
								 api);
	}
	return ujobs_nats_error_status(setup->error, what, status);
}

static void
describe(UjobsNats *nats, jsStreamConfig *config, const char *name)
{
	jsStreamConfig_Init(config);
	config->Name = name;
	config->Description = MADE_BY_US;
	config->Storage = js_FileStorage;
	config->Replicas = ujobs_nats_option_replicas(nats->options);
}

/* Makes it; if another store was quicker, that is as good. */
static bool
add_stream(Setup *setup, jsStreamConfig *config)
{
	jsOptions	options = request_options(setup->nats);
	jsErrCode	code = 0;
	char		what[UJOBS_NATS_NAME_SIZE + 64];
	natsStatus	status = js_AddStream(NULL, setup->nats->js, config, &options, &code);

	if (status == NATS_OK || code == JSStreamNameExistErr)
		return true;
	snprintf(what, sizeof(what), "stream \"%s\" cannot be made", config->Name);
	return refuse(setup, what, status, code);
}

static bool
update_stream(Setup *setup, jsStreamConfig *config)
{
	jsOptions	options = request_options(setup->nats);
	jsErrCode	code = 0;
	char		what[UJOBS_NATS_NAME_SIZE + 64];
	natsStatus	status = js_UpdateStream(NULL, setup->nats->js, config, &options, &code);

	if (status == NATS_OK)
		return true;
	snprintf(what, sizeof(what), "stream \"%s\" cannot be changed", config->Name);
	return refuse(setup, what, status, code);
}

/* What is known of a stream; *info is NULL if there is none. */
static bool
find_stream(Setup *setup, const char *name, jsStreamInfo **info)
{
	jsOptions	options = request_options(setup->nats);
	jsErrCode	code = 0;
	char		what[UJOBS_NATS_NAME_SIZE + 64];
	natsStatus	status = js_GetStreamInfo(info, setup->nats->js, name, &options, &code);

	if (status == NATS_OK)
		return true;
	*info = NULL;
	if (code == JSStreamNotFoundErr || status == NATS_NOT_FOUND)
		return true;
	snprintf(what, sizeof(what), "cannot ask for stream \"%s\"", name);
	return refuse(setup, what, status, code);
}

static bool
is_ours(const jsStreamConfig *config)
{
	return config->Description != NULL &&
		   strncmp(config->Description, MADE_BY_US, strlen(MADE_BY_US)) == 0;
}

static bool
takes_subject(const jsStreamConfig *config, const char *subject)
{
	int			i;

	for (i = 0; i < config->SubjectsLen; i++)
	{
		if (ujobs_nats_subject_matches(config->Subjects[i], subject))
			return true;
	}
	return false;
}

/* The stream of the outbox, with what option "subjects" says, and the topic. */
static bool
make_outbox_stream(Setup *setup)
{
	const char *list = ujobs_option_find(setup->nats->options, "subjects");
	char	  (*items)[UJOBS_NATS_SUBJECT_SIZE] = malloc(MOST_SUBJECTS * sizeof(*items));
	const char *subjects[MOST_SUBJECTS + 1];
	jsStreamConfig config;
	bool		good;

	if (items == NULL)
		return ujobs_option_fail(setup->error, "out of memory");
	describe(setup->nats, &config, setup->nats->stream);
	config.Subjects = subjects;
	config.Retention = js_LimitsPolicy;
	config.Duplicates = NANOSECONDS(DUPLICATES_MS);
	while (config.SubjectsLen < MOST_SUBJECTS &&
		   ujobs_nats_option_next(&list, items[config.SubjectsLen], sizeof(*items)))
	{
		subjects[config.SubjectsLen] = items[config.SubjectsLen];
		config.SubjectsLen++;
	}
	if (!takes_subject(&config, setup->subject))
		subjects[config.SubjectsLen++] = setup->subject;
	good = add_stream(setup, &config);
	free(items);
	return good;
}

/* Adds the subject to a stream that is there. */
static bool
add_subject(Setup *setup, jsStreamConfig *config)
{
	const char **before = config->Subjects;
	const char *subjects[MOST_SUBJECTS + 1];
	bool		good;

	if (takes_subject(config, setup->subject))
		return true;			/* by now; or it is just not available */
	if (!is_ours(config))
		return ujobs_option_fail(
			setup->error,
			"stream \"%s\" does not take subject \"%.200s\", and was not made by ujobs: add the subject there",
			config->Name, setup->subject);
	if (config->SubjectsLen >= MOST_SUBJECTS)
		return ujobs_option_fail(
			setup->error,
			"stream \"%s\" has %d subjects and does not take \"%.200s\": replace some of them by one with a wildcard",
			config->Name, config->SubjectsLen, setup->subject);
	memcpy(subjects, before, config->SubjectsLen * sizeof(*subjects));
	subjects[config->SubjectsLen] = setup->subject;
	config->Subjects = subjects;
	config->SubjectsLen++;
	good = update_stream(setup, config);
	config->Subjects = before;
	config->SubjectsLen--;
	return good;
}

static bool
open_outbox_stream(Setup *setup)
{
	UjobsNats  *nats = setup->nats;
	jsStreamInfo *info;
	bool		good;

	if (nats->stream == NULL)
		return ujobs_option_fail(
			setup->error,
			"no stream takes subject \"%.200s\": make one, or name one in the sink's option \"stream\"",
			setup->subject);
	if (!find_stream(setup, nats->stream, &info))
		return false;
	if (info == NULL)
		return make_outbox_stream(setup);
	good = add_subject(setup, info->Config);
	jsStreamInfo_Destroy(info);
	return good;
}

static bool
open_jobs_stream(Setup *setup)
{
	UjobsNats  *nats = setup->nats;
	char		pattern[UJOBS_NATS_SUBJECT_SIZE];
	const char *subjects[1] = {pattern};
	jsStreamInfo *info;
	jsStreamConfig config;

	if (!find_stream(setup, nats->jobs, &info))
		return false;
	if (info != NULL)
	{
		bool		good = takes_subject(info->Config, setup->subject);

		jsStreamInfo_Destroy(info);
		return good || ujobs_option_fail(
						   setup->error,
						   "stream \"%s\" does not take \"%s.jobs.>\": add that subject to it",
						   nats->jobs, nats->prefix);
	}
	snprintf(pattern, sizeof(pattern), "%s.jobs.>", nats->prefix);
	describe(nats, &config, nats->jobs);
	config.Subjects = subjects;
	config.SubjectsLen = 1;
	config.Retention = js_WorkQueuePolicy;
	config.Duplicates = NANOSECONDS(DUPLICATES_MS);
	return add_stream(setup, &config);
}

/* Claims that are there are as they should be, or can be made so. */
static bool
check_claims_stream(Setup *setup, jsStreamConfig *config, int64_t age)
{
	UjobsNats  *nats = setup->nats;
	char		subject[UJOBS_NATS_SUBJECT_SIZE];

	ujobs_nats_subject_of_claim(nats, "x", subject);
	if (!takes_subject(config, subject) || !config->AllowDirect || config->MaxMsgsPerSubject != 1 ||
		config->Retention != js_LimitsPolicy)
		return ujobs_option_fail(
			setup->error,
			"stream \"%s\" is not fit for claims: it has to take \"%s.claims.*\" with one message per subject, direct access and retention by limits",
			nats->claims, nats->prefix);
	if (config->MaxAge == 0 || config->MaxAge >= age || !is_ours(config))
		return true;
	config->MaxAge = age;		/* the longest that a store asked for */
	return update_stream(setup, config);
}

static bool
open_claims_stream(Setup *setup)
{
	UjobsNats  *nats = setup->nats;
	int64_t		age = NANOSECONDS(ujobs_nats_option_claim_age(nats->options));
	char		pattern[UJOBS_NATS_SUBJECT_SIZE];
	const char *subjects[1] = {pattern};
	jsStreamInfo *info;
	jsStreamConfig config;

	if (!find_stream(setup, nats->claims, &info))
		return false;
	if (info != NULL)
	{
		bool		good = check_claims_stream(setup, info->Config, age);

		jsStreamInfo_Destroy(info);
		return good;
	}
	snprintf(pattern, sizeof(pattern), "%s.claims.*", nats->prefix);
	describe(nats, &config, nats->claims);
	config.Subjects = subjects;
	config.SubjectsLen = 1;
	config.Retention = js_LimitsPolicy;
	config.MaxAge = age;
	config.MaxMsgsPerSubject = 1;
	config.AllowDirect = true;
	return add_stream(setup, &config);
}

/* The one consumer of the queue, for all stores and other programs. */
static bool
open_consumer(Setup *setup)
{
	UjobsNats  *nats = setup->nats;
	jsOptions	options = request_options(nats);
	jsConsumerConfig config;
	jsConsumerInfo *info = NULL;
	jsErrCode	code = 0;
	natsStatus	status =
		js_GetConsumerInfo(&info, nats->js, nats->jobs, nats->queue.consumer, &options, &code);

	if (status == NATS_OK)
	{
		jsConsumerInfo_Destroy(info);
		return true;
	}
	if (code != JSConsumerNotFoundErr && status != NATS_NOT_FOUND)
		return refuse(setup, "cannot ask for the queue's consumer", status, code);
	jsConsumerConfig_Init(&config);
	config.Durable = nats->queue.consumer;
	config.Description = MADE_BY_US;
	config.FilterSubject = setup->subject;
	config.DeliverPolicy = js_DeliverAll;
	config.AckPolicy = js_AckExplicit;
	config.AckWait = NANOSECONDS(ACK_WAIT_MS);
	config.MaxDeliver = -1;
	config.MaxAckPending = MOST_UNACKNOWLEDGED;
	options = request_options(nats);
	status = js_AddConsumer(NULL, nats->js, nats->jobs, &config, &options, &code);
	if (status == NATS_OK || code == JSConsumerNameExistErr)
		return true;
	return refuse(setup, "the queue's consumer cannot be made", status, code);
}

static void
open_streams(void *argument)
{
	Setup    *setup = argument;

	if (setup->queue != NULL)
		setup->good = open_jobs_stream(setup) && open_claims_stream(setup) && open_consumer(setup);
	else if (setup->is_job)
		setup->good = open_jobs_stream(setup);
	else
		setup->good = open_outbox_stream(setup);
	nats_ReleaseThreadMemory();
}

/* Ends open_streams in the other thread: without a connection each of its calls fails. */
static void
close_connection(void *argument)
{
	Setup    *setup = argument;

	natsConnection_Close(setup->nats->connection);
}

/* Runs open_streams; false with an error if it took too long. */
static bool
run_setup(Setup *setup)
{
	UjobsNats  *nats = setup->nats;
	UjobsTimedCall call = {.work = open_streams, .interrupt = close_connection, .argument = setup};

	return ujobs_timed_call_run(nats->options, nats->deadline, &call, setup->error) ==
		   UJOBS_TIMED_CALL_DONE;
}

UjobsSinkFate
ujobs_nats_stream_open(UjobsNats *nats, const char *subject, bool is_job, UjobsSinkError *error)
{
	Setup		setup = {.nats = nats, .subject = subject, .is_job = is_job, .fate = UJOBS_SINK_FAILED, .error = error};

	if (!run_setup(&setup))
		return UJOBS_SINK_BROKEN;
	return setup.good ? UJOBS_SINK_UNTRIED : setup.fate;
}

bool
ujobs_nats_stream_open_queue(UjobsNats *nats, const char *queue, UjobsSinkError *error)
{
	char		subject[UJOBS_NATS_SUBJECT_SIZE];
	Setup		setup = {.nats = nats, .subject = subject, .queue = queue, .error = error};

	ujobs_nats_subject_of_queue(nats, queue, subject);
	ujobs_nats_subject_encode(queue, nats->queue.consumer, sizeof(nats->queue.consumer));
	return run_setup(&setup) && setup.good;
}
