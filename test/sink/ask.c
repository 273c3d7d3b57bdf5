/*
 * ask.c: puts questions to one sink module, as a relay would, without a server.
 *
 *     ask MODULE.so [NAME=VALUE | secret:NAME=VALUE | home:UUID | timeout:MS | private | check]...
 *
 * reads commands from standard input, a line each; arguments have no blanks but the last one:
 *
 *     examine                          connect                     disconnect
 *     header NAME VALUE                of the next message
 *     message ID TOPIC KEY PAYLOAD     into the batch; KEY - is none
 *     job ID QUEUE PAYLOAD             into the batch
 *     publish                          sends the batch: "ID FATE RETRY_AFTER_MS TEXT" for each
 *     many FIRST COUNT BATCH SIZE TOPIC    numbered messages of a size in batches ("job:QUEUE": jobs);
 *                                      says how many were delivered
 *     subscribe QUEUE
 *     take MAX WAIT_MS                 "ID ours|theirs PAYLOAD" for each
 *     collect FILE MAX IDLE_MS         takes and settles until nothing came for so long; writes the ids
 *                                      of its own to the end of the file before it settles them
 *     done [ID]    leave               settles what was taken: all or the one, or none
 *     stop MS                          the stop is true after this time from now
 *
 * The answer to a command ends with "ok MS" or "error MS TEXT".
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/sink.h"

#define MOST 1000

static const UjobsSinkModule *module;
static UjobsSinkOptions options;
static UjobsSinkPair plain[50];
static UjobsSinkPair secrets[50];
static volatile bool stop;
static void *connection;

static UjobsSinkMessage batch[MOST];
static int	n_batch;
static UjobsSinkPair headers[MOST];
static int	n_headers;
static int	n_used;				/* headers of messages */
static UjobsSinkDelivery taken[MOST];
static int	n_taken;

static int64_t
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t) time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Cuts the first word off. */
static char *
word(char **rest)
{
	char	   *begin = *rest;

	*rest += strcspn(begin, " ");
	if (**rest != '\0')
		*(*rest)++ = '\0';
	return begin;
}

static void
read_argument(char *argument)
{
	char	   *value = strchr(argument, '=');

	if (strncmp(argument, "home:", 5) == 0)
		options.store_id = argument + 5;
	else if (strncmp(argument, "timeout:", 8) == 0)
		options.timeout_ms = atoi(argument + 8);
	else if (strcmp(argument, "private") == 0)
		options.allow_private = true;
	else if (strcmp(argument, "check") == 0)
		options.check = true;
	else if (value == NULL)
		exit(2);
	else
	{
		*value++ = '\0';
		if (strncmp(argument, "secret:", 7) == 0)
			secrets[options.n_secrets++] = (UjobsSinkPair) {argument + 7, value};
		else
			plain[options.n_options++] = (UjobsSinkPair) {argument, value};
	}
}

static void
add_message(char *rest, bool is_job)
{
	UjobsSinkMessage *message = &batch[n_batch++];

	memset(message, 0, sizeof(*message));
	message->id = word(&rest);
	message->topic = word(&rest);
	message->is_job = is_job;
	if (!is_job)
		message->key = word(&rest);
	if (message->key != NULL && strcmp(message->key, "-") == 0)
		message->key = NULL;
	message->payload = rest;
	message->payload_size = strlen(rest);
	message->headers = &headers[n_used];
	message->n_headers = n_headers - n_used;
	n_used = n_headers;
}

static bool
publish(UjobsSinkError *error)
{
	static const char *const fates[] = {"untried", "delivered", "broken", "failed", "refused"};
	bool		usable = module->publish(connection, batch, n_batch, error);

	for (int i = 0; i < n_batch; i++)
		printf("%s %s %d %s\n", batch[i].id, fates[batch[i].fate], batch[i].retry_after_ms, batch[i].error.text);
	n_batch = n_headers = n_used = 0;
	return usable;
}

/* The id of a message is its number. */
static bool
many(char *rest, UjobsSinkError *error)
{
	int			first = atoi(word(&rest));
	int			count = atoi(word(&rest));
	int			size = atoi(word(&rest));
	int			payload_size = atoi(word(&rest));
	static char ids[MOST][40];
	char	   *payload = malloc(payload_size + 3);
	int64_t		begin = now();
	int			sent = 0;
	bool		usable = true;

	memset(payload, 'x', payload_size + 2);
	payload[0] = payload[payload_size + 1] = '"';
	while (usable && sent < count)
	{
		for (n_batch = 0; n_batch < size && n_batch < MOST && sent + n_batch < count; n_batch++)
		{
			snprintf(ids[n_batch], sizeof(ids[0]), "00000000-0000-4000-8000-%012d", first + sent + n_batch);
			batch[n_batch] = (UjobsSinkMessage) {.id = ids[n_batch], .topic = rest, .payload = payload, .payload_size = payload_size + 2,
			.is_job = strncmp(rest, "job:", 4) == 0};
			if (batch[n_batch].is_job)
				batch[n_batch].topic += 4;
		}
		usable = module->publish(connection, batch, n_batch, error);
		for (int i = 0; i < n_batch && batch[i].fate == UJOBS_SINK_DELIVERED; i++)
			sent++;
	}
	n_batch = 0;
	free(payload);
	printf("%d in %d ms\n", sent, (int) (now() - begin));
	return usable;
}

