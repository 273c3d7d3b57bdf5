/*
 * catalogue_enqueue.h: jobs on their way in, and who holds their keys.
 *
 * A part of the table in catalogue.c, included there alone.
 */
#ifndef UJOBS_STORE_CATALOGUE_ENQUEUE_H
#define UJOBS_STORE_CATALOGUE_ENQUEUE_H

	/* enqueue_store */
	[UJOBS_SQL_ENQUEUE_INSERT] = {
		"enqueue_insert",
		"/* ujobs:enqueue_insert */\n"
		"insert into ujobs_internal.job\n"
		"       (run_at, due_at, created_at, definition_id, enqueued_role, priority, max_attempts, queue,\n"
		"       enqueued_by, traceparent, tenant, key, run_id, input)\n"
		"values (nullif($1, $2), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)\n"
		"    on conflict (definition_id, tenant, key) do nothing\n"
		"returning id",
		13, {TIMESTAMPTZOID, TIMESTAMPTZOID, INT4OID, OIDOID, INT2OID, INT4OID, TEXTOID, TEXTOID, TEXTOID,
		TEXTOID, TEXTOID, UUIDOID, JSONBOID}
	},
	[UJOBS_SQL_ENQUEUE_INSERT_MANY] = {
		"enqueue_insert_many",
		"/* ujobs:enqueue_insert_many */\n"
		"insert into ujobs_internal.job\n"
		"       (run_at, due_at, created_at, definition_id, enqueued_role, priority, max_attempts, queue,\n"
		"       enqueued_by, traceparent, tenant, key, run_id, input, id)\n"
		"select nullif($1, $2), $1, $2, $3, $4, $5, $6, $7, $8, $9, u.tenant, u.key, u.run_id, u.input, u.id\n"
		"  from unnest($10, $11, $12, $13, $14) with ordinality as u (tenant, key, run_id, input, id, n)\n"
		" order by u.n\n"
		"    on conflict (definition_id, tenant, key) do nothing\n"
		"returning id",
		14, {TIMESTAMPTZOID, TIMESTAMPTZOID, INT4OID, OIDOID, INT2OID, INT4OID, TEXTOID, TEXTOID, TEXTOID,
		TEXTARRAYOID, TEXTARRAYOID, UUIDARRAYOID, JSONBARRAYOID, INT8ARRAYOID}
	},
	[UJOBS_SQL_ENQUEUE_HOLDER] = {
		"enqueue_holder",
		"/* ujobs:enqueue_holder */\n"
		"select id, run_id\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1\n"
		"   and tenant = $2\n"
		"   and key = $3",
		3, {INT4OID, TEXTOID, TEXTOID}
	},
	[UJOBS_SQL_ENQUEUE_HOLDERS] = {
		"enqueue_holders",
		"/* ujobs:enqueue_holders */\n"
		"select j.id, j.run_id, u.n\n"
		"  from unnest($2, $3) with ordinality as u (tenant, key, n)\n"
		"  join ujobs_internal.job j\n"
		"    on j.definition_id = $1\n"
		"   and j.tenant = u.tenant\n"
		"   and j.key = u.key\n"
		" order by u.n",
		3, {INT4OID, TEXTARRAYOID, TEXTARRAYOID}
	},
	[UJOBS_SQL_ENQUEUE_HOLDER_LOCK] = {
		"enqueue_holder_lock",
		"/* ujobs:enqueue_holder_lock */\n"
		"select id, run_id, state = 'p' and attempt = 0 and started_at is null, queue\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1\n"
		"   and tenant = $2\n"
		"   and key = $3\n"
		"   for update",
		3, {INT4OID, TEXTOID, TEXTOID}
	},
	[UJOBS_SQL_ENQUEUE_REPLACE] = {
		"enqueue_replace",
		"/* ujobs:enqueue_replace */\n"
		"update ujobs_internal.job\n"
		"   set input = $2,\n"
		"       run_at = $3,\n"
		"       due_at = $3,\n"
		"       priority = $4,\n"
		"       traceparent = $5,\n"
		"       revision = revision + 1\n"
		" where id = $1",
		5, {INT8OID, JSONBOID, TIMESTAMPTZOID, INT2OID, TEXTOID}
	},

#endif							/* UJOBS_STORE_CATALOGUE_ENQUEUE_H */
