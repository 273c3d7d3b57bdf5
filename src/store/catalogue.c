/*
 * catalogue.c: the statements, in the order of catalogue.h.
 *
 * Schema-qualified, lower-case keywords, one clause a line.  They run as the
 * extension's owner with search_path pinned to pg_catalog.
 */
#include "postgres.h"

#include "catalog/pg_type.h"

#include "lib/stringinfo.h"
#include "utils/memutils.h"

#include "model/step.h"
#include "store/catalogue.h"

#define DEFINITION_COLUMNS \
	"select id, name, kind, handler, owner, owner_name, idempotency_key, tenant, input_schema, retry,\n" \
	"       queue, priority, concurrency, timeout, step_timeout, batch, retention, dropped_at is not null\n" \
	"  from ujobs_internal.definition\n"

#define TASK_COLUMNS \
	"select id, revision, name, owner, owner_name::text, cron, tz, enqueue, enqueue_fn, catch_up, max_catch_up,\n" \
	"       enabled, paused, description, watermark, broken\n" \
	"  from ujobs_internal.task\n"

#define SINK_COLUMNS \
	"select s.id, s.revision, s.name, s.kind, s.options, x.secret\n" \
	"  from ujobs_internal.sink s\n" \
	"  left join ujobs_internal.sink_secret x on x.sink_id = s.id\n"
/* A row of the outbox as the relay reads it; what is not ready comes without its body. */
#define RELAY_COLUMNS \
	"o.id, case when o.parked then 'infinity' else o.due_at end, o.ready, o.attempts, o.is_job,\n" \
	"       case when o.ready then o.message_id::text end, case when o.ready then o.topic end,\n" \
	"       o.key, case when o.ready then o.headers end,\n" \
	"       case when o.ready then o.payload::text end\n"

/* Compressed, so a sum of it is no more than a rough bound. */
#define RELAY_BYTES "pg_column_size(o.payload)"

/* What a history row takes over from the live row; the rest differs by outcome. */
#define KEPT_COLUMNS \
	"id, run_at, created_at, definition_id, enqueued_role, max_attempts, priority, run_id, queue, tenant, key,\n" \
	"       input, enqueued_by, traceparent, events_since"

#define GONE_COLUMNS \
	"j.id, j.run_at, j.created_at, j.definition_id, j.enqueued_role, j.max_attempts, j.priority, j.run_id, j.queue,\n" \
	"              j.tenant, j.key, j.input, j.enqueued_by, j.traceparent, j.events_since"

/*
 * The steps of jobs that end: "weighed" is "gone" with the bytes of their
 * steps (NULL: none), whose rows go unless they must stay rows.  A job without
 * steps costs one look into the index.  Rows are read as of the statement's
 * snapshot, so whoever did not write them himself locks the job before.
 */
#define WEIGHED_STEPS \
	"weighed as materialized (\n" \
	"    select gone.*,\n" \
	"           (select sum(ujobs_internal.step_size(s))\n" \
	"              from ujobs_internal.job_step s\n" \
	"             where s.job_id = gone.id) as bytes\n" \
	"      from gone),\n" \
	"unstepped as (\n" \
	"    delete from ujobs_internal.job_step s\n" \
	"     using weighed\n" \
	"     where s.job_id = weighed.id\n"

#define FOLD_FITS "weighed.bytes <= " CppAsString2(UJOBS_FOLD_MAX)

#define FOLDED_STEPS \
	"       case when " FOLD_FITS " then\n" \
	"           (select jsonb_agg(ujobs_internal.fold_step(s) order by s.seq)\n" \
	"              from ujobs_internal.job_step s\n" \
	"             where s.job_id = weighed.id) end\n"

/* The trace of a job as JSON; v is the row as a user may see it, access what row_access says. */
#define TRACE_OF \
	"select jsonb_build_object(\n" \
	"           'id', v.id, 'name', v.name, 'queue', v.queue, 'state', v.state,\n" \
	"           'attempt', v.attempt, 'maxAttempts', v.max_attempts,\n" \
	"           'idempotencyKey', case when v.access > 1 then v.key end,\n" \
	"           'runId', v.run_id,\n" \
	"           'runAt', ujobs_internal.iso(v.run_at),\n" \
	"           'createdAt', ujobs_internal.iso(v.created_at),\n" \
	"           'finishedAt', ujobs_internal.iso(v.finished_at),\n" \
	"           'lastError', case when v.access > 1 then v.last_error end,\n" \
	"           'tenantId', nullif(v.tenant, ''),\n" \
	"           'traceparent', v.traceparent, 'enqueuedBy', v.enqueued_by,\n" \
	"           'result', case when v.access > 1 then v.result end,\n" \
	"           'steps', ujobs_internal.step_trace(v.id, v.steps, v.access > 1),\n" \
	"           'retryDelaysMs', coalesce(to_jsonb(ujobs.retry_schedule(v.retry)), '[]'::jsonb))\n"

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
 * version of the handler does not come to it any more, wakes nobody.
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

