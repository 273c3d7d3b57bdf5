/*
 * guc.c: one row per setting, sorted by name.
 *
 * The values that a job was promised are stored in its row; these are the
 * defaults and the engine's own.
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/timestamp.h"
#include "utils/varlena.h"

#include "core/compat.h"
#include "core/guc.h"
#include "core/area.h"

int			ujobs_guc_outbox_mode = UJOBS_OUTBOX_DEFAULT;
char	   *ujobs_guc_traceparent = NULL;
char	   *ujobs_guc_tenant_id = NULL;
char	   *ujobs_guc_clock = NULL;
bool		ujobs_guc_clock_set = false;
TimestampTz ujobs_guc_clock_instant = 0;
char	   *ujobs_guc_synchronous_commit = NULL;
int			ujobs_guc_default_timeout = 0;
int			ujobs_guc_log_min_duration = -1;
char	   *ujobs_guc_databases = NULL;
int			ujobs_guc_worker_idle_timeout = 30000;
int			ujobs_guc_max_running = 0;
int			ujobs_guc_max_queues = 1000;
int			ujobs_guc_max_running_per_owner = 0;
int			ujobs_guc_max_schema_size = 262144;
int			ujobs_guc_max_timeout = 0;
int			ujobs_guc_max_validation_steps = 1000000;
int			ujobs_guc_poll_interval = 5000;
int			ujobs_guc_drain_timeout = 30000;
int			ujobs_guc_retention = 604800;
int			ujobs_guc_dead_retention = 2592000;
bool		ujobs_guc_http_allow_private = false;
int			ujobs_guc_max_workers = 4;
bool		ujobs_guc_preloaded = false;

static const struct config_enum_entry outbox_modes[] = {
	{"default", UJOBS_OUTBOX_DEFAULT, false},
	{"required", UJOBS_OUTBOX_REQUIRED, false},
	{NULL, 0, false}
};

typedef struct ClockValue
{
	bool		set;
	TimestampTz instant;
} ClockValue;

/* The years 1970 to 9999: what is added to an instant of them is finite. */
#define FIRST_CLOCK (-INT64CONST(10957) * USECS_PER_DAY)
#define LAST_CLOCK (INT64CONST(2921940) * USECS_PER_DAY)

/* Soft parse: a setting's check hook reports, it does not raise. */
static bool
clock_parse(const char *text, ClockValue *value)
{
	MemoryContext old = CurrentMemoryContext;
	bool		ok = true;

	value->set = text != NULL && text[0] != '\0';
	value->instant = 0;
	if (!value->set)
		return true;
	PG_TRY();
	{
		value->instant = DatumGetTimestampTz(DirectFunctionCall3(timestamptz_in,
																 CStringGetDatum(text),
																 ObjectIdGetDatum(InvalidOid),
																 Int32GetDatum(-1)));
		ok = value->instant >= FIRST_CLOCK && value->instant < LAST_CLOCK;
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(old);
		FlushErrorState();
		ok = false;
	}
	PG_END_TRY();
	return ok;
}

static bool
clock_check(char **newval, void **extra, GucSource source)
{
	ClockValue	value;

	if (!clock_parse(*newval, &value))
	{
		GUC_check_errdetail("\"%s\" is not a timestamp with time zone between the years 1970 and 9999.", *newval);
		return false;
	}
	*extra = ujobs_compat_guc_malloc(sizeof(ClockValue));
	if (*extra == NULL)
		return false;
	memcpy(*extra, &value, sizeof(value));
	return true;
}

static void
clock_assign(const char *newval, void *extra)
{
	ujobs_guc_clock_set = extra != NULL && ((ClockValue *) extra)->set;
	ujobs_guc_clock_instant = extra != NULL ? ((ClockValue *) extra)->instant : 0;
}

static bool
synchronous_commit_check(char **newval, void **extra, GucSource source)
{
	static const char *const allowed[] = {
		"", "on", "off", "local", "remote_write", "remote_apply", "true", "false", "yes", "no", "1", "0"
	};

	for (int i = 0; i < lengthof(allowed); i++)
	{
		if (pg_strcasecmp(*newval, allowed[i]) == 0)
			return true;
	}
	GUC_check_errdetail("Allowed are '' (inherit) and the values of synchronous_commit.");
	return false;
}

