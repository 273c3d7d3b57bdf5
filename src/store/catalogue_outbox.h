/*
 * catalogue_outbox.h: messages on their way out and in.
 *
 * A part of the table in catalogue.c, included there alone.
 */
#ifndef UJOBS_STORE_CATALOGUE_OUTBOX_H
#define UJOBS_STORE_CATALOGUE_OUTBOX_H

/* A row of the outbox as the relay reads it; what is not ready comes without its body. */
#define RELAY_COLUMNS \
	"o.id, case when o.parked then 'infinity' else o.due_at end, o.ready, o.attempts, o.is_job,\n" \
	"       case when o.ready then o.message_id::text end, case when o.ready then o.topic end,\n" \
	"       o.key, case when o.ready then o.headers end,\n" \
	"       case when o.ready then o.payload::text end\n"

/* Compressed, so a sum of it is no more than a rough bound. */
#define RELAY_BYTES "pg_column_size(o.payload)"

	/* outbox_store */
	[UJOBS_SQL_OUTBOX_WRITE] = {
		"outbox_write",
		"/* ujobs:outbox_write */\n"
		"insert into ujobs_internal.outbox\n"
		"       (created_at, due_at, sink_id, publisher, is_job, message_id, topic, key, headers, payload)\n"
		"select $2, $2, s.id, $3, $4, coalesce($5, gen_random_uuid()), $6, $7, $8, $9\n"
		"  from ujobs_internal.sink s\n"
		" where s.id = $1\n"
		"returning id",
		9, {INT4OID, TIMESTAMPTZOID, OIDOID, BOOLOID, UUIDOID, TEXTOID, TEXTOID, JSONBOID, JSONBOID}
	},
	[UJOBS_SQL_OUTBOX_WRITE_MANY] = {
		"outbox_write_many",
		"/* ujobs:outbox_write_many */\n"
		"insert into ujobs_internal.outbox\n"
		"       (created_at, due_at, sink_id, publisher, is_job, message_id, topic, key, headers, payload)\n"
		"select $2, $2, s.id, $3, $4, m.message_id, $6, $7, $8, m.payload\n"
		"  from ujobs_internal.sink s\n"
		" cross join lateral unnest($5, $9) as m (message_id, payload)\n"
		" where s.id = $1\n"
		"returning id",
		9, {INT4OID, TIMESTAMPTZOID, OIDOID, BOOLOID, UUIDARRAYOID, TEXTOID, TEXTOID, JSONBOID, JSONBARRAYOID}
	},
	[UJOBS_SQL_OUTBOX_DELIVERED] = {
		"outbox_delivered",
		"/* ujobs:outbox_delivered */\n"
		"with gone as (\n"
		"    delete from ujobs_internal.outbox\n"
		"     where id = any ($1)\n"
		"    returning *\n"
		"), counted as (\n"
		"    update ujobs_internal.sink_status s\n"
		"       set published = s.published + n.n\n"
		"      from (select sink_id, count(*) as n\n"
		"              from gone\n"
		"             group by sink_id) n\n"
		"     where s.sink_id = n.sink_id\n"
		")\n"
		"insert into ujobs_internal.outbox_published\n"
		"       (id, created_at, published_at, sink_id, attempts, publisher, is_job, message_id, topic, key, headers, payload)\n"
		"select id, created_at, $2, sink_id, attempts, publisher, is_job, message_id, topic, key, headers, payload\n"
		"  from gone",
		2, {INT8ARRAYOID, TIMESTAMPTZOID}
	},
	[UJOBS_SQL_OUTBOX_FAILED] = {
		"outbox_failed",
		"/* ujobs:outbox_failed */\n"
		"update ujobs_internal.outbox o\n"
		"   set attempts = f.attempts, due_at = f.due_at, parked = f.parked,\n"
		"       last_error = jsonb_build_object('message', f.error)\n"
		"  from unnest($1, $2, $3, $4, $5) as f (id, attempts, due_at, parked, error)\n"
		" where o.id = f.id\n"
		"   and o.attempts = f.attempts - 1\n"
		"   and not o.parked",
		5, {INT8ARRAYOID, INT4ARRAYOID, TIMESTAMPTZARRAYOID, BOOLARRAYOID, TEXTARRAYOID}
	},
	[UJOBS_SQL_OUTBOX_RETRY] = {
		"outbox_retry",
		"/* ujobs:outbox_retry */\n"
		"update ujobs_internal.outbox\n"
		"   set attempts = 0, due_at = $2, parked = false\n"
		" where id = $1",
		2, {INT8OID, TIMESTAMPTZOID}
	},
	[UJOBS_SQL_OUTBOX_SKIP] = {
		"outbox_skip",
		"/* ujobs:outbox_skip */\n"
		"delete from ujobs_internal.outbox\n"
		" where id = $1",
		1, {INT8OID}
	},
	[UJOBS_SQL_OUTBOX_WAS_PUBLISHED] = {
		"outbox_was_published",
		"/* ujobs:outbox_was_published */\n"
		"select\n"
		"  from ujobs_internal.outbox_published\n"
		" where id = $1",
		1, {INT8OID}
	},
	[UJOBS_SQL_OUTBOX_EXPIRE] = {
		"outbox_expire",
		"/* ujobs:outbox_expire */\n"
		"delete from ujobs_internal.outbox_published\n"
		" where id = any (array(select id\n"
		"                         from ujobs_internal.outbox_published\n"
		"                        where published_at <= $1\n"
		"                        order by published_at\n"
		"                        limit $2))",
		2, {TIMESTAMPTZOID, INT8OID}
	},

	/* inbox_store */
	[UJOBS_SQL_INBOX_KNOWN] = {
		"inbox_known",
		"/* ujobs:inbox_known */\n"
		"select m.n\n"
		"  from unnest($1) with ordinality as m (id, n)\n"
		" where exists (select from ujobs_internal.inbox i where i.message_id = m.id)",
		1, {TEXTARRAYOID}
	},
	[UJOBS_SQL_INBOX_INSERT] = {
		"inbox_insert",
		"/* ujobs:inbox_insert */\n"
		"insert into ujobs_internal.inbox\n"
		"       (taken_at, job_id, sink_id, parked, message_id, queue, message, error)\n"
		"select $1, m.job_id, m.sink_id, m.job_id is null, m.message_id, m.queue, m.message, m.error\n"
		"  from unnest($2, $3, $4, $5, $6, $7) as m (job_id, sink_id, message_id, queue, message, error)",
		7, {TIMESTAMPTZOID, INT8ARRAYOID, INT4ARRAYOID, TEXTARRAYOID, TEXTARRAYOID, JSONBARRAYOID, JSONBARRAYOID}
	},
	[UJOBS_SQL_INBOX_PARKED] = {
		"inbox_parked",
		"/* ujobs:inbox_parked */\n"
		"select message_id, queue, sink_id, message\n"
		"  from ujobs_internal.inbox i\n"
		" where parked\n"
		"   and message_id > $1\n"
		"   and exists (select\n"
		"                 from ujobs_internal.definition d\n"
		"                where d.name = i.message ->> 'name'\n"
		"                  and d.dropped_at is null)\n"
		" order by message_id\n"
		" limit $2\n"
		"   for update skip locked",
		2, {TEXTOID, INT8OID}
	},
	[UJOBS_SQL_INBOX_SETTLE] = {
		"inbox_settle",
		"/* ujobs:inbox_settle */\n"
		"update ujobs_internal.inbox\n"
		"   set job_id = $2, parked = $2 is null, message = case when $2 is null then message end, error = $3\n"
		" where message_id = $1",
		3, {TEXTOID, INT8OID, JSONBOID}
	},
	[UJOBS_SQL_INBOX_SKIP] = {
		"inbox_skip",
		"/* ujobs:inbox_skip */\n"
		"update ujobs_internal.inbox\n"
		"   set parked = false, message = null, error = null, taken_at = $2\n"
		" where message_id = $1\n"
		"   and parked",
		2, {TEXTOID, TIMESTAMPTZOID}
	},

	[UJOBS_SQL_INBOX_EXPIRE] = {
		"inbox_expire",
		"/* ujobs:inbox_expire */\n"
		"delete from ujobs_internal.inbox\n"
		" where message_id = any (array(select message_id\n"
		"                                 from ujobs_internal.inbox\n"
		"                                where taken_at <= $1\n"
		"                                  and not parked\n"
		"                                order by taken_at\n"
		"                                limit $2))",
		2, {TIMESTAMPTZOID, INT8OID}
	},

	/* relay_store */
	[UJOBS_SQL_RELAY_READ] = {
		"relay_read",
		"/* ujobs:relay_read */\n"
		"select " RELAY_COLUMNS
		"  from (select o.*, sum(o.bytes) over (order by o.id rows unbounded preceding) - o.bytes as bytes_before\n"
		"          from (select o.*,\n"
		"                       " RELAY_BYTES " as bytes,\n"
		"                       o.due_at <= $4\n"
		"                       and not o.parked\n"
		"                       and (o.key is null\n"
		"                            or not exists (select\n"
		"                                             from ujobs_internal.outbox e\n"
		"                                            where e.sink_id = o.sink_id\n"
		"                                              and e.key = o.key\n"
		"                                              and e.id + 0 >= $3\n"
		"                                              and e.id + 0 < o.id)) as ready\n"
		"                  from ujobs_internal.outbox o\n"
		"                 where o.sink_id = $1\n"
		"                   and o.id > $2\n"
		"                 order by o.sink_id, o.id\n"
		"                 limit $5) o) o\n"
		" where o.bytes_before < $6\n"
		" order by o.id",
		6, {INT4OID, INT8OID, INT8OID, TIMESTAMPTZOID, INT8OID, INT8OID}
	},
	[UJOBS_SQL_RELAY_READ_KEYS] = {
		"relay_read_keys",
		"/* ujobs:relay_read_keys */\n"
		"select " RELAY_COLUMNS
		"  from (select o.*, sum(o.bytes) over (order by o.id rows unbounded preceding) - o.bytes < $4 as ready\n"
		"          from (select o.*, " RELAY_BYTES " as bytes\n"
		"                  from unnest($5) as k (key)\n"
		"                 cross join lateral (select *\n"
		"                                       from ujobs_internal.outbox o\n"
		"                                      where o.sink_id = $1\n"
		"                                        and o.key = k.key\n"
		"                                        and o.id + 0 >= $2\n"
		"                                      order by o.id + 0\n"
		"                                      limit 1) o\n"
		"                 where o.due_at <= $3\n"
		"                   and not o.parked) o) o\n"
		" order by o.id",
		5, {INT4OID, INT8OID, TIMESTAMPTZOID, INT8OID, TEXTARRAYOID}
	},
	[UJOBS_SQL_RELAY_ROOM] = {
		"relay_room",
		"/* ujobs:relay_room */\n"
		"select $2 - count(*)\n"
		"  from (select\n"
		"          from ujobs_internal.definition d\n"
		"         cross join lateral (select\n"
		"                               from ujobs_internal.job j\n"
		"                              where j.definition_id = d.id\n"
		"                                and j.queue = $1\n"
		"                                and j.due_at <= $3\n"
		"                              limit $2) j\n"
		"         limit $2) r\n"
		"having not exists (select\n"
		"                     from ujobs_internal.queue q\n"
		"                    where q.name = $1\n"
		"                      and q.paused)",
		3, {TEXTOID, INT8OID, TIMESTAMPTZOID}
	},

#endif							/* UJOBS_STORE_CATALOGUE_OUTBOX_H */