/* What the dispatcher keeps of a claimed job. */
#define LEASED "select j.id, j.definition_id, j.queue, j.tenant, j.priority, j.due_at, j.state\n"
#define LEASED_JOB \
	" cross join lateral (select *\n" \
	"                       from ujobs_internal.job\n" \
	"                      where id = l.job_id\n" \
	"                     offset 0) j\n"

#define WAITS_OF_JOBS \
	"  from unnest($1) as u (id)\n" \
	" cross join lateral (select *\n" \
	"                       from ujobs_internal.job_step\n" \
	"                      where job_id = u.id\n" \
	"                        and status = 'w'\n" \
	"                     offset 0) w\n"

static UjobsStatement statements[UJOBS_SQL_COUNT] = {
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

	/* dispatch_store */
	[UJOBS_SQL_DISPATCH_NEXT_LANE] = {
		"dispatch_next_lane",
		"/* ujobs:dispatch_next_lane */\n"
		"select definition_id, queue\n"
		"  from ujobs_internal.job\n"
		" where (definition_id, queue) > ($1, $2)\n"
		" order by definition_id, queue\n"
		" limit 1",
		2, {INT4OID, TEXTOID}
	},
	[UJOBS_SQL_DISPATCH_NEXT_PRIORITY] = {
		"dispatch_next_priority",
		"/* ujobs:dispatch_next_priority */\n"
		"select priority\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1\n"
		"   and queue = $2\n"
		"   and priority > $3\n"
		" order by priority\n"
		" limit 1",
		3, {INT4OID, TEXTOID, INT4OID}
	},
	[UJOBS_SQL_DISPATCH_DUE] = {
		"dispatch_due",
		"/* ujobs:dispatch_due */\n"
		"select id, due_at\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1\n"
		"   and queue = $2\n"
		"   and priority = $3\n"
		"   and (due_at, id) > ($4, $5)\n"
		"   and due_at <= $6\n"
		"   and state <> 'l'\n"
		"   and tenant = ''\n"
		" order by due_at, id\n"
		" limit $7",
		7, {INT4OID, TEXTOID, INT2OID, TIMESTAMPTZOID, INT8OID, TIMESTAMPTZOID, INT8OID}
	},
	[UJOBS_SQL_DISPATCH_FUTURE] = {
		"dispatch_future",
		"/* ujobs:dispatch_future */\n"
		"select id, due_at\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1\n"
		"   and queue = $2\n"
		"   and priority = $3\n"
		"   and due_at > $4\n"
		"   and due_at < 'infinity'\n"
		"   and state <> 'l'\n"
		"   and tenant = ''\n"
		" order by due_at, id\n"
		" limit $5",
		5, {INT4OID, TEXTOID, INT2OID, TIMESTAMPTZOID, INT8OID}
	},
	[UJOBS_SQL_DISPATCH_HAS_PLAIN] = {
		"dispatch_has_plain",
		"/* ujobs:dispatch_has_plain */\n"
		"select 1\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1\n"
		"   and tenant = ''\n"
		" limit 1",
		1, {INT4OID}
	},
	[UJOBS_SQL_DISPATCH_TENANTS] = {
		"dispatch_tenants",
		"/* ujobs:dispatch_tenants */\n"
		"with recursive t as (\n"
		"    (select tenant\n"
		"       from ujobs_internal.job\n"
		"      where definition_id = $1\n"
		"        and queue = $2\n"
		"        and tenant <> ''\n"
		"      order by tenant\n"
		"      limit 1)\n"
		"    union all\n"
		"    select (select j.tenant\n"
		"              from ujobs_internal.job j\n"
		"             where j.definition_id = $1\n"
		"               and j.queue = $2\n"
		"               and j.tenant <> ''\n"
		"               and j.tenant > t.tenant\n"
		"             order by j.tenant\n"
		"             limit 1)\n"
		"      from t\n"
		"     where t.tenant is not null\n"
		")\n"
		"select tenant\n"
		"  from t\n"
		" where tenant is not null\n"
		" limit $3",
		3, {INT4OID, TEXTOID, INT8OID}
	},
	[UJOBS_SQL_DISPATCH_TENANT_ROWS] = {
		"dispatch_tenant_rows",
		"/* ujobs:dispatch_tenant_rows */\n"
		"select id, due_at, priority\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1\n"
		"   and queue = $2\n"
		"   and tenant = $3\n"
		"   and tenant <> ''\n"
		"   and state <> 'l'\n"
		" order by priority, due_at, id\n"
		" limit $4",
		4, {INT4OID, TEXTOID, TEXTOID, INT8OID}
	},
	[UJOBS_SQL_DISPATCH_TENANT_NEXT_PRIORITY] = {
		"dispatch_tenant_next_priority",
		"/* ujobs:dispatch_tenant_next_priority */\n"
		"select priority\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1\n"
		"   and queue = $2\n"
		"   and priority > $3\n"
		"   and tenant = $4\n"
		"   and tenant <> ''\n"
		" order by priority\n"
		" limit 1",
		4, {INT4OID, TEXTOID, INT4OID, TEXTOID}
	},
	[UJOBS_SQL_DISPATCH_TENANT_DUE] = {
		"dispatch_tenant_due",
		"/* ujobs:dispatch_tenant_due */\n"
		"select id, due_at\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1\n"
		"   and queue = $2\n"
		"   and priority = $3\n"
		"   and (due_at, id) > ($4, $5)\n"
		"   and due_at <= $6\n"
		"   and tenant = $8\n"
		"   and tenant <> ''\n"
		"   and state <> 'l'\n"
		" order by due_at, id\n"
		" limit $7",
		8, {INT4OID, TEXTOID, INT2OID, TIMESTAMPTZOID, INT8OID, TIMESTAMPTZOID, INT8OID, TEXTOID}
	},
	[UJOBS_SQL_DISPATCH_TENANT_FUTURE] = {
		"dispatch_tenant_future",
		"/* ujobs:dispatch_tenant_future */\n"
		"select id, due_at\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1\n"
		"   and queue = $2\n"
		"   and priority = $3\n"
		"   and due_at > $4\n"
		"   and due_at < 'infinity'\n"
		"   and tenant = $6\n"
		"   and tenant <> ''\n"
		"   and state <> 'l'\n"
		" order by due_at, id\n"
		" limit $5",
		6, {INT4OID, TEXTOID, INT2OID, TIMESTAMPTZOID, INT8OID, TEXTOID}
	},
	[UJOBS_SQL_DISPATCH_TENANT_OF] = {
		"dispatch_tenant_of",
		"/* ujobs:dispatch_tenant_of */\n"
		"select tenant\n"
		"  from ujobs_internal.job\n"
		" where id = $1",
		1, {INT8OID}
	},
	[UJOBS_SQL_DISPATCH_QUEUES] = {
		"dispatch_queues",
		"/* ujobs:dispatch_queues */\n"
		"select name, paused, concurrency, per_tenant, rate_per_tenant, rate_window\n"
		"  from ujobs_internal.queue",
		0, {0}
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

	/* history_store */
	[UJOBS_SQL_HISTORY_FIND] = {
		"history_find",
		"/* ujobs:history_find */\n"
		"select 1\n"
		"  from ujobs_internal.job_history\n"
		" where id = $1",
		1, {INT8OID}
	},

	/* history_store, live rows too: $1 is the job, $2 the role that asks */
	[UJOBS_SQL_INSPECT_LIVE] = {
		"inspect_live",
		"/* ujobs:inspect_live */\n"
		TRACE_OF
		"  from (select j.id, d.name, d.retry, j.queue, (s.now).state, (s.now).attempt, j.max_attempts,\n"
		"               j.key, j.run_id, j.created_at, j.last_error, j.tenant, j.traceparent, j.enqueued_by,\n"
		"               case j.state when 'p' then j.due_at else coalesce(j.run_at, j.created_at) end as run_at,\n"
		"               null::timestamptz as finished_at, null::jsonb as result, null::jsonb as steps,\n"
		"               ujobs_internal.row_access($2, d.owner, d.owner_name, j.enqueued_role) as access\n"
		"          from ujobs_internal.job j\n"
		"          left join ujobs_internal.definition d on d.id = j.definition_id\n"
		"         cross join lateral (select ujobs_internal.job_now(j.state, j.due_at, j.id, j.attempt, j.started_at) as now\n"
		"                             offset 0) s\n"
		"         where j.id = $1) v\n"
		" where v.access > 0",
		2, {INT8OID, OIDOID}
	},
	[UJOBS_SQL_INSPECT_HISTORY] = {
		"inspect_history",
		"/* ujobs:inspect_history */\n"
		TRACE_OF
		"  from (select h.id, d.name, d.retry, h.queue, ujobs_internal.end_state(h.state) as state, h.attempt,\n"
		"               h.max_attempts, h.key, h.run_id, h.created_at, h.last_error, h.tenant, h.traceparent,\n"
		"               h.enqueued_by, coalesce(h.run_at, h.created_at) as run_at, h.finished_at, h.result, h.steps,\n"
		"               ujobs_internal.row_access($2, d.owner, d.owner_name, h.enqueued_role) as access\n"
		"          from ujobs_internal.job_history h\n"
		"          left join ujobs_internal.definition d on d.id = h.definition_id\n"
		"         where h.id = $1) v\n"
		" where v.access > 0",
		2, {INT8OID, OIDOID}
	},
	[UJOBS_SQL_WHY_LIVE] = {
		"why_live",
		"/* ujobs:why_live */\n"
		"select ujobs_internal.row_access($2, d.owner, d.owner_name, j.enqueued_role),\n"
		"       j.state, coalesce(l.visible_at, j.due_at), j.attempt, j.max_attempts, j.definition_id, j.queue, j.reason,\n"
		"       j.last_error ->> 'message',\n"
		"       d.name, d.kind, d.concurrency, d.dropped_at is not null, coalesce(q.paused, false),\n"
		"       s.name, s.status, s.wake_at, s.event, s.match, s.child_id,\n"
		"       j.tenant, q.concurrency, q.per_tenant, q.rate_per_tenant, q.rate_window::text\n"
		"  from ujobs_internal.job j\n"
		"  left join ujobs_internal.definition d on d.id = j.definition_id\n"
		"  left join ujobs_internal.queue q on q.name = j.queue\n"
		"  left join ujobs_internal.lease l on l.job_id = j.id and j.state = 'l'\n"
		"  left join lateral (select *\n"
		"                       from ujobs_internal.job_step s\n"
		"                      where s.job_id = j.id\n"
		"                        and s.status in ('s', 'w')\n"
		"                      order by s.seq desc\n"
		"                      limit 1) s on j.state = 's'\n"
		" where j.id = $1",
		2, {INT8OID, OIDOID}
	},
	[UJOBS_SQL_WHY_HISTORY] = {
		"why_history",
		"/* ujobs:why_history */\n"
		"select ujobs_internal.row_access($2, d.owner, d.owner_name, h.enqueued_role),\n"
		"       h.state, h.finished_at, h.attempt, h.max_attempts, h.reason,\n"
		"       h.last_error ->> 'message'\n"
		"  from ujobs_internal.job_history h\n"
		"  left join ujobs_internal.definition d on d.id = h.definition_id\n"
		" where h.id = $1",
		2, {INT8OID, OIDOID}
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
};

static UjobsStatement *by_slot[UJOBS_SQL_COUNT][UJOBS_HISTORY_SLOTS];

UjobsStatement *
ujobs_statement(UjobsStatementId id)
{
	Assert(id >= 0 && id < UJOBS_SQL_COUNT);
	return &statements[id];
}

/* The text with every " ujobs_internal.job_history" made that of the partition. */
static char *
text_for_slot(const char *sql, int slot)
{
	static const char parent[] = "ujobs_internal.job_history";
	StringInfoData text;
	const char *rest = sql;
	const char *hit;

	initStringInfo(&text);
	while ((hit = strstr(rest, parent)) != NULL)
	{
		hit += strlen(parent);
		appendBinaryStringInfo(&text, rest, hit - rest);
		appendStringInfo(&text, "_%d", slot);
		rest = hit;
	}
	appendStringInfoString(&text, rest);
	return text.data;
}

UjobsStatement *
ujobs_statement_for_slot(UjobsStatementId id, int slot)
{
	UjobsStatement *copy;
	MemoryContext old;

	Assert(slot >= 0 && slot < UJOBS_HISTORY_SLOTS);
	if (by_slot[id][slot] != NULL)
		return by_slot[id][slot];
	old = MemoryContextSwitchTo(TopMemoryContext);
	copy = palloc(sizeof(UjobsStatement));
	*copy = statements[id];
	copy->sql = text_for_slot(copy->sql, slot);
	copy->plan = NULL;
	MemoryContextSwitchTo(old);
	by_slot[id][slot] = copy;
	return copy;
}
