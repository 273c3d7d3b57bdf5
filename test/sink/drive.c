/*
 * drive.c: drives one sink module as the relay does, without a server.
 *
 *     drive MODULE COMMAND [-o option=value] [-s secret=value] [-h home] [-t timeout ms] ...
 *
 *     examine                          says "good", or the error
 *     connect [-n times]               the same, of a connection
 *     publish -q topic [-j] -f first -n count [-b batch] [-z bytes] [-H name=value]
 *                                      messages first ... first+count-1; -j: a queue's jobs.
 *                                      Sends again until each has a fate; prints the fates
 *                                      as "delivered N", "failed N: error", "refused N: error"
 *     take -q queue -f first -n count -r file [-b batch] [-l percent] [-w idle ms]
 *                                      takes until nothing came for so long; writes the number
 *                                      of each message that it stores into the file, once;
 *                                      -l: so many batches lose their acknowledgements
 *
 * A message's id is a uuid whose last digits are its number.  What is in the
 * file when a taker starts, it has stored before: the file is its inbox.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/sink.h"

#define MOST_PAIRS 20
#define MOST_BATCH 5000
#define GIVE_UP_MS 60000

static volatile bool stop = false;
static UjobsSinkPair given_options[MOST_PAIRS];
static UjobsSinkPair given_secrets[MOST_PAIRS];
static UjobsSinkPair headers[MOST_PAIRS];
static int	n_headers = 0;
static UjobsSinkOptions options = {
	.sink = "driven", .home = "00000000-0000-4000-9000-000000000001",
	.options = given_options, .secrets = given_secrets, .timeout_ms = 5000, .stop = &stop
};
static const UjobsSinkModule *module;
static const char *place = "driven";
static const char *record = NULL;
static bool is_job = false;
static int	first = 0;
static int	count = 1;
static int	batch = 500;
static int	bytes = 0;
static int	losses = 0;
static int	idle_ms = 2000;

static double
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static void
handle_term(int signal_number)
{
	stop = true;
}

static void
fail(const char *what, const char *why)
{
	printf("%s: %s\n", what, why);
	exit(1);
}

static void
add_pair(UjobsSinkPair *pairs, int *n, char *text)
{
	char	   *value = strchr(text, '=');

	if (value == NULL || *n == MOST_PAIRS)
		fail("not name=value", text);
	*value = '\0';
	pairs[*n].name = text;
	pairs[(*n)++].value = value + 1;
}

static void
read_arguments(int argc, char **argv)
{
	int			letter;

	while ((letter = getopt(argc, argv, "o:s:h:t:q:jf:n:b:z:r:l:w:H:")) != -1)
	{
		switch (letter)
		{
			case 'o': add_pair(given_options, &options.n_options, optarg); break;
			case 's': add_pair(given_secrets, &options.n_secrets, optarg); break;
			case 'H': add_pair(headers, &n_headers, optarg); break;
			case 'h': options.home = optarg; break;
			case 't': options.timeout_ms = atoi(optarg); break;
			case 'q': place = optarg; break;
			case 'j': is_job = true; break;
			case 'f': first = atoi(optarg); break;
			case 'n': count = atoi(optarg); break;
			case 'b': batch = atoi(optarg) < MOST_BATCH ? atoi(optarg) : MOST_BATCH; break;
			case 'z': bytes = atoi(optarg); break;
			case 'r': record = optarg; break;
			case 'l': losses = atoi(optarg); break;
			case 'w': idle_ms = atoi(optarg); break;
			default: fail("bad argument", argv[optind - 1]);
		}
	}
}

static void
load(const char *path)
{
	void	   *handle = dlopen(path, RTLD_NOW);
	UjobsSinkEntry entry = handle ? (UjobsSinkEntry) dlsym(handle, UJOBS_SINK_ENTRY) : NULL;

	if (entry == NULL)
		fail("no module", dlerror());
	module = entry();
	if (module->version != UJOBS_SINK_VERSION || module->size != sizeof(UjobsSinkModule))
		fail("module", "another version");
}

/* Each text once in a row. */
static void
report(const char *text)
{
	static char latest[UJOBS_SINK_ERROR_SIZE];

	if (strcmp(text, latest) != 0)
		fprintf(stderr, "drive: %s\n", text);
	snprintf(latest, sizeof(latest), "%s", text);
}

/* Tries again for a while: the broker may be starting. */
static void *
connect_again(const char *queue)
{
	double		began = now();
	UjobsSinkError error = {""};

	while (!stop)
	{
		void	   *connection = module->connect(&options, &error);

		if (connection != NULL && (queue == NULL || module->subscribe(connection, queue, &error)))
			return connection;
		if (connection != NULL)
			module->disconnect(connection);
		report(error.text);
		if (now() - began > GIVE_UP_MS / 1000)
			fail("gave up", error.text);
		usleep(50000);
	}
	exit(0);
}

/* ---- publish ---- */

static UjobsSinkMessage *
make_messages(void)
{
	UjobsSinkMessage *messages = calloc(count, sizeof(UjobsSinkMessage));
	char	   *body = malloc(bytes + 100);
	int			length = sprintf(body, "{\"name\": \"driven\", \"filler\": \"");

	while (length < bytes - 2)
		body[length++] = 'x';
	strcpy(body + length, "\"}");
	for (int i = 0; i < count; i++)
	{
		char	   *id;

		if (asprintf(&id, "00000000-0000-4000-8000-%012d", first + i) < 0)
			fail("memory", "out of it");
		messages[i] = (UjobsSinkMessage) {.id = id, .topic = place, .payload = body, .payload_size = strlen(body),
			.headers = headers, .n_headers = n_headers, .is_job = is_job, .key = is_job ? NULL : id};
	}
	return messages;
}

