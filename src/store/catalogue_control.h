/*
 * catalogue_control.h: what people do to jobs, queues and the store.
 *
 * A part of the table in catalogue.c, included there alone.
 */
#ifndef UJOBS_STORE_CATALOGUE_CONTROL_H
#define UJOBS_STORE_CATALOGUE_CONTROL_H

	/* control_store */
	[UJOBS_SQL_CONTROL_LIVE] = {
		"control_live",
		"/* ujobs:control_live */\n"
		"select xmin, state, definition_id, enqueued_role, due_at\n"
		"  from ujobs_internal.job\n"
		" where id = $1",
		1, {INT8OID}
	},
	[UJOBS_SQL_CONTROL_HISTORY] = {
		"control_history",
		"/* ujobs:control_history */\n"
		"select xmin, state, definition_id, enqueued_role\n"
		"  from ujobs_internal.job_history\n"
		" where id = $1",
		1, {INT8OID}
	},
	[UJOBS_SQL_CONTROL_LOCK] = {
		"control_lock",
		"/* ujobs:control_lock */\n"
		"select 1\n"
		"  from ujobs_internal.job\n"
		" where id = $1\n"
		"   for update",
		1, {INT8OID}
	},
	[UJOBS_SQL_CONTROL_CANCEL] = {
		"control_cancel",
		"/* ujobs:control_cancel */\n"
		"with gone as (\n"
		"    delete from ujobs_internal.job j\n"
		"     where id = $1\n"
		"    returning " GONE_COLUMNS ",\n"
		"              j.attempt, j.last_error, j.started_at),\n"
		WEIGHED_STEPS
		"       and " FOLD_FITS ")\n"
		"insert into ujobs_internal.job_history\n"
		"       (" KEPT_COLUMNS ",\n"
		"       state, last_error, slot, reason, attempt, started_at, finished_at, expires_at, steps)\n"
		"select " KEPT_COLUMNS ",\n"
		"       'c', last_error, $2, $3, greatest(attempt, $4), coalesce($5, started_at), $6, $7,\n"
		FOLDED_STEPS
		"  from weighed\n"
		"returning queue",
		7, {INT8OID, INT2OID, TEXTOID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID}
	},
	[UJOBS_SQL_CONTROL_FORGET] = {
		"control_forget",
		"/* ujobs:control_forget */\n"
		"with unstepped as (\n"
		"    delete from ujobs_internal.job_step\n"
		"     where job_id = $1)\n"
		"delete from ujobs_internal.job_history\n"
		" where id = $1",
		1, {INT8OID}
	},
	[UJOBS_SQL_CONTROL_RESTART] = {
		"control_restart",
		"/* ujobs:control_restart */\n"
		"update ujobs_internal.job\n"
		"   set state = 'p', due_at = $2, run_at = $2, attempt = 0, revision = revision + 1,\n"
		"       started_at = null, last_error = null, reason = null\n"
		" where id = $1\n"
		"   and state <> 'l'\n"
		"returning queue, priority, tenant",
		2, {INT8OID, TIMESTAMPTZOID}
	},
	[UJOBS_SQL_CONTROL_REVIVE] = {
		"control_revive",
		"/* ujobs:control_revive */\n"
		"with gone as (\n"
		"    delete from ujobs_internal.job_history\n"
		"     where id = $1\n"
		"    returning *\n"
		"), back as (\n"
		"    insert into ujobs_internal.job\n"
		"           (id, due_at, run_at, created_at, definition_id, revision, enqueued_role, priority, attempt,\n"
		"            max_attempts, state, run_id, queue, tenant, key, input, enqueued_by, traceparent, events_since)\n"
		"    select id, $2, $2, created_at, definition_id,\n"
		"           (pg_current_xact_id()::text::numeric % 2000000000)::int + 1,\n"
		"           enqueued_role, priority, 0,\n"
		"           max_attempts, 'p', run_id, queue, tenant, key, input, enqueued_by, traceparent, events_since\n"
		"      from gone\n"
		"    on conflict (definition_id, tenant, key) do nothing\n"
		"    returning id\n"
		"), stepped as (\n"
		"    insert into ujobs_internal.job_step\n"
		"    select s.*\n"
		"      from gone\n"
		"     cross join lateral ujobs_internal.unfold(gone.id, gone.steps) s\n"
		"     where gone.steps is not null\n"
		"        on conflict (job_id, seq) do nothing\n"
		")\n"
		"select gone.queue, gone.priority, gone.tenant, gone.key, back.id\n"
		"  from gone\n"
		"  left join back on true",
		2, {INT8OID, TIMESTAMPTZOID}
	},
	[UJOBS_SQL_CONTROL_DROP_STEPS] = {
		"control_drop_steps",
		"/* ujobs:control_drop_steps */\n"
		"with dropped as (\n"
		"    delete from ujobs_internal.job_step s\n"
		"     where s.job_id = $1\n"
		"       and s.seq >= (select min(f.seq)\n"
		"                       from ujobs_internal.job_step f\n"
		"                      where f.job_id = $1\n"
		"                        and f.name = $2)\n"
		"    returning event\n"
		")\n"
		"select count(*), count(event)\n"
		"  from dropped",
		2, {INT8OID, TEXTOID}
	},
	[UJOBS_SQL_CONTROL_EVENTS_SINCE] = {
		"control_events_since",
		"/* ujobs:control_events_since */\n"
		"update ujobs_internal.job\n"
		"   set events_since = $2\n"
		" where id = $1",
		2, {INT8OID, TIMESTAMPTZOID}
	},
	[UJOBS_SQL_CONTROL_KEY_HOLDER] = {
		"control_key_holder",
		"/* ujobs:control_key_holder */\n"
		"select id\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1\n"
		"   and tenant = $2\n"
		"   and key = $3",
		3, {INT4OID, TEXTOID, TEXTOID}
	},
	[UJOBS_SQL_CONTROL_PAUSE_QUEUE] = {
		"control_pause_queue",
		"/* ujobs:control_pause_queue */\n"
		"insert into ujobs_internal.queue as q (name, paused)\n"
		"values ($1, true)\n"
		"on conflict (name) do update\n"
		"   set paused = true\n"
		" where not q.paused",
		1, {TEXTOID}
	},
	[UJOBS_SQL_CONTROL_RESUME_QUEUE] = {
		"control_resume_queue",
		"/* ujobs:control_resume_queue */\n"
		"update ujobs_internal.queue\n"
		"   set paused = false\n"
		" where name = $1\n"
		"   and paused",
		1, {TEXTOID}
	},
	[UJOBS_SQL_CONTROL_SET_QUEUE] = {
		"control_set_queue",
		"/* ujobs:control_set_queue */\n"
		"insert into ujobs_internal.queue as q (name, concurrency, per_tenant, rate_per_tenant, rate_window)\n"
		"values ($1, $2, $3, $4, $5)\n"
		"on conflict (name) do update\n"
		"   set concurrency = excluded.concurrency, per_tenant = excluded.per_tenant,\n"
		"       rate_per_tenant = excluded.rate_per_tenant, rate_window = excluded.rate_window\n"
		" where (q.concurrency, q.per_tenant, q.rate_per_tenant, q.rate_window)\n"
		"       is distinct from\n"
		"       (excluded.concurrency, excluded.per_tenant, excluded.rate_per_tenant, excluded.rate_window)",
		5, {TEXTOID, INT4OID, INT4OID, INT4OID, INTERVALOID}
	},
	[UJOBS_SQL_CONTROL_PURGE] = {
		"control_purge",
		"/* ujobs:control_purge */\n"
		"with gone as (\n"
		"    delete from ujobs_internal.job_history\n"
		"     where finished_at < $1\n"
		"       and ($2 is null or queue = $2)\n"
		"    returning id\n"
		"), unstepped as (\n"
		"    delete from ujobs_internal.job_step s\n"
		"     using gone\n"
		"     where s.job_id = gone.id\n"
		")\n"
		"select count(*)\n"
		"  from gone",
		2, {TIMESTAMPTZOID, TEXTOID}
	},
	[UJOBS_SQL_CONTROL_ORIGIN] = {
		"control_origin",
		"/* ujobs:control_origin */\n"
		"select database, inserted_by, xmin\n"
		"  from ujobs_internal.origin",
		0
	},
	[UJOBS_SQL_CONTROL_WRITE_HOME] = {
		"control_write_home",
		"/* ujobs:control_write_home */\n"
		"insert into ujobs_internal.origin as o (database, inserted_by, stopped)\n"
		"values ($1, $2, $3)\n"
		"on conflict (one) do update\n"
		"   set database = $1, inserted_by = $2, stopped = $3,\n"
		"       uuid = case when $4 then gen_random_uuid() else o.uuid end",
		4, {OIDOID, XID8OID, BOOLOID, BOOLOID}
	},
	[UJOBS_SQL_CONTROL_STOP_STRANGE] = {
		"control_stop_strange",
		"/* ujobs:control_stop_strange */\n"
		"update ujobs_internal.origin\n"
		"   set stopped = true, inserted_by = coalesce($1, inserted_by)",
		1, {XID8OID}
	},
	[UJOBS_SQL_CONTROL_RESOLVE_OWNERS] = {
		"control_resolve_owners",
		"/* ujobs:control_resolve_owners */\n"
		"update ujobs_internal.definition as d\n"
		"   set owner = coalesce((select r.oid from pg_roles as r where r.rolname = d.owner_name), 0)\n"
		" where not exists (select from pg_roles as r where r.oid = d.owner and r.rolname = d.owner_name)\n"
		"   and exists (select from pg_roles as r where r.oid = d.owner or r.rolname = d.owner_name)",
		0
	},
	[UJOBS_SQL_CONTROL_RESOLVE_GRANTS] = {
		"control_resolve_grants",
		"/* ujobs:control_resolve_grants */\n"
		"with gone as (\n"
		"    delete from ujobs_internal.definition_grant as g\n"
		"     where g.role <> 0\n"
		"       and not exists (select from pg_roles as r where r.oid = g.role and r.rolname = g.role_name)\n"
		"       and exists (select from pg_roles as r where r.oid = g.role or r.rolname = g.role_name)\n"
		"    returning *\n"
		")\n"
		"insert into ujobs_internal.definition_grant (definition_id, privilege, role, role_name)\n"
		"select gone.definition_id, gone.privilege, r.oid, gone.role_name\n"
		"  from gone\n"
		"  join pg_roles as r on r.rolname = gone.role_name\n"
		" order by gone.definition_id, gone.privilege, r.oid\n"
		"    on conflict do nothing",
		0
	},

	/* home_store */
	[UJOBS_SQL_HOME_READ] = {
		"home_read",
		"/* ujobs:home_read */\n"
		"select database,\n"
		"       xmin::text::int8 = inserted_by::text::int8 & 4294967295,\n"
		"       stopped\n"
		"  from ujobs_internal.origin",
		0, {0}
	},
	[UJOBS_SQL_HOME_WRITE] = {
		"home_write",
		"/* ujobs:home_write */\n"
		"insert into ujobs_internal.origin (database, inserted_by)\n"
		"values ($1, $2)\n"
		"    on conflict do nothing",
		2, {OIDOID, XID8OID}
	},

	[UJOBS_SQL_HOME_UUID] = {
		"home_uuid",
		"/* ujobs:home_uuid */\n"
		"select uuid::text\n"
		"  from ujobs_internal.origin",
		0, {0}
	},

#endif							/* UJOBS_STORE_CATALOGUE_CONTROL_H */