static void
define_session_settings(void)
{
	DefineCustomStringVariable("ujobs.clock",
							   "Virtual instant that this session's ujobs functions take for now.",
							   "For trying jobs out with ujobs.drain; engine processes ignore it.",
							   &ujobs_guc_clock, "", PGC_USERSET, 0,
							   clock_check, clock_assign, NULL);
	DefineCustomEnumVariable("ujobs.outbox_mode",
							 "Whether an enqueue must stand in an explicit transaction block.",
							 NULL, &ujobs_guc_outbox_mode, UJOBS_OUTBOX_DEFAULT, outbox_modes,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("ujobs.tenant_id",
							   "Tenant of the running job; set by the engine around a handler.",
							   NULL, &ujobs_guc_tenant_id, "", PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("ujobs.traceparent",
							   "W3C trace context given to jobs enqueued without one.",
							   NULL, &ujobs_guc_traceparent, "", PGC_USERSET, 0, NULL, NULL, NULL);
}

static void
define_superuser_settings(void)
{
	DefineCustomIntVariable("ujobs.default_timeout",
							"Running time of an attempt whose definition has no timeout; 0 means none.",
							NULL, &ujobs_guc_default_timeout, 0, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("ujobs.log_min_duration",
							"Log each job that ran at least this long; -1 logs none.",
							NULL, &ujobs_guc_log_min_duration, -1, -1, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("ujobs.max_schema_size",
							"Size of an input_schema that may be defined.",
							NULL, &ujobs_guc_max_schema_size, 262144, 1024, MaxAllocSize,
							PGC_SUSET, GUC_UNIT_BYTE, NULL, NULL, NULL);
	DefineCustomIntVariable("ujobs.max_timeout",
							"Longest running time of an attempt, whatever its definition says; 0 means none.",
							NULL, &ujobs_guc_max_timeout, 0, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("ujobs.max_validation_steps",
							"Steps that the check of an input against input_schema may take.",
							NULL, &ujobs_guc_max_validation_steps, 1000000, 1000, INT_MAX,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("ujobs.synchronous_commit",
							   "synchronous_commit of executors, read at each job; '' inherits.",
							   NULL, &ujobs_guc_synchronous_commit, "", PGC_SUSET, 0,
							   synchronous_commit_check, NULL, NULL);
}

static void
define_time_settings(void)
{
	DefineCustomIntVariable("ujobs.dead_retention",
							"How long dead letters stay in history.",
							NULL, &ujobs_guc_dead_retention, 2592000, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomIntVariable("ujobs.drain_timeout",
							"How long running jobs may finish after stop_workers.",
							NULL, &ujobs_guc_drain_timeout, 30000, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("ujobs.poll_interval",
							"Longest time until the dispatcher finds a row that nothing announced.",
							NULL, &ujobs_guc_poll_interval, 5000, 100, 3600000,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("ujobs.retention",
							"How long done and cancelled jobs stay in history.",
							NULL, &ujobs_guc_retention, 604800, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomIntVariable("ujobs.worker_idle_timeout",
							"An executor without work leaves after this time.",
							NULL, &ujobs_guc_worker_idle_timeout, 30000, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
}

static bool
check_databases(char **newval, void **extra, GucSource source)
{
	char	   *copy = pstrdup(*newval);
	List	   *names;
	bool		parses = SplitIdentifierString(copy, ',', &names);

	if (!parses)
		GUC_check_errdetail(
			"List syntax is invalid: names are separated by commas, and those with capitals, blanks or commas stand in double quotes.");
	list_free(names);
	pfree(copy);
	return parses;
}

static void
define_engine_settings(void)
{
	DefineCustomStringVariable("ujobs.databases",
							   "Databases that get an engine: '*' or a comma-separated list.",
							   NULL, &ujobs_guc_databases, "*", PGC_SIGHUP, GUC_LIST_INPUT,
							   check_databases, NULL, NULL);
	DefineCustomBoolVariable("ujobs.http_allow_private",
							 "Lets http sinks reach addresses of this host's own networks.",
							 "Read when a connection is made; off, they are refused.", &ujobs_guc_http_allow_private, false,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("ujobs.max_queues",
							"Most queues that jobs may name beyond those that are defined.",
							NULL, &ujobs_guc_max_queues, 1000, 1, INT_MAX,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("ujobs.max_running_per_owner",
							"Most running jobs of one owner inside a database; 0 means no cap.",
							NULL, &ujobs_guc_max_running_per_owner, 0, 0, INT_MAX,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("ujobs.max_running",
							"Most running jobs in one database, inside and outside; 0 means no cap.",
							NULL, &ujobs_guc_max_running, 0, 0, INT_MAX,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"ujobs.max_workers", "Most executors of the cluster.", NULL, &ujobs_guc_max_workers, 4, 1,
		UJOBS_MAX_SLOTS, process_shared_preload_libraries_in_progress ? PGC_POSTMASTER : PGC_SIGHUP,
		0, NULL, NULL, NULL);
}

void
ujobs_guc_define(void)
{
	ujobs_guc_preloaded = process_shared_preload_libraries_in_progress;
	define_session_settings();
	define_superuser_settings();
	define_time_settings();
	define_engine_settings();
	MarkGUCPrefixReserved("ujobs");
}

bool
ujobs_guc_serves_database(const char *database)
{
	char	   *copy;
	List	   *names;
	ListCell   *cell;
	bool		wanted = false;

	if (!ujobs_guc_preloaded || strcmp(ujobs_guc_databases, "*") == 0)
		return true;
	copy = pstrdup(ujobs_guc_databases);
	(void) SplitIdentifierString(copy, ',', &names);
	foreach(cell, names)
	{
		const char *name = lfirst(cell);

		wanted |= strcmp(name, "*") == 0 || strcmp(name, database) == 0;
	}
	list_free(names);
	pfree(copy);
	return wanted;
}

bool
ujobs_guc_serves_this_database(void)
{
	return ujobs_guc_serves_database(get_database_name(MyDatabaseId));
}
