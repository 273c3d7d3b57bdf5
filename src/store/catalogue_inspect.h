/*
 * catalogue_inspect.h: one job as its users see it.
 *
 * A part of the table in catalogue.c, included there alone.
 */
#ifndef UJOBS_STORE_CATALOGUE_INSPECT_H
#define UJOBS_STORE_CATALOGUE_INSPECT_H

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

#endif							/* UJOBS_STORE_CATALOGUE_INSPECT_H */