/* Every message with a fate of its own goes out of the way; how many are left. */
static int
sort_out(UjobsSinkMessage *messages, int n, int *delivered)
{
	int			left = 0;

	for (int i = 0; i < n; i++)
	{
		switch (messages[i].fate)
		{
			case UJOBS_SINK_DELIVERED:
				(*delivered)++;
				break;
			case UJOBS_SINK_FAILED:
			case UJOBS_SINK_REFUSED:
				printf("%s %s: %s\n", messages[i].fate == UJOBS_SINK_FAILED ? "failed" : "refused",
					   messages[i].id + 24, messages[i].error.text);
				break;
			default:
				messages[left++] = messages[i];
		}
	}
	return left;
}

static void
publish(void)
{
	UjobsSinkMessage *messages = make_messages();
	void	   *connection = connect_again(NULL);
	int			delivered = 0;
	double		began = now();

	for (int next = 0; next < count && !stop; next += batch)
	{
		int			left = count - next < batch ? count - next : batch;

		while (left > 0 && !stop)
		{
			UjobsSinkError error = {""};
			bool		good = module->publish(connection, messages + next, left, &error);

			left = sort_out(messages + next, left, &delivered);
			if (good)
				continue;
			report(error.text);
			module->disconnect(connection);
			connection = connect_again(NULL);
		}
	}
	printf("delivered %d\n", delivered);
	fprintf(stderr, "drive: %.0f messages/s published\n", delivered / (now() - began));
	module->disconnect(connection);
}

/* ---- take ---- */

static char *stored;
static FILE *file;

static void
read_record(void)
{
	int			number;

	stored = calloc(count, 1);
	file = record ? fopen(record, "a+") : NULL;
	if (file == NULL)
		fail("take", "no file");
	rewind(file);
	while (fscanf(file, "%d", &number) == 1)
		stored[number - first] = 1;
	fseek(file, 0, SEEK_END);
}

/* Stores what is ours, as a store would do in one transaction. */
static int
store(UjobsSinkDelivery *deliveries, int n)
{
	int			fresh = 0;

	for (int i = 0; i < n; i++)
	{
		int			number = strlen(deliveries[i].id) == 36 ? atoi(deliveries[i].id + 24) : -1;

		if (!deliveries[i].ours)
			continue;
		deliveries[i].verdict = UJOBS_SINK_DONE;
		if (number < first || number >= first + count)
			printf("foreign %s: %s\n", deliveries[i].id, deliveries[i].payload);
		else if (!stored[number - first])
		{
			stored[number - first] = 1;
			fprintf(file, "%d\n", number);
			fresh++;
		}
	}
	fflush(file);
	return fresh;
}

static void
take(void)
{
	static UjobsSinkDelivery deliveries[MOST_BATCH];
	void	   *connection;
	double		began;
	double		latest;
	int			total = 0;
	int			others = 0;

	read_record();
	connection = connect_again(place);
	began = latest = now();
	while (!stop && now() - latest < idle_ms / 1e3)
	{
		UjobsSinkError error = {""};
		int			n = module->take(connection, deliveries, batch, 200, &error);
		int			fresh = n > 0 ? store(deliveries, n) : 0;
		bool		lose = n > 0 && rand() % 100 < losses;

		if (n > 0)
			latest = now();
		total += fresh;
		for (int i = 0; i < n; i++)
			others += !deliveries[i].ours;
		if (lose)
			fprintf(stderr, "drive: loses the acknowledgements of %d\n", n);
		if (n >= 0 && !lose && module->settle(connection, deliveries, n, &error))
			continue;
		report(error.text);
		module->disconnect(connection);
		connection = connect_again(place);
		latest = now();
	}
	printf("stored %d\n", total);
	fprintf(stderr, "drive: %.0f messages/s taken, %d were of others\n", total / (latest - began), others);
	module->disconnect(connection);
}

static void
try_connections(void)
{
	for (int i = 0; i < count; i++)
	{
		UjobsSinkError error = {""};
		void	   *connection = module->connect(&options, &error);

		if (connection == NULL)
			fail("error", error.text);
		module->disconnect(connection);
	}
	printf("good\n");
}

static void
examine(void)
{
	UjobsSinkError error = {""};

	if (!module->examine(&options, &error))
		fail("error", error.text);
	printf("good\n");
}

int
main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = handle_term};

	if (argc < 3)
		fail("usage", "drive MODULE COMMAND ...");
	sigaction(SIGTERM, &action, NULL);
	load(argv[1]);
	read_arguments(argc - 2, argv + 2);
	srand(getpid());
	if (strcmp(argv[2], "examine") == 0)
		examine();
	else if (strcmp(argv[2], "connect") == 0)
		try_connections();
	else if (strcmp(argv[2], "publish") == 0)
		publish();
	else if (strcmp(argv[2], "take") == 0)
		take();
	else
		fail("no such command", argv[2]);
	return 0;
}
