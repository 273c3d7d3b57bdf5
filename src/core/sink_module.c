/*
 * sink_module.c: loads ujobs_KIND.so, and turns JSON options into pairs.
 *
 * A library that is not there is no error of the server's: it is a package
 * that is not installed.  So the load is in a subtransaction and what
 * it raises becomes a reason.
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

#include "core/clock.h"
#include "core/error.h"
#include "core/guc.h"
#include "core/sink_module.h"

#define DEFAULT_TIMEOUT_MS 10000
#define DEFAULT_ATTEMPTS 20
#define MAX_TIMEOUT_MS (10 * 60 * 1000)
#define MAX_PAIRS 64
#define NATS_MAX_PAYLOAD (1024 * 1024)	/* of a server's default */
#define MAX_PAYLOAD (16 * 1024 * 1024)
#define MOST_PAYLOAD (64 * 1024 * 1024)

static const char *const kinds[] = {"nats", "redis", "http"};
static const char *const libraries[] = {"libnats", "hiredis and OpenSSL", "libcurl"};
static const UjobsSinkModule *loaded[lengthof(kinds)];

/* ---- the module ---- */

static int
kind_number(const char *kind)
{
	for (int i = 0; i < lengthof(kinds); i++)
	{
		if (strcmp(kind, kinds[i]) == 0)
			return i;
	}
	return -1;
}

const char *
ujobs_sink_module_library(const char *kind)
{
	int			number = kind_number(kind);

	return number < 0 ? "the client library" : libraries[number];
}

static UjobsSinkEntry
load(const char *kind, char **reason)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	char	   *file = psprintf("$libdir/ujobs_%s", kind);
	UjobsSinkEntry volatile entry = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		entry = (UjobsSinkEntry) load_external_function(file, UJOBS_SINK_ENTRY, true, NULL);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		*reason = pstrdup(error->message);
		entry = NULL;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return entry;
}

static const char *
fault_of(const UjobsSinkModule *module, const char *kind)
{
	if (module == NULL)
		return "its library cannot be used";
	if (module->version != UJOBS_SINK_VERSION || module->size != sizeof(UjobsSinkModule))
		return psprintf("it is of version %u, this server has version %d", module->version,
						UJOBS_SINK_VERSION);
	if (strcmp(module->kind, kind) != 0)
		return psprintf("it speaks to \"%s\"", module->kind);
	return NULL;
}

const UjobsSinkModule *
ujobs_sink_module(const char *kind, char **reason)
{
	int			number = kind_number(kind);
	UjobsSinkEntry entry;
	const UjobsSinkModule *module;
	const char *fault;

	Assert(IsTransactionState());
	if (number < 0)
	{
		*reason = psprintf("there is no such kind of sink: \"%s\"", kind);
		return NULL;
	}
	if (loaded[number] != NULL)
		return loaded[number];
	entry = load(kind, reason);
	if (entry == NULL)
		return NULL;
	module = entry();
	fault = fault_of(module, kind);
	if (fault != NULL)
	{
		*reason = psprintf("the module ujobs_%s does not fit: %s", kind, fault);
		return NULL;
	}
	return loaded[number] = module;
}

/* ---- JSON to pairs ---- */

typedef struct Pairs
{
	UjobsSinkPair *pair;
	int			n;
} Pairs;

static char *
to_utf8(const char *text)
{
	char	   *converted = pg_server_to_any(text, strlen(text), PG_UTF8);

	return converted == text ? pstrdup(text) : converted;
}

static char *
value_text(const char *name, const JsonbValue *value)
{
	switch (value->type)
	{
		case jbvString:
			return pnstrdup(value->val.string.val, value->val.string.len);
		case jbvBool:
			return pstrdup(value->val.boolean ? "true" : "false");
		case jbvNumeric:
			return DatumGetCString(
				DirectFunctionCall1(numeric_out, NumericGetDatum(value->val.numeric)));
		default:
			ereport(ERROR,
					(ujobs_errcode(INVALID_OPTION),
					 errmsg("option \"%s\" of the sink is null or an array", name),
					 errhint("Give a string, a number or a boolean, or leave it out.")));
	}
	return NULL;				/* not reached */
}

static void
add_pair(Pairs *pairs, const char *name, const char *value)
{
	if (pairs->n == MAX_PAIRS)
		ereport(ERROR,
				(ujobs_errcode(INVALID_OPTION),
				 errmsg("more than %d options or headers", MAX_PAIRS)));
	pairs->pair[pairs->n].name = to_utf8(name);
	pairs->pair[pairs->n++].value = to_utf8(value);
}

static void
flatten(Pairs *pairs, const char *prefix, JsonbContainer *object)
{
	JsonbIterator *it = JsonbIteratorInit(object);
	JsonbValue	value;
	JsonbIteratorToken token;
	char	   *name = NULL;

	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
			name = psprintf("%s%.*s", prefix, value.val.string.len, value.val.string.val);
		else if (token == WJB_VALUE && value.type == jbvBinary && *prefix == '\0' &&
				 JsonContainerIsObject(value.val.binary.data))
			flatten(pairs, psprintf("%s.", name), value.val.binary.data);
		else if (token == WJB_VALUE)
			add_pair(pairs, name, value_text(name, &value));
	}
}

