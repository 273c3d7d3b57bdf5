/*
 * catalogue_define.h: definitions: to look one up, to define, to drop.
 *
 * A part of the table in catalogue.c, included there alone.
 */
#ifndef UJOBS_STORE_CATALOGUE_DEFINE_H
#define UJOBS_STORE_CATALOGUE_DEFINE_H

#define DEFINITION_COLUMNS \
	"select id, name, kind, handler, owner, owner_name, idempotency_key, tenant, input_schema, retry,\n" \
	"       queue, priority, concurrency, timeout, step_timeout, batch, retention, dropped_at is not null\n" \
	"  from ujobs_internal.definition\n"

	/* definition_store */
	[UJOBS_SQL_DEFINITION_BY_NAME] = {
		"definition_by_name",
		"/* ujobs:definition_by_name */\n"
		DEFINITION_COLUMNS
		" where name = $1\n"
		"   and dropped_at is null",
		1, {TEXTOID}
	},
	[UJOBS_SQL_DEFINITION_BY_ID] = {
		"definition_by_id",
		"/* ujobs:definition_by_id */\n"
		DEFINITION_COLUMNS
		" where id = $1",
		1, {INT4OID}
	},
	[UJOBS_SQL_DEFINITION_GRANTS] = {
		"definition_grants",
		"/* ujobs:definition_grants */\n"
		"select privilege, role, role_name\n"
		"  from ujobs_internal.definition_grant\n"
		" where definition_id = $1",
		1, {INT4OID}
	},

	/* define_store */
	[UJOBS_SQL_DEFINE_LOCK] = {
		"define_lock",
		"/* ujobs:define_lock */\n"
		"select id, kind, handler, owner, owner_name, idempotency_key, tenant, input_schema, retry,\n"
		"       queue, priority, concurrency, timeout, step_timeout, batch, retention, description\n"
		"  from ujobs_internal.definition\n"
		" where name = $1\n"
		"   and dropped_at is null\n"
		"   for no key update",
		1, {TEXTOID}
	},
	[UJOBS_SQL_DEFINE_INSERT] = {
		"define_insert",
		"/* ujobs:define_insert */\n"
		"insert into ujobs_internal.definition\n"
		"       (kind, handler, idempotency_key, tenant, input_schema, retry, queue, priority, concurrency,\n"
		"        timeout, step_timeout, batch, retention, description, name, owner, owner_name, created_at)\n"
		"values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)\n"
		"    on conflict (name) where dropped_at is null do nothing",
		18, {TEXTOID, TEXTOID, TEXTOID, TEXTOID, JSONBOID, JSONBOID, TEXTOID, INT2OID, INT4OID,
			INTERVALOID, INTERVALOID, INT4OID, INTERVALOID, TEXTOID, TEXTOID, OIDOID, NAMEOID, TIMESTAMPTZOID}
	},
	[UJOBS_SQL_DEFINE_UPDATE] = {
		"define_update",
		"/* ujobs:define_update */\n"
		"update ujobs_internal.definition\n"
		"   set kind = $1,\n"
		"       handler = $2,\n"
		"       idempotency_key = $3,\n"
		"       tenant = $4,\n"
		"       input_schema = $5,\n"
		"       retry = $6,\n"
		"       queue = $7,\n"
		"       priority = $8,\n"
		"       concurrency = $9,\n"
		"       timeout = $10,\n"
		"       step_timeout = $11,\n"
		"       batch = $12,\n"
		"       retention = $13,\n"
		"       description = $14\n"
		" where id = $15",
		15, {TEXTOID, TEXTOID, TEXTOID, TEXTOID, JSONBOID, JSONBOID, TEXTOID, INT2OID, INT4OID,
			INTERVALOID, INTERVALOID, INT4OID, INTERVALOID, TEXTOID, INT4OID}
	},
	[UJOBS_SQL_DEFINE_SET_OWNER] = {
		"define_set_owner",
		"/* ujobs:define_set_owner */\n"
		"update ujobs_internal.definition\n"
		"   set owner = $2,\n"
		"       owner_name = $3\n"
		" where id = $1",
		3, {INT4OID, OIDOID, NAMEOID}
	},
	[UJOBS_SQL_DEFINE_AWAKEN] = {
		"define_awaken",
		"/* ujobs:define_awaken */\n"
		"update ujobs_internal.job\n"
		"   set due_at = $2\n"
		" where definition_id = $1\n"
		"   and state = 's'\n"
		"   and reason like 'UJ025:%'\n"
		"   and due_at > $2",
		2, {INT4OID, TIMESTAMPTZOID}
	},
	[UJOBS_SQL_DEFINE_GRANT] = {
		"define_grant",
		"/* ujobs:define_grant */\n"
		"insert into ujobs_internal.definition_grant\n"
		"       (definition_id, privilege, role, role_name)\n"
		"values ($1, $2, $3, $4)\n"
		"    on conflict (definition_id, privilege, role) do update\n"
		"   set role_name = excluded.role_name",
		4, {INT4OID, CHAROID, OIDOID, NAMEOID}
	},
	[UJOBS_SQL_DEFINE_REVOKE] = {
		"define_revoke",
		"/* ujobs:define_revoke */\n"
		"delete from ujobs_internal.definition_grant\n"
		" where definition_id = $1\n"
		"   and privilege = $2\n"
		"   and (role = $3 or role_name = $4)",
		4, {INT4OID, CHAROID, OIDOID, NAMEOID}
	},
	[UJOBS_SQL_DEFINE_DROP] = {
		"define_drop",
		"/* ujobs:define_drop */\n"
		"update ujobs_internal.definition\n"
		"   set dropped_at = $2\n"
		" where id = $1",
		2, {INT4OID, TIMESTAMPTZOID}
	},
	[UJOBS_SQL_DEFINE_DROP_GRANTS] = {
		"define_drop_grants",
		"/* ujobs:define_drop_grants */\n"
		"delete from ujobs_internal.definition_grant\n"
		" where definition_id = $1",
		1, {INT4OID}
	},
	[UJOBS_SQL_DEFINE_COUNT_LIVE] = {
		"define_count_live",
		"/* ujobs:define_count_live */\n"
		"select count(*)\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1",
		1, {INT4OID}
	},
	[UJOBS_SQL_DEFINE_LOCK_ALL] = {
		"define_lock_all",
		"/* ujobs:define_lock_all */\n"
		"select count(*)\n"
		"  from (select id\n"
		"          from ujobs_internal.job\n"
		"         where definition_id = $1\n"
		"           for update) j",
		1, {INT4OID}
	},
	[UJOBS_SQL_DEFINE_CANCEL_ALL] = {
		"define_cancel_all",
		"/* ujobs:define_cancel_all */\n"
		"with gone as (\n"
		"    delete from ujobs_internal.job j\n"
		"     where definition_id = $1\n"
		"    returning " GONE_COLUMNS ",\n"
		"              j.attempt, j.last_error, j.started_at, j.state as was),\n"
		"leases as (\n"
		"    delete from ujobs_internal.lease l\n"
		"     using gone\n"
		"     where l.job_id = gone.id\n"
		"       and gone.was = 'l'),\n"
		WEIGHED_STEPS
		"       and (" FOLD_FITS " or not $2)),\n"
		"kept as (\n"
		"    insert into ujobs_internal.job_history\n"
		"           (" KEPT_COLUMNS ",\n"
		"           attempt, last_error, started_at, state, slot, finished_at, expires_at, reason, steps)\n"
		"    select " KEPT_COLUMNS ",\n"
		"           attempt, last_error, started_at, 'c', $3, $4, $5, $6,\n"
		FOLDED_STEPS
		"      from weighed\n"
		"     where $2\n"
		"        or exists (select\n"
		"                     from ujobs_internal.job_step w\n"
		"                    where w.child_id = weighed.id\n"
		"                      and w.child_id is not null\n"
		"                      and w.status = 'w'\n"
		"                   offset 0))\n"
		"select id, queue\n"
		"  from gone",
		6, {INT4OID, BOOLOID, INT2OID, TIMESTAMPTZOID, TIMESTAMPTZOID, TEXTOID}
	},
	[UJOBS_SQL_DEFINE_CANCEL_RUNNING] = {
		"define_cancel_running",
		"/* ujobs:define_cancel_running */\n"
		"update ujobs_internal.job_history\n"
		"   set attempt = $3,\n"
		"       started_at = coalesce(started_at, $4)\n"
		" where id = $1\n"
		"   and slot = $2",
		4, {INT8OID, INT2OID, INT4OID, TIMESTAMPTZOID}
	},

#endif							/* UJOBS_STORE_CATALOGUE_DEFINE_H */
