/*
 * catalogue_wait.h: events, children, and the waits that they satisfy.
 *
 * A part of the table in catalogue.c, included there alone.
 */
#ifndef UJOBS_STORE_CATALOGUE_WAIT_H
#define UJOBS_STORE_CATALOGUE_WAIT_H

/*
 * Event e satisfies wait w at the instant `now`, its key put aside: that is
 * compared in one of two ways, each with an index of its own, where an OR of
 * them would use none.  OFFSET 0 keeps a look-up by key what it is, whatever
 * the planner thinks of the tables.
 */
#define EVENT_COUNTS(now) \
	"e.published_at >= w.since\n" \
	"   and e.published_at <= w.wake_at\n" \
	"   and e.expires_at > " now "\n" \
	"   and not exists (select\n" \
	"                     from ujobs_internal.job_step t\n" \
	"                    where t.job_id = w.job_id\n" \
	"                      and t.event_id = e.id\n" \
	"                   offset 0)\n"

#define EVENTS_OF_MATCH \
	"(select *\n" \
	"           from ujobs_internal.event\n" \
	"          where name = w.event\n" \
	"            and match = w.match\n" \
	"         offset 0) e\n"

#define EVENTS_OF_ANY \
	"(select *\n" \
	"           from ujobs_internal.event\n" \
	"          where name = w.event\n" \
	"            and w.match is null\n" \
	"            and published_at >= w.since\n" \
	"         offset 0) e\n"

/* Job c, for which w waits, is live no more. */
#define CHILD_ENDED \
	"not exists (select\n" \
	"                     from ujobs_internal.job c\n" \
	"                    where c.id = w.child_id\n" \
	"                   offset 0)"

/*
 * Job j is suspended at wait w.  One that was left behind, because a new
 * version of the handler does not come to it any more, wakes no job.
 */
#define SUSPENDED_AT \
	" cross join lateral (select id, definition_id, queue, tenant, priority, state, due_at, xmin as writer\n" \
	"                       from ujobs_internal.job\n" \
	"                      where id = w.job_id\n" \
	"                     offset 0) j\n"
#define IS_SUSPENDED_AT \
	"j.state = 's'\n" \
	"   and j.due_at = w.wake_at\n"

#define MATCHED "select j.id, j.definition_id, j.queue, j.priority, j.writer, j.tenant\n"

/* Wait w is over but for its deadline, whatever it waits for. */
#define IS_SATISFIED(now) \
	"(exists (select\n" \
	"           from " EVENTS_OF_MATCH \
	" where " EVENT_COUNTS(now) \
	"         offset 0)\n" \
	"    or exists (select\n" \
	"           from " EVENTS_OF_ANY \
	" where " EVENT_COUNTS(now) \
	"         offset 0)\n" \
	"    or w.child_id is not null and " CHILD_ENDED ")"

#define WAITS_FOR(event_key) \
	" cross join lateral (select *\n" \
	"                       from ujobs_internal.job_step w\n" \
	"                      where w.status = 'w'\n" \
	"                        and w.event is not null\n" \
	"                        and " event_key "\n" \
	"                     offset 0) w\n"

#define MATCHED_BY_EVENT(event_key) \
	MATCHED \
	"  from unnest($1) as u (id)\n" \
	" cross join lateral (select *\n" \
	"                       from ujobs_internal.event\n" \
	"                      where id = u.id\n" \
	"                     offset 0) e\n" \
	WAITS_FOR(event_key) \
	SUSPENDED_AT \
	" where " IS_SUSPENDED_AT \
	"   and " EVENT_COUNTS("$2")