UjobsSinkPair *
ujobs_sink_module_pairs(Jsonb *object, int *n)
{
	Pairs		pairs = {.pair = palloc0(MAX_PAIRS * sizeof(UjobsSinkPair))};

	if (object != NULL && JB_ROOT_IS_OBJECT(object))
		flatten(&pairs, "", &object->root);
	*n = pairs.n;
	return pairs.pair;
}

/* ---- what the core reads itself ---- */

static bool
is_ours(const char *name)
{
	return strcmp(name, "check") == 0 || strcmp(name, "maxPayload") == 0 ||
		   strcmp(name, "timeout") == 0 || strcmp(name, "attempts") == 0;
}

static void
refuse(const char *option, const char *value, const char *hint)
{
	ereport(ERROR,
			(ujobs_errcode(INVALID_OPTION),
			 errmsg("option \"%s\" of the sink has an invalid value: \"%s\"", option, value),
			 errhint("%s", hint)));
}

/* Interval text, or a number of milliseconds. */
static int
timeout_ms(const char *text)
{
	Interval   *interval;
	int64		us;

	if (text == NULL)
		return DEFAULT_TIMEOUT_MS;
	if (strspn(text, "0123456789") == strlen(text) && *text != '\0' && strlen(text) < 10)
		us = INT64CONST(1000) * atoi(text);
	else
	{
		interval = DatumGetIntervalP(DirectFunctionCall3(
			interval_in, CStringGetDatum(text), ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1)));
		us = ujobs_clock_interval_us(interval);
	}
	if (us < 1000 || us / 1000 > MAX_TIMEOUT_MS)
		refuse("timeout", text,
			   "Give an interval such as '10s', or a number of milliseconds, up to 10 minutes.");
	return (int) (us / 1000);
}

int64
ujobs_sink_module_max_payload(const char *kind, Jsonb *options)
{
	int			n;
	UjobsSinkPair *pairs = ujobs_sink_module_pairs(options, &n);
	const char *given = ujobs_sink_pair_find(pairs, n, "maxPayload");
	int64		bytes;

	if (given == NULL)
		return strcmp(kind, "nats") == 0 ? NATS_MAX_PAYLOAD : MAX_PAYLOAD;
	if (strspn(given, "0123456789") != strlen(given) || strlen(given) > 9)
		refuse("maxPayload", given, "Give a number of bytes.");
	bytes = atol(given);
	if (bytes < 1 || bytes > MOST_PAYLOAD)
		refuse("maxPayload", given, "Give a number of bytes, from 1 to 67108864.");
	return bytes;
}

int
ujobs_sink_module_attempts(Jsonb *options)
{
	int			n;
	UjobsSinkPair *pairs = ujobs_sink_module_pairs(options, &n);
	const char *given = ujobs_sink_pair_find(pairs, n, "attempts");

	if (given == NULL)
		return DEFAULT_ATTEMPTS;
	if (strspn(given, "0123456789") != strlen(given) || strlen(given) > 6 || atoi(given) < 1)
		refuse("attempts", given, "Give a number from 1 to 999999.");
	return atoi(given);
}

bool
ujobs_sink_module_wants_check(Jsonb *options)
{
	int			n;
	UjobsSinkPair *pairs = ujobs_sink_module_pairs(options, &n);
	const char *given = ujobs_sink_pair_find(pairs, n, "check");

	if (given != NULL && strcmp(given, "true") != 0 && strcmp(given, "false") != 0)
		refuse("check", given, "Give true or false.");
	return given != NULL && strcmp(given, "true") == 0;
}

UjobsSinkOptions *
ujobs_sink_module_options(const UjobsSinkFacts *facts, const volatile bool *stop)
{
	UjobsSinkOptions *o = palloc0(sizeof(UjobsSinkOptions));
	UjobsSinkPair *all;
	UjobsSinkPair *kept;
	int			n;

	all = ujobs_sink_module_pairs(facts->options, &n);
	kept = palloc0(Max(n, 1) * sizeof(UjobsSinkPair));
	for (int i = 0; i < n; i++)
	{
		if (!is_ours(all[i].name))
			kept[o->n_options++] = all[i];
	}
	o->options = kept;
	o->secrets = ujobs_sink_module_pairs(facts->secret, &o->n_secrets);
	o->sink = to_utf8(facts->sink);
	o->store_id = pstrdup(facts->store_id == NULL ? "" : facts->store_id);
	o->timeout_ms = timeout_ms(ujobs_sink_pair_find(all, n, "timeout"));
	o->allow_private = ujobs_guc_http_allow_private;
	o->stop = stop;
	return o;
}

/* A name that ends with a dot means all that begin with it. */
static bool
is_known(const char *const *names, const char *name)
{
	for (int i = 0; names != NULL && names[i] != NULL; i++)
	{
		size_t		length = strlen(names[i]);

		if (strcmp(names[i], name) == 0 ||
			(length > 0 && names[i][length - 1] == '.' && strncmp(names[i], name, length) == 0))
			return true;
	}
	return false;
}

static const char *
unknown(const char *const *names, const UjobsSinkPair *pairs, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (!is_known(names, pairs[i].name))
			return pairs[i].name;
	}
	return NULL;
}

const char *
ujobs_sink_module_unknown_option(const UjobsSinkModule *module, const UjobsSinkOptions *options)
{
	return unknown(module->option_names, options->options, options->n_options);
}

const char *
ujobs_sink_module_unknown_secret(const UjobsSinkModule *module, const UjobsSinkOptions *options)
{
	return unknown(module->secret_names, options->secrets, options->n_secrets);
}
