/*
 * catalogue_sink.h: sinks, their secrets and states, the queues that use them.
 *
 * A part of the table in catalogue.c, included there alone.
 */
#ifndef UJOBS_STORE_CATALOGUE_SINK_H
#define UJOBS_STORE_CATALOGUE_SINK_H

#define SINK_COLUMNS \
	"select s.id, s.revision, s.name, s.kind, s.options, x.secret\n" \
	"  from ujobs_internal.sink s\n" \
	"  left join ujobs_internal.sink_secret x on x.sink_id = s.id\n"

	/* driver_store */
	[UJOBS_SQL_DRIVER_QUEUES] = {
		"driver_queues",
		"/* ujobs:driver_queues */\n"
		"select q.name, q.driver, s.id, s.name, s.options\n"
		"  from ujobs_internal.queue q\n"
		"  join ujobs_internal.sink s on s.id = q.sink_id\n"
		" where q.driver <> 'pg'",
		0, {0}
	},

	/* sink_store */
	[UJOBS_SQL_SINK_LIST] = {
		"sink_list",
		"/* ujobs:sink_list */\n"
		SINK_COLUMNS
		" order by s.id",
		0, {0}
	},
	[UJOBS_SQL_SINK_BY_NAME] = {
		"sink_by_name",
		"/* ujobs:sink_by_name */\n"
		SINK_COLUMNS
		" where s.name = $1",
		1, {TEXTOID}
	},
	[UJOBS_SQL_SINK_LOCK] = {
		"sink_lock",
		"/* ujobs:sink_lock */\n"
		SINK_COLUMNS
		" where s.name = $1\n"
		"   for update of s",
		1, {TEXTOID}
	},
	[UJOBS_SQL_SINK_ANY] = {
		"sink_any",
		"/* ujobs:sink_any */\n"
		"select\n"
		"  from ujobs_internal.sink\n"
		" limit 1",
		0, {0}
	},
	[UJOBS_SQL_SINK_INSERT] = {
		"sink_insert",
		"/* ujobs:sink_insert */\n"
		"with s as (\n"
		"    insert into ujobs_internal.sink (name, kind, options, created_at)\n"
		"    values ($1, $2, $3, $4)\n"
		"        on conflict (name) do nothing\n"
		"    returning id\n"
		")\n"
		"insert into ujobs_internal.sink_status (sink_id)\n"
		"select id\n"
		"  from s\n"
		"returning sink_id",
		4, {TEXTOID, TEXTOID, JSONBOID, TIMESTAMPTZOID}
	},
	[UJOBS_SQL_SINK_UPDATE] = {
		"sink_update",
		"/* ujobs:sink_update */\n"
		"update ujobs_internal.sink\n"
		"   set kind = $2, options = $3, revision = revision + 1\n"
		" where id = $1",
		3, {INT4OID, TEXTOID, JSONBOID}
	},
	[UJOBS_SQL_SINK_SET_SECRET] = {
		"sink_set_secret",
		"/* ujobs:sink_set_secret */\n"
		"with s as (\n"
		"    update ujobs_internal.sink\n"
		"       set revision = revision + 1\n"
		"     where id = $1\n"
		"    returning id\n"
		")\n"
		"insert into ujobs_internal.sink_secret (sink_id, secret)\n"
		"select id, $2\n"
		"  from s\n"
		"    on conflict (sink_id) do update\n"
		"   set secret = excluded.secret",
		2, {INT4OID, JSONBOID}
	},
	[UJOBS_SQL_SINK_HOLD_OUTBOX] = {
		"sink_hold_outbox",
		"/* ujobs:sink_hold_outbox */\n"
		"lock table ujobs_internal.outbox in share row exclusive mode",
		0, {0}
	},
	[UJOBS_SQL_SINK_USER] = {
		"sink_user",
		"/* ujobs:sink_user */\n"
		"select *\n"
		"  from ((select format('message %s of its outbox is not delivered', o.id)\n"
		"           from ujobs_internal.outbox o\n"
		"          where o.sink_id = $1\n"
		"          order by o.sink_id, o.id\n"
		"          limit 1)\n"
		"        union all\n"
		"        select format('jobs of queue \"%s\" go there', q.name)\n"
		"          from ujobs_internal.queue q\n"
		"         where q.sink_id = $1\n"
		"        union all\n"
		"        select format('jobs of queue \"%s\" are taken from there', c.queue)\n"
		"          from ujobs_internal.consumer c\n"
		"         where c.sink_id = $1\n"
		"           and c.enabled) u\n"
		" limit 1",
		1, {INT4OID}
	},
	[UJOBS_SQL_SINK_DELETE] = {
		"sink_delete",
		"/* ujobs:sink_delete */\n"
		"with a as (\n"
		"    delete from ujobs_internal.sink_secret\n"
		"     where sink_id = $1\n"
		"), b as (\n"
		"    delete from ujobs_internal.sink_status\n"
		"     where sink_id = $1\n"
		"), c as (\n"
		"    delete from ujobs_internal.consumer\n"
		"     where sink_id = $1\n"
		")\n"
		"delete from ujobs_internal.sink\n"
		" where id = $1",
		1, {INT4OID}
	},
	[UJOBS_SQL_SINK_SET_STATUS] = {
		"sink_set_status",
		"/* ujobs:sink_set_status */\n"
		"update ujobs_internal.sink_status\n"
		"   set last_error = $2,\n"
		"       failed_at = case when $2 is null then failed_at else $3 end,\n"
		"       next_try_at = case when $2 is null then null else $4 end\n"
		" where sink_id = $1\n"
		"   and (last_error is not null or $2 is not null)",
		4, {INT4OID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID}
	},
	[UJOBS_SQL_SINK_DRIVE_QUEUE] = {
		"sink_drive_queue",
		"/* ujobs:sink_drive_queue */\n"
		"insert into ujobs_internal.queue (name, driver, sink_id)\n"
		"values ($1, $2, $3)\n"
		"    on conflict (name) do update\n"
		"   set driver = excluded.driver, sink_id = excluded.sink_id",
		3, {TEXTOID, TEXTOID, INT4OID}
	},
	[UJOBS_SQL_CONSUMER_LIST] = {
		"consumer_list",
		"/* ujobs:consumer_list */\n"
		"select queue, sink_id, enabled\n"
		"  from ujobs_internal.consumer\n"
		" order by queue, sink_id",
		0, {0}
	},
	[UJOBS_SQL_CONSUMER_SET] = {
		"consumer_set",
		"/* ujobs:consumer_set */\n"
		"insert into ujobs_internal.consumer (queue, sink_id, enabled)\n"
		"values ($1, $2, $3)\n"
		"    on conflict (queue, sink_id) do update\n"
		"   set enabled = excluded.enabled",
		3, {TEXTOID, INT4OID, BOOLOID}
	},

#endif							/* UJOBS_STORE_CATALOGUE_SINK_H */