#define WAITS_OF_JOBS \
	"  from unnest($1) as u (id)\n" \
	" cross join lateral (select *\n" \
	"                       from ujobs_internal.job_step\n" \
	"                      where job_id = u.id\n" \
	"                        and status = 'w'\n" \
	"                     offset 0) w\n"

	/* event_store */
	[UJOBS_SQL_EVENT_PUBLISH] = {
		"event_publish",
		"/* ujobs:event_publish */\n"
		"insert into ujobs_internal.event\n"
		"       (published_at, expires_at, publisher, name, match, payload)\n"
		"values ($1, $2, $3, $4, $5, $6)\n"
		"returning id",
		6, {TIMESTAMPTZOID, TIMESTAMPTZOID, OIDOID, TEXTOID, TEXTOID, JSONBOID}
	},
	[UJOBS_SQL_EVENT_FIND] = {
		"event_find",
		"/* ujobs:event_find */\n"
		"with w as materialized (\n"
		"    select job_id, event, match, since, wake_at\n"
		"      from ujobs_internal.job_step\n"
		"     where job_id = $1\n"
		"       and seq = $2\n"
		"       and event is not null),\n"
		"found as materialized (\n"
		"    select e.id\n"
		"      from w\n"
		"     cross join lateral " EVENTS_OF_MATCH
		" where " EVENT_COUNTS("$3")
		"     union all\n"
		"    select e.id\n"
		"      from w\n"
		"     cross join lateral " EVENTS_OF_ANY
		" where " EVENT_COUNTS("$3")
		")\n"
		"select id, payload\n"
		"  from ujobs_internal.event\n"
		" where id = (select min(found.id) from found)",
		3, {INT8OID, INT4OID, TIMESTAMPTZOID}
	},
	[UJOBS_SQL_EVENT_EXPIRE] = {
		"event_expire",
		"/* ujobs:event_expire */\n"
		"delete from ujobs_internal.event\n"
		" where id = any (array(select id\n"
		"                        from ujobs_internal.event\n"
		"                       where expires_at <= $1\n"
		"                       order by expires_at\n"
		"                       limit $2))",
		2, {TIMESTAMPTZOID, INT8OID}
	},

	/* match_store */
	[UJOBS_SQL_MATCH_EVENTS] = {
		"match_events",
		"/* ujobs:match_events */\n"
		MATCHED_BY_EVENT("w.event = e.name and w.match = e.match")
		" union all\n"
		MATCHED_BY_EVENT("w.event = e.name and w.match is null"),
		2, {INT8ARRAYOID, TIMESTAMPTZOID}
	},
	[UJOBS_SQL_MATCH_WAITS] = {
		"match_waits",
		"/* ujobs:match_waits */\n"
		MATCHED
		WAITS_OF_JOBS
		SUSPENDED_AT
		" where " IS_SUSPENDED_AT
		"   and " IS_SATISFIED("$2"),
		2, {INT8ARRAYOID, TIMESTAMPTZOID}
	},
	[UJOBS_SQL_MATCH_ENDED] = {
		"match_ended",
		"/* ujobs:match_ended */\n"
		MATCHED
		"  from unnest($1) as u (id)\n"
		" cross join lateral (select *\n"
		"                       from ujobs_internal.job_step\n"
		"                      where child_id = u.id\n"
		"                        and child_id is not null\n"
		"                        and status = 'w'\n"
		"                     offset 0) w\n"
		SUSPENDED_AT
		" where " IS_SUSPENDED_AT
		"   and " CHILD_ENDED,
		1, {INT8ARRAYOID}
	},
	[UJOBS_SQL_MATCH_ALL] = {
		"match_all",
		"/* ujobs:match_all */\n"
		MATCHED
		"  from (select *\n"
		"          from ujobs_internal.job_step\n"
		"         where status = 'w'\n"
		"        offset 0) w\n"
		SUSPENDED_AT
		" where " IS_SUSPENDED_AT
		"   and ($2 is null or age(j.writer) <= age($2))\n"
		"   and " IS_SATISFIED("$1"),
		2, {TIMESTAMPTZOID, XIDOID}
	},
	[UJOBS_SQL_MATCH_CHILDREN] = {
		"match_children",
		"/* ujobs:match_children */\n"
		"select w.child_id\n"
		WAITS_OF_JOBS
		" where w.child_id is not null",
		1, {INT8ARRAYOID}
	},
	[UJOBS_SQL_MATCH_ALL_CHILDREN] = {
		"match_all_children",
		"/* ujobs:match_all_children */\n"
		"select child_id\n"
		"  from ujobs_internal.job_step\n"
		" where status = 'w'\n"
		"   and child_id is not null",
		0, {0}
	},

	/* child_store */
	[UJOBS_SQL_CHILD_HOLD] = {
		"child_hold",
		"/* ujobs:child_hold */\n"
		"select id\n"
		"  from ujobs_internal.job\n"
		" where id = $1\n"
		"   for key share",
		1, {INT8OID}
	},
	[UJOBS_SQL_CHILD_LIVE] = {
		"child_live",
		"/* ujobs:child_live */\n"
		"select ujobs_internal.row_access($2, d.owner, d.owner_name, j.enqueued_role)\n"
		"  from ujobs_internal.job j\n"
		"  left join ujobs_internal.definition d on d.id = j.definition_id\n"
		" where j.id = $1",
		2, {INT8OID, OIDOID}
	},
	[UJOBS_SQL_CHILD_ENDED] = {
		"child_ended",
		"/* ujobs:child_ended */\n"
		"select ujobs_internal.row_access($2, d.owner, d.owner_name, h.enqueued_role),\n"
		"       h.state, h.result, h.last_error\n"
		"  from ujobs_internal.job_history h\n"
		"  left join ujobs_internal.definition d on d.id = h.definition_id\n"
		" where h.id = $1",
		2, {INT8OID, OIDOID}
	},

#endif							/* UJOBS_STORE_CATALOGUE_WAIT_H */
