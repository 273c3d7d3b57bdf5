/*
 * catalogue_job.h: one job at its begin and end, leases, the jobs of drain.
 *
 * A part of the table in catalogue.c, included there alone.
 */
#ifndef UJOBS_STORE_CATALOGUE_JOB_H
#define UJOBS_STORE_CATALOGUE_JOB_H

/* What the dispatcher keeps of a claimed job. */
#define LEASED "select j.id, j.definition_id, j.queue, j.tenant, j.priority, j.due_at, j.state\n"
#define LEASED_JOB \
	" cross join lateral (select *\n" \
	"                       from ujobs_internal.job\n" \
	"                      where id = l.job_id\n" \
	"                     offset 0) j\n"

	/* job_store */
	[UJOBS_SQL_JOB_RETRY] = {
		"job_retry",
		"/* ujobs:job_retry */\n"
		"update ujobs_internal.job\n"
		"   set state = $3,\n"
		"       attempt = $4,\n"
		"       due_at = $5,\n"
		"       last_error = $6,\n"
		"       reason = $7,\n"
		"       started_at = case when $3 = 's' then coalesce(started_at, $8) end,\n"
		"       revision = revision + 1\n"
		" where id = $1\n"
		"   and revision = $2",
		8, {INT8OID, INT4OID, CHAROID, INT4OID, TIMESTAMPTZOID, JSONBOID, TEXTOID, TIMESTAMPTZOID}
	},
	[UJOBS_SQL_JOB_END] = {
		"job_end",
		"/* ujobs:job_end */\n"
		"with gone as (\n"
		"    delete from ujobs_internal.job j\n"
		"     where id = $1\n"
		"       and revision = $2\n"
		"    returning " GONE_COLUMNS "),\n"
		WEIGHED_STEPS
		"       and " FOLD_FITS ")\n"
		"insert into ujobs_internal.job_history\n"
		"       (" KEPT_COLUMNS ",\n"
		"       state, slot, attempt, last_error, reason, started_at, finished_at, expires_at, steps)\n"
		"select " KEPT_COLUMNS ",\n"
		"       $3, $4, $5, $6, $7, $8, $9, $10,\n"
		FOLDED_STEPS
		"  from weighed",
		10, {INT8OID, INT4OID, CHAROID, INT2OID, INT4OID, JSONBOID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID}
	},
	[UJOBS_SQL_JOB_HOLD_DUE] = {
		"job_hold_due",
		"/* ujobs:job_hold_due */\n"
		"update ujobs_internal.job\n"
		"   set due_at = $3\n"
		" where id = $1\n"
		"   and revision = $2",
		3, {INT8OID, INT4OID, TIMESTAMPTZOID}
	},
	[UJOBS_SQL_JOB_AWAITED] = {
		"job_awaited",
		"/* ujobs:job_awaited */\n"
		"select distinct w.child_id\n"
		"  from unnest($1) as u (id)\n"
		" cross join lateral (select child_id\n"
		"                       from ujobs_internal.job_step\n"
		"                      where child_id = u.id\n"
		"                        and child_id is not null\n"
		"                        and status = 'w'\n"
		"                     offset 0) w",
		1, {INT8ARRAYOID}
	},

	/* lease_store */
	[UJOBS_SQL_LEASE_ALL] = {
		"lease_all",
		"/* ujobs:lease_all */\n"
		LEASED
		"  from ujobs_internal.lease l\n"
		LEASED_JOB
		" where j.state = 'l'",
		0, {0}
	},
	[UJOBS_SQL_LEASE_OF] = {
		"lease_of",
		"/* ujobs:lease_of */\n"
		LEASED
		"  from unnest($1) as l (job_id)\n"
		LEASED_JOB,
		1, {INT8ARRAYOID}
	},
	[UJOBS_SQL_LEASE_EXPIRED] = {
		"lease_expired",
		"/* ujobs:lease_expired */\n"
		"select job_id, visible_at\n"
		"  from ujobs_internal.lease\n"
		" where (visible_at, job_id) > ($1, $2)\n"
		"   and visible_at <= $3\n"
		" order by visible_at, job_id\n"
		" limit $4",
		4, {TIMESTAMPTZOID, INT8OID, TIMESTAMPTZOID, INT8OID}
	},
	[UJOBS_SQL_LEASE_NEXT] = {
		"lease_next",
		"/* ujobs:lease_next */\n"
		"select visible_at\n"
		"  from ujobs_internal.lease\n"
		" where visible_at > $1\n"
		" order by visible_at, job_id\n"
		" limit 1",
		1, {TIMESTAMPTZOID}
	},
	[UJOBS_SQL_LEASE_HISTORY] = {
		"lease_history",
		"/* ujobs:lease_history */\n"
		"select lease, state, definition_id\n"
		"  from ujobs_internal.job_history\n"
		" where id = $1",
		1, {INT8OID}
	},

	/* drain_store */
	[UJOBS_SQL_DRAIN_DUE] = {
		"drain_due",
		"/* ujobs:drain_due */\n"
		"select id, due_at, priority, xmin\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1\n"
		"   and queue = $2\n"
		"   and due_at <= $3\n"
		"   and state <> 'l'\n"
		"   and ($4 is null or age(xmin) <= age($4))\n"
		" order by priority, due_at, id\n"
		" limit $5",
		5, {INT4OID, TEXTOID, TIMESTAMPTZOID, XIDOID, INT8OID}
	},
	[UJOBS_SQL_DRAIN_LOCK] = {
		"drain_lock",
		"/* ujobs:drain_lock */\n"
		"select id\n"
		"  from ujobs_internal.job\n"
		" where id = $1\n"
		"   for update skip locked",
		1, {INT8OID}
	},
	[UJOBS_SQL_DRAIN_LEFTOVERS] = {
		"drain_leftovers",
		"/* ujobs:drain_leftovers */\n"
		"select 'c'::\"char\", name, 0::oid, 0::oid\n"
		"  from pg_cursors\n"
		"union all\n"
		"select 'p', name, 0, 0\n"
		"  from pg_prepared_statements\n"
		"union all\n"
		"select 't', '', classid, objid\n"
		"  from pg_depend\n"
		" where refclassid = 'pg_namespace'::regclass\n"
		"   and refobjid = pg_my_temp_schema()\n"
		"   and deptype = 'n'",
		0, {0}
	},

#endif							/* UJOBS_STORE_CATALOGUE_JOB_H */
