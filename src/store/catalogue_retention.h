/*
 * catalogue_retention.h: what the scheduler tidies away and renews.
 *
 * A part of the table in catalogue.c, included there alone.
 */
#ifndef UJOBS_STORE_CATALOGUE_RETENTION_H
#define UJOBS_STORE_CATALOGUE_RETENTION_H

	/* keeping_store */
	[UJOBS_SQL_KEEPING_OLDEST] = {
		"keeping_oldest",
		"/* ujobs:keeping_oldest */\n"
		"select expires_at\n"
		"  from ujobs_internal.job_history\n"
		" limit 1",
		0, {0}
	},
	[UJOBS_SQL_KEEPING_RENEW] = {
		"keeping_renew",
		"/* ujobs:keeping_renew */\n"
		"with kept as (\n"
		"    delete from only ujobs_internal.job_history\n"
		"     where expires_at > $1\n"
		"    returning " KEPT_COLUMNS ",\n"
		"              state, attempt, result, last_error, reason, started_at, finished_at, expires_at, steps, lease)\n"
		"insert into ujobs_internal.\"job_history\"\n"
		"       (" KEPT_COLUMNS ",\n"
		"       state, attempt, result, last_error, reason, started_at, finished_at, expires_at, steps, lease, slot)\n"
		"select " KEPT_COLUMNS ",\n"
		"       state, attempt, result, last_error, reason, started_at, finished_at, expires_at, steps, lease,\n"
		"       (extract(epoch from least(expires_at, $1 + interval '720 hours'))::bigint / 86400) % 32\n"
		"  from kept",
		1, {TIMESTAMPTZOID}
	},
	[UJOBS_SQL_KEEPING_EXPIRE] = {
		"keeping_expire",
		"/* ujobs:keeping_expire */\n"
		"delete from only ujobs_internal.job_history\n"
		" where expires_at < $1",
		1, {TIMESTAMPTZOID}
	},
	[UJOBS_SQL_KEEPING_EMPTY] = {
		"keeping_empty",
		"/* ujobs:keeping_empty */\n"
		"truncate ujobs_internal.job_history",
		0, {0}
	},
	[UJOBS_SQL_KEEPING_LEFT_STEPS] = {
		"keeping_left_steps",
		"/* ujobs:keeping_left_steps */\n"
		"with recursive owner as (\n"
		"    (select job_id\n"
		"       from ujobs_internal.job_step\n"
		"      order by job_id\n"
		"      limit 1)\n"
		"    union all\n"
		"    select (select s.job_id\n"
		"              from ujobs_internal.job_step s\n"
		"             where s.job_id > owner.job_id\n"
		"             order by s.job_id\n"
		"             limit 1)\n"
		"      from owner\n"
		"     where owner.job_id is not null\n"
		"), lost as materialized (\n"
		"    select job_id\n"
		"      from owner\n"
		"     where not exists (select from ujobs_internal.job j where j.id = owner.job_id)\n"
		"       and case when owner.job_id is not null\n"
		"                then not exists (select from ujobs_internal.job_history h where h.id = owner.job_id) end\n"
		")\n"
		"delete from ujobs_internal.job_step s\n"
		" using lost\n"
		" where s.job_id = lost.job_id",
		0, {0}
	},
	[UJOBS_SQL_KEEPING_OWNER_NAMES] = {
		"keeping_owner_names",
		"/* ujobs:keeping_owner_names */\n"
		"update ujobs_internal.definition d\n"
		"   set owner_name = r.rolname\n"
		"  from pg_authid r\n"
		" where r.oid = d.owner\n"
		"   and r.rolname <> d.owner_name",
		0, {0}
	},
	[UJOBS_SQL_KEEPING_GRANT_NAMES] = {
		"keeping_grant_names",
		"/* ujobs:keeping_grant_names */\n"
		"update ujobs_internal.definition_grant g\n"
		"   set role_name = r.rolname\n"
		"  from pg_authid r\n"
		" where r.oid = g.role\n"
		"   and r.rolname <> g.role_name",
		0, {0}
	},
	[UJOBS_SQL_KEEPING_TASK_NAMES] = {
		"keeping_task_names",
		"/* ujobs:keeping_task_names */\n"
		"update ujobs_internal.task t\n"
		"   set owner_name = r.rolname\n"
		"  from pg_authid r\n"
		" where r.oid = t.owner\n"
		"   and r.rolname <> t.owner_name",
		0, {0}
	},

#endif							/* UJOBS_STORE_CATALOGUE_RETENTION_H */