static bool
take(char *rest, UjobsSinkError *error)
{
	int			max = atoi(word(&rest));

	n_taken = module->take(connection, taken, max < MOST ? max : MOST, atoi(rest), error);
	for (int i = 0; i < n_taken; i++)
		printf("%s %s %s\n", taken[i].id, taken[i].ours ? "ours" : "theirs", taken[i].payload);
	return n_taken >= 0;
}

static bool
settle(UjobsSinkVerdict verdict, const char *id, UjobsSinkError *error)
{
	int			n = n_taken;

	n_taken = 0;
	for (int i = 0; i < n; i++)
		taken[i].verdict = id[0] == '\0' || strcmp(id, taken[i].id) == 0 ? verdict : UJOBS_SINK_LEAVE;
	return n <= 0 || module->settle(connection, taken, n, error);
}

static bool
collect(char *rest, UjobsSinkError *error)
{
	FILE	   *file = fopen(word(&rest), "a");
	int			max = atoi(word(&rest));
	int			idle = atoi(rest);
	int64_t		begin = now();
	int64_t		last = begin;
	int			collected = 0;
	bool		usable = file != NULL;

	while (usable && now() - last < idle)
	{
		n_taken = module->take(connection, taken, max < MOST ? max : MOST, 500, error);
		for (int i = 0; i < n_taken; i++)
		{
			taken[i].verdict = taken[i].ours ? UJOBS_SINK_DONE : UJOBS_SINK_LEAVE;
			if (!taken[i].ours)
				continue;
			fprintf(file, "%s\n", taken[i].id);
			collected++;
			last = now();
		}
		fflush(file);
		usable = n_taken >= 0 && (n_taken == 0 || module->settle(connection, taken, n_taken, error));
	}
	n_taken = 0;
	if (file != NULL)
		fclose(file);
	printf("%d in %d ms\n", collected, (int) (last - begin));
	return usable;
}

static void *
stop_later(void *argument)
{
	usleep((useconds_t) (intptr_t) argument * 1000);
	stop = true;
	return NULL;
}

static bool
start_stop(char *rest)
{
	pthread_t	thread;

	stop = false;
	return pthread_create(&thread, NULL, stop_later, (void *) (intptr_t) atoi(rest)) == 0;
}

static bool
disconnect(void)
{
	if (connection != NULL)
		module->disconnect(connection);
	connection = NULL;
	return true;
}

static bool
connect_anew(UjobsSinkError *error)
{
	disconnect();
	connection = module->connect(&options, error);
	return connection != NULL;
}

static bool
obey(const char *command, char *rest, UjobsSinkError *error)
{
	if (strcmp(command, "examine") == 0)
		return module->validate(&options, error);
	if (strcmp(command, "connect") == 0)
		return connect_anew(error);
	if (strcmp(command, "disconnect") == 0)
		return disconnect();
	if (strcmp(command, "stop") == 0)
		return start_stop(rest);
	if (strcmp(command, "message") == 0 || strcmp(command, "job") == 0)
		return n_batch < MOST ? (add_message(rest, command[0] == 'j'), true) : false;
	if (strcmp(command, "header") == 0 && n_headers < MOST)
	{
		headers[n_headers].name = word(&rest);
		headers[n_headers++].value = rest;
		return true;
	}
	if (connection == NULL)
		return false;
	if (strcmp(command, "publish") == 0)
		return publish(error);
	if (strcmp(command, "many") == 0)
		return many(rest, error);
	if (strcmp(command, "subscribe") == 0)
		return module->subscribe(connection, rest, error);
	if (strcmp(command, "take") == 0)
		return take(rest, error);
	if (strcmp(command, "collect") == 0)
		return collect(rest, error);
	if (strcmp(command, "done") == 0)
		return settle(UJOBS_SINK_DONE, rest, error);
	if (strcmp(command, "leave") == 0)
		return settle(UJOBS_SINK_LEAVE, "", error);
	return false;
}

int
main(int argc, char **argv)
{
	void	   *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
	UjobsSinkEntry entry = library != NULL ? (UjobsSinkEntry) dlsym(library, UJOBS_SINK_ENTRY) : NULL;
	static char *lines[MOST];
	int			n_lines = 0;
	char	   *line = NULL;
	size_t		room = 0;

	if (entry == NULL)
	{
		fprintf(stderr, "ask: %s\n", dlerror());
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	module = entry();
	options = (UjobsSinkOptions) {.sink = "driven", .store_id = "00000000-0000-4000-8000-000000000001",
	.options = plain, .secrets = secrets, .timeout_ms = 5000, .stop = &stop};
	for (int i = 2; i < argc; i++)
		read_argument(argv[i]);
	while (getline(&line, &room, stdin) > 0)
	{
		UjobsSinkError error = {""};
		int64_t		begin = now();
		char	   *rest = line;
		char	   *command;
		bool		ok;

		line[strcspn(line, "\n")] = '\0';
		command = word(&rest);
		ok = obey(command, rest, &error);
		printf("%s %d %s\n", ok ? "ok" : "error", (int) (now() - begin), error.text);
		fflush(stdout);
		if (n_batch > 0 || n_headers > 0)
		{
			/* The batch points into it. */
			if (n_lines == MOST)
				return 2;
			lines[n_lines++] = line;
			line = NULL;
		}
	}
	while (n_lines > 0)
		free(lines[--n_lines]);
	free(line);
	disconnect();
	return 0;
}
