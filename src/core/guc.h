/*
 * guc.h: the settings, one variable each.
 */
#ifndef UJOBS_CORE_GUC_H
#define UJOBS_CORE_GUC_H

#include "postgres.h"

#include "datatype/timestamp.h"

typedef enum UjobsOutboxMode
{
	UJOBS_OUTBOX_DEFAULT,
	UJOBS_OUTBOX_REQUIRED
} UjobsOutboxMode;

extern int	ujobs_guc_outbox_mode;
extern char *ujobs_guc_traceparent;
extern char *ujobs_guc_tenant_id;
extern char *ujobs_guc_clock;
extern bool ujobs_guc_clock_set;	/* derived from ujobs_guc_clock */
extern TimestampTz ujobs_guc_clock_instant;
extern char *ujobs_guc_synchronous_commit;
extern int	ujobs_guc_default_timeout;	/* ms, 0 = none */
extern int	ujobs_guc_log_min_duration; /* ms, -1 = off */
extern char *ujobs_guc_databases;
extern int	ujobs_guc_worker_idle_timeout;	/* ms */
extern int	ujobs_guc_max_running;	/* 0 = no cap */
extern int	ujobs_guc_max_queues;
extern int	ujobs_guc_max_running_per_owner;	/* 0 = no cap */
extern int	ujobs_guc_max_schema_size;	/* bytes */
extern int	ujobs_guc_max_timeout;	/* ms, 0 = none */
extern int	ujobs_guc_max_validation_steps;
extern int	ujobs_guc_poll_interval;	/* ms */
extern int	ujobs_guc_drain_timeout;	/* ms */
extern int	ujobs_guc_retention;	/* seconds */
extern int	ujobs_guc_dead_retention;	/* seconds */
extern bool ujobs_guc_http_allow_private;
extern int	ujobs_guc_max_workers;

/* No setting: is the library in shared_preload_libraries? */
extern bool ujobs_guc_preloaded;

/*
 * Is a database of this name, or the one of this process, in ujobs.databases?
 * Without preload every one is.  The second needs a transaction.
 */
extern bool ujobs_guc_serves_database(const char *database);
extern bool ujobs_guc_serves_this_database(void);

/* Defines all of them.  Call from _PG_init. */
extern void ujobs_guc_define(void);

#endif							/* UJOBS_CORE_GUC_H */
