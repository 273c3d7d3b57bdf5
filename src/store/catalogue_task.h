/*
 * catalogue_task.h: tasks and their watermarks.
 *
 * A part of the table in catalogue.c, included there alone.
 */
#ifndef UJOBS_STORE_CATALOGUE_TASK_H
#define UJOBS_STORE_CATALOGUE_TASK_H

#define TASK_COLUMNS \
	"select id, revision, name, owner, owner_name::text, cron, tz, enqueue, enqueue_fn, catch_up, max_catch_up,\n" \
	"       enabled, paused, description, watermark, broken\n" \
	"  from ujobs_internal.task\n"

	/* task_store */
	[UJOBS_SQL_TASK_BY_NAME] = {
		"task_by_name",
		"/* ujobs:task_by_name */\n"
		TASK_COLUMNS

		" where name = $1",
		1, {TEXTOID}
	},
	[UJOBS_SQL_TASK_LOCK] = {
		"task_lock",
		"/* ujobs:task_lock */\n"
		TASK_COLUMNS
		" where name = $1\n"
		"   for no key update",
		1, {TEXTOID}
	},
	[UJOBS_SQL_TASK_INSERT] = {
		"task_insert",
		"/* ujobs:task_insert */\n"
		"insert into ujobs_internal.task\n"
		"       (cron, tz, enqueue, enqueue_fn, catch_up, max_catch_up, enabled, paused, description, watermark,\n"
		"        name, owner, owner_name, created_at)\n"
		"values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)\n"
		"    on conflict (name) do nothing",
		14, {TEXTOID, TEXTOID, JSONBOID, TEXTOID, TEXTOID, INT4OID, BOOLOID, BOOLOID, TEXTOID, TIMESTAMPTZOID, TEXTOID, OIDOID, NAMEOID, TIMESTAMPTZOID}
	},
	[UJOBS_SQL_TASK_UPDATE] = {
		"task_update",
		"/* ujobs:task_update */\n"
		"update ujobs_internal.task\n"
		"   set cron = $1,\n"
		"       tz = $2,\n"
		"       enqueue = $3,\n"
		"       enqueue_fn = $4,\n"
		"       catch_up = $5,\n"
		"       max_catch_up = $6,\n"
		"       enabled = $7,\n"
		"       paused = $8,\n"
		"       description = $9,\n"
		"       watermark = $10,\n"
		"       broken = null,\n"
		"       revision = revision + 1\n"
		" where id = $11",
		11, {TEXTOID, TEXTOID, JSONBOID, TEXTOID, TEXTOID, INT4OID, BOOLOID, BOOLOID, TEXTOID, TIMESTAMPTZOID, INT4OID}
	},
	[UJOBS_SQL_TASK_SET_PAUSED] = {
		"task_set_paused",
		"/* ujobs:task_set_paused */\n"
		"update ujobs_internal.task\n"
		"   set paused = $2,\n"
		"       watermark = $3,\n"
		"       broken = null,\n"
		"       revision = revision + 1\n"
		" where id = $1",
		3, {INT4OID, BOOLOID, TIMESTAMPTZOID}
	},
	[UJOBS_SQL_TASK_DELETE] = {
		"task_delete",
		"/* ujobs:task_delete */\n"
		"delete from ujobs_internal.task\n"
		" where id = $1",
		1, {INT4OID}
	},
	[UJOBS_SQL_TASK_LIST] = {
		"task_list",
		"/* ujobs:task_list */\n"
		"select id, revision, watermark\n"
		"  from ujobs_internal.task\n"
		" where not paused",
		0, {0}
	},
	[UJOBS_SQL_TASK_FETCH] = {
		"task_fetch",
		"/* ujobs:task_fetch */\n"
		TASK_COLUMNS
		" where id = any ($1)\n"
		"   and not paused",
		1, {INT4ARRAYOID}
	},
	[UJOBS_SQL_TASK_ADVANCE] = {
		"task_advance",
		"/* ujobs:task_advance */\n"
		"with step as (\n"
		"    select *\n"
		"      from unnest($1, $2, $3, $4, $5, $6) with ordinality as u (id, revision, known, watermark, last, dropped, n)\n"
		"),\n"
		"held as (\n"
		"    select s.n, s.watermark, s.last, s.dropped, t.id\n"
		"      from step s\n"
		"      join ujobs_internal.task t\n"
		"        on t.id = s.id\n"
		"     where t.revision = s.revision\n"
		"       and t.watermark = s.known\n"
		"       and t.watermark < s.watermark\n"
		"       and not t.paused\n"
		"       for no key update of t skip locked\n"
		")\n"
		"update ujobs_internal.task t\n"
		"   set watermark = h.watermark,\n"
		"       last_occurrence = coalesce(h.last, t.last_occurrence),\n"
		"       last_fired_at = case when h.last is null then t.last_fired_at else $7 end,\n"
		"       dropped = t.dropped + h.dropped,\n"
		"       broken = null\n"
		"  from held h\n"
		" where t.id = h.id\n"
		"returning h.n",
		7, {INT4ARRAYOID, INT4ARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID, INT8ARRAYOID,
			TIMESTAMPTZOID}
	},
	[UJOBS_SQL_TASK_SET_BROKEN] = {
		"task_set_broken",
		"/* ujobs:task_set_broken */\n"
		"update ujobs_internal.task\n"
		"   set broken = $3\n"
		" where id = $1\n"
		"   and revision = $2\n"
		"   and broken is distinct from $3",
		3, {INT4OID, INT4OID, TEXTOID}
	},

#endif							/* UJOBS_STORE_CATALOGUE_TASK_H */
