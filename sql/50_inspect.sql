-- Looking in.  The views read the tables as the extension's owner and ask
-- row_access what the invoker may see: 0 nothing, 1 the row without payload
-- (pg_monitor), 2 everything (superusers, members of the definition's owner,
-- the role that enqueued).  Counts are for everybody.

-- What C knows -------------------------------------------------------------

create function ujobs_internal.now() returns timestamptz
    language c stable parallel restricted as 'MODULE_PATHNAME', 'ujobs_sql_now';

create function ujobs_internal.row_access(owner oid, owner_name name, enqueued_role oid) returns int
    language c stable parallel restricted as 'MODULE_PATHNAME', 'ujobs_sql_row_access';

create function ujobs_internal.row_access(role oid, owner oid, owner_name name, enqueued_role oid) returns int
    language c stable parallel restricted as 'MODULE_PATHNAME', 'ujobs_sql_row_access';

-- The state that users read; the one rule for live rows.
create function ujobs_internal.job_state(state "char", due_at timestamptz, id bigint) returns text
    language c stable strict parallel restricted as 'MODULE_PATHNAME', 'ujobs_sql_job_state';

-- The same, with all that goes with it, from one look at shared memory.
create type ujobs_internal.job_now as (state text, attempt int, started_at timestamptz, worker_pid int);
create function ujobs_internal.job_now(state "char", due_at timestamptz, id bigint, attempt int, started_at timestamptz)
    returns ujobs_internal.job_now
    language c stable parallel restricted as 'MODULE_PATHNAME', 'ujobs_sql_job_now';

create function ujobs_internal.end_state(state "char") returns text
    language c immutable strict parallel safe as 'MODULE_PATHNAME', 'ujobs_sql_end_state';

create function ujobs_internal.running(out job_id bigint, out pid int, out started_at timestamptz) returns setof record
    language c volatile parallel restricted as 'MODULE_PATHNAME', 'ujobs_sql_running';

create function ujobs_internal.workers(out pid int, out kind text, out database text, out role text,
    out state text, out job_id bigint, out since timestamptz, out jobs_done bigint,
    out memory_bytes bigint) returns setof record
    language c volatile parallel restricted as 'MODULE_PATHNAME', 'ujobs_sql_workers';

create function ujobs_internal.counters(out name text, out queue text, out label text, out value float8)
    returns setof record
    language c volatile parallel restricted as 'MODULE_PATHNAME', 'ujobs_sql_counters';

create function ujobs_internal.error_codes(out sqlstate text, out name text, out meaning text, out fix text,
    out terminal boolean) returns setof record
    language c immutable parallel safe as 'MODULE_PATHNAME', 'ujobs_sql_error_codes';

create function ujobs_internal.history_slot(expires_at timestamptz) returns smallint
    language c immutable strict parallel safe as 'MODULE_PATHNAME', 'ujobs_sql_history_slot';

-- An instant and a duration as JSON carries them; NULL for what is not finite.
create function ujobs_internal.iso(t timestamptz) returns text
    language sql stable parallel safe
    return case when pg_catalog.isfinite(t)
                then pg_catalog.to_char(t at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') end;

create function ujobs_internal.ms(d interval) returns bigint
    language sql immutable parallel safe
    return pg_catalog.floor(extract(epoch from d) * 1000)::bigint;

-- Jobs ---------------------------------------------------------------------

-- Barriers here too: the planner flattens a UNION ALL through the barrier of
-- the view above it, and a user's function would see the rows of others.
create view ujobs_internal.live_row with (security_barrier) as
select j.id, d.name, j.queue, (s.now).state, j.priority, (s.now).attempt, j.max_attempts,
       case j.state when 'p' then j.due_at else coalesce(j.run_at, j.created_at) end as run_at,
       nullif(j.tenant_id, '') as tenant_id,
       case when s.access > 1 then j.idempotency_key end as idempotency_key,
       j.run_id,
       case when s.access > 1 then j.input end as input,
       null::jsonb as result,
       case when s.access > 1 then j.last_error end as last_error,
       j.created_at, (s.now).started_at, null::timestamptz as finished_at, (s.now).worker_pid,
       j.enqueued_by, j.traceparent
  from ujobs_internal.job j
  left join ujobs_internal.definition d on d.id = j.definition_id
 cross join lateral (select ujobs_internal.row_access(d.owner, d.owner_name, j.enqueued_role) as access,
                            ujobs_internal.job_now(j.state, j.due_at, j.id, j.attempt, j.started_at) as now
                     offset 0) s  -- offset: each is called once a row
 where s.access > 0;

create view ujobs_internal.finished_row with (security_barrier) as
select h.id, d.name, h.queue, ujobs_internal.end_state(h.state) as state, h.priority, h.attempt, h.max_attempts,
       coalesce(h.run_at, h.created_at) as run_at,
       nullif(h.tenant_id, '') as tenant_id,
       case when s.access > 1 then h.idempotency_key end as idempotency_key,
       h.run_id,
       case when s.access > 1 then h.input end as input,
       case when s.access > 1 then h.result end as result,
       case when s.access > 1 then h.last_error end as last_error,
       h.created_at, h.started_at, h.finished_at, null::int as worker_pid,
       h.enqueued_by, h.traceparent,
       h.state as stored
  from ujobs_internal.job_history h
  left join ujobs_internal.definition d on d.id = h.definition_id
 cross join lateral (select ujobs_internal.row_access(d.owner, d.owner_name, h.enqueued_role) as access
                     offset 0) s
 where s.access > 0;

create view ujobs.jobs with (security_barrier) as
select * from ujobs_internal.live_row
union all
select id, name, queue, state, priority, attempt, max_attempts, run_at, tenant_id, idempotency_key, run_id,
       input, result, last_error, created_at, started_at, finished_at, worker_pid, enqueued_by, traceparent
  from ujobs_internal.finished_row;
comment on view ujobs.jobs is
'Live jobs and kept history. You see the jobs of definitions whose owner you are a member of and those you enqueued; members of pg_monitor see all rows, with NULL for input, result, last_error and idempotency_key. For a job that waits, run_at is when it may start next; a retry moves it.';

create view ujobs.dead_letters with (security_barrier) as
select id, name, queue, state, priority, attempt, max_attempts, run_at, tenant_id, idempotency_key, run_id,
       input, result, last_error, created_at, started_at, finished_at, worker_pid, enqueued_by, traceparent,
       finished_at as failed_at
  from ujobs_internal.finished_row
 where stored = 'x';
comment on view ujobs.dead_letters is
'Dead jobs: attempts exhausted or a terminal error. Columns as in ujobs.jobs, and failed_at. ujobs.retry(id) starts one again.';

create view ujobs.definitions with (security_barrier) as
select d.name, d.kind, d.handler, d.owner_name as owner, d.idempotency_key, d.tenant, d.input_schema, d.retry,
       d.queue, d.priority, d.concurrency, d.timeout, d.step_timeout, d.batch, d.retention, d.description,
       d.created_at
  from ujobs_internal.definition d
 where d.dropped_at is null
   and ujobs_internal.row_access(d.owner, d.owner_name, null) > 0;
comment on view ujobs.definitions is
'Job definitions whose owner you are a member of; members of pg_monitor and superusers see all.';

create view ujobs.workers with (security_barrier) as
select * from ujobs_internal.workers();
comment on view ujobs.workers is
'The engine''s processes in the whole cluster. kind is launcher, dispatcher, scheduler, executor or relay. An engine that is held up shows as a dispatcher whose pid is NULL and whose state says why, such as "paused: restored from another database". memory_bytes is what a dispatcher or executor has allocated in memory of its own, told about once a second by those that work; NULL for other kinds and before the first time.';

create view ujobs.error_codes with (security_barrier) as
select * from ujobs_internal.error_codes();
comment on view ujobs.error_codes is
'Every error of class UJ: SQLSTATE, name, what it means, what to do, and whether it dead-letters a running job at once.';

-- Counts -------------------------------------------------------------------

-- What one lane (definition, queue, priority) of the dispatch index holds.
create type ujobs_internal.lane_count as (
    definition_id int, queue text, priority smallint,
    due bigint, later bigint, leased bigint, suspended bigint, oldest_due timestamptz, deep boolean);

-- A page sample is this many pages at most; lanes are read to this depth.
create function ujobs_internal.lane_counts(at timestamptz, running bigint[])
returns ujobs_internal.lane_count[]
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    sample_pages constant float8 := 1000;
    budget bigint := 100000;
    depth bigint;
    lane record;
    one ujobs_internal.lane_count;
    lanes ujobs_internal.lane_count[] := '{}';
    seen bigint;
    percent float8;
begin
    for lane in
        with recursive l as (
            (select j.definition_id, j.queue, j.priority
               from ujobs_internal.job j
              order by j.definition_id, j.queue, j.priority
              limit 1)
            union all
            select n.* from l cross join lateral (
                select j.definition_id, j.queue, j.priority
                  from ujobs_internal.job j
                 where (j.definition_id, j.queue, j.priority) > (l.definition_id, l.queue, l.priority)
                 order by j.definition_id, j.queue, j.priority
                 limit 1) n)
        select * from l
    loop
        depth := greatest(least(budget, 20000), 200);
        select lane.definition_id, lane.queue, lane.priority,
               count(*) filter (where r.state = 'p' and r.due_at <= at),
               count(*) filter (where r.state = 'p' and r.due_at > at),
               count(*) filter (where r.state = 'l'),
               count(*) filter (where r.state = 's'),
               min(r.due_at) filter (where r.state = 'p' and r.due_at <= at and r.id <> all (running)),
               false
          into one
          from (select j.state, j.due_at, j.id
                  from ujobs_internal.job j
                 where j.definition_id = lane.definition_id
                   and j.queue = lane.queue
                   and j.priority = lane.priority
                 order by j.due_at, j.id
                 limit depth + 1) r;
        seen := one.due + one.later + one.leased + one.suspended;
        one.deep := seen > depth;
        budget := budget - seen;
        lanes := lanes || one;
    end loop;
    if not exists (select from unnest(lanes) l where l.deep) then
        return lanes;
    end if;

    percent := least(100, 100 * sample_pages /
                     (pg_relation_size('ujobs_internal.job') / current_setting('block_size')::float8));
    return (
        with sample as (
            select j.definition_id, j.queue, j.priority,
                   count(*) filter (where j.state = 'p' and j.due_at <= at) as due,
                   count(*) filter (where j.state = 'p' and j.due_at > at) as later,
                   count(*) filter (where j.state = 'l') as leased,
                   count(*) filter (where j.state = 's') as suspended
              from ujobs_internal.job j tablesample system (percent)
             group by 1, 2, 3)
        select array_agg(row(l.definition_id, l.queue, l.priority,
                             case when l.deep then greatest(l.due, round(s.due * 100 / percent)) else l.due end,
                             case when l.deep then greatest(l.later, round(s.later * 100 / percent)) else l.later end,
                             case when l.deep then greatest(l.leased, round(s.leased * 100 / percent)) else l.leased end,
                             case when l.deep then greatest(l.suspended, round(s.suspended * 100 / percent)) else l.suspended end,
                             l.oldest_due, l.deep)::ujobs_internal.lane_count)
          from unnest(lanes) l
          left join sample s using (definition_id, queue, priority));
end
$$;

-- Dead letters by queue: exact up to 20000 of them, sampled beyond.
create function ujobs_internal.dead_counts(out queue text, out dead bigint) returns setof record
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    most constant bigint := 20000;
    sample_pages constant float8 := 1000;
    percent float8;
begin
    if (select count(*) <= most
          from (select from ujobs_internal.job_history h where h.state = 'x' limit most + 1) r) then
        return query
            select h.queue, count(*) from ujobs_internal.job_history h where h.state = 'x' group by 1;
        return;
    end if;
    select least(100, 100 * sample_pages / (sum(pg_relation_size(i.inhrelid)) / current_setting('block_size')::float8))
      into percent
      from pg_inherits i
     where i.inhparent = 'ujobs_internal.job_history'::regclass;
    return query
        select h.queue, round(count(*) * 100 / percent)::bigint
          from ujobs_internal.job_history h tablesample system (percent)
         where h.state = 'x'
         group by 1;
end
$$;

-- Runs as the extension's owner: counts are for everybody.
create function ujobs_internal.queue_counts(
    out queue text, out ready bigint, out delayed bigint, out running bigint, out suspended bigint, out dead bigint,
    out oldest_ready timestamptz, out paused boolean, out limits jsonb, out driver text)
returns setof record
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    clock constant timestamptz := ujobs_internal.now();
    running_ids constant bigint[] := array(select r.job_id from ujobs_internal.running() r);
    lanes constant ujobs_internal.lane_count[] := ujobs_internal.lane_counts(clock, running_ids);
begin
    return query
        with lane as (
            select l.queue, sum(l.due) as due, sum(l.later) as later, sum(l.leased) as leased,
                   sum(l.suspended) as suspended, min(l.oldest_due) as oldest_due
              from unnest(lanes) l
             group by 1),
        running as (  -- rows that an executor runs are counted in the lanes as if they waited
            select j.queue,
                   count(*) filter (where j.state = 'p' and j.due_at <= clock) as due,
                   count(*) filter (where j.state = 'p' and j.due_at > clock) as later,
                   count(*) filter (where j.state = 's') as suspended
              from ujobs_internal.job j
             where j.id = any (running_ids)
             group by 1),
        gone as (
            select * from ujobs_internal.dead_counts()),
        name as (
            select l.queue from lane l
            union select g.queue from gone g
            union select q.name from ujobs_internal.queue q
            union select d.queue from ujobs_internal.definition d where d.dropped_at is null)
        select n.queue::text,
               greatest(coalesce(l.due, 0) - coalesce(r.due, 0), 0)::bigint,
               greatest(coalesce(l.later, 0) - coalesce(r.later, 0), 0)::bigint,
               (coalesce(l.leased, 0) + coalesce(r.due + r.later + r.suspended, 0))::bigint,
               greatest(coalesce(l.suspended, 0) - coalesce(r.suspended, 0), 0)::bigint,
               coalesce(g.dead, 0),
               l.oldest_due,
               coalesce(q.paused, false),
               case when num_nonnulls(q.concurrency, q.per_tenant, q.rate_per_tenant) > 0 then
                   jsonb_build_object('concurrency', q.concurrency, 'perTenant', q.per_tenant,
                                      'ratePerTenant', q.rate_per_tenant,
                                      'rateWindowMs', ujobs_internal.ms(q.rate_window)) end,
               coalesce(q.driver, 'pg')
          from name n
          left join lane l on l.queue = n.queue
          left join running r on r.queue = n.queue
          left join gone g on g.queue = n.queue
          left join ujobs_internal.queue q on q.name = n.queue
         order by n.queue collate "C";
end
$$;

create view ujobs.queues with (security_barrier) as
select * from ujobs_internal.queue_counts();
comment on view ujobs.queues is
'Every queue that has jobs, a definition, limits or a pause, with its counts (see ujobs.stats for how exact they are), the instant since which its oldest ready job waits, its limits (NULL: none), and its driver: pg, or the kind of broker that jobs enqueued here go to.';

create function ujobs.stats(out queue text, out ready bigint, out delayed bigint, out running bigint,
    out suspended bigint, out dead bigint, out oldest_ready_ms bigint) returns setof record
    language sql stable
begin atomic
    select q.queue, q.ready, q.delayed, q.running, q.suspended, q.dead,
           case when pg_catalog.isfinite(q.oldest_ready)
                then ujobs_internal.ms(ujobs_internal.now() - q.oldest_ready) end
      from ujobs.queues q;
end;
comment on function ujobs.stats() is
'Counts of each queue, for everybody: ready, delayed, running, suspended, dead, and for how many milliseconds the oldest ready job has waited (NULL: none is ready).
Cheap at any depth: jobs that executors run and oldest_ready_ms are exact; the other counts are exact while a lane (one definition, queue and priority) holds at most 20000 jobs and all lanes together 100000, and there are at most 20000 dead letters. What is deeper is estimated from a sample of at most 1000 pages of its table.
Errors: none of its own.
Example: SELECT * FROM ujobs.stats();';

create function ujobs.metrics(out name text, out kind text, out help text, out labels jsonb, out value float8)
    returns setof record
    language sql stable
begin atomic
    with s as materialized (
        select * from ujobs.queues),
    m as (
        select 1 as n, 'ujobs_queue_depth' as name, 'Jobs that may start now.' as help, s.queue,
               pg_catalog.jsonb_build_object('queue', s.queue) as labels, s.ready::float8 as value
          from s
        union all
        select 2, 'ujobs_queue_jobs', 'Live jobs by state.', s.queue,
               pg_catalog.jsonb_build_object('queue', s.queue, 'state', c.state), c.n::float8
          from s
         cross join lateral (values ('ready', s.ready), ('delayed', s.delayed), ('running', s.running),
                                    ('suspended', s.suspended)) c (state, n)
        union all
        select 3, 'ujobs_queue_oldest_ready_seconds', 'How long the oldest ready job has waited, 0 when none is ready.',
               s.queue, pg_catalog.jsonb_build_object('queue', s.queue),
               coalesce(extract(epoch from ujobs_internal.now() - s.oldest_ready), 0)::float8
          from s
        union all
        select 4, 'ujobs_queue_dead_jobs', 'Dead letters kept in the history.', s.queue,
               pg_catalog.jsonb_build_object('queue', s.queue), s.dead::float8
          from s
        union all
        select 5, 'ujobs_queue_paused', '1 while the queue is paused.', s.queue,
               pg_catalog.jsonb_build_object('queue', s.queue), s.paused::int::float8
          from s
        union all
        select 6, 'ujobs_workers', 'Processes of the engine in this database.', w.kind,
               pg_catalog.jsonb_build_object('kind', w.kind), pg_catalog.count(p.pid)::float8
          from (values ('dispatcher'), ('scheduler'), ('executor'), ('relay')) w (kind)
          left join ujobs.workers p on p.kind = w.kind and p.database = pg_catalog.current_database()
         group by w.kind
        union all
        select c.n, c.name, c.help, k.sink, pg_catalog.jsonb_build_object('sink', k.sink), c.value
          from ujobs_internal.sink_counts() k
         cross join lateral (values
                (7, 'ujobs_outbox_pending', 'Messages that are not delivered yet and not parked.', k.pending::float8),
                (8, 'ujobs_outbox_parked', 'Messages that were refused for good.', k.parked::float8),
                (9, 'ujobs_outbox_oldest_seconds', 'How long the oldest pending message has waited, 0 when there is none.',
                 coalesce(greatest(extract(epoch from pg_catalog.clock_timestamp() - k.oldest), 0), 0)::float8),
                (10, 'ujobs_sink_up', '0 while the sink cannot be reached.', k.up::int::float8),
                (11, 'ujobs_outbox_published_total', 'Messages delivered.', k.published::float8)) c (n, name, help, value)
        union all
        select 12, 'ujobs_inbox_parked', 'Messages of a broker''s queue that could not become a job.', i.queue,
               pg_catalog.jsonb_build_object('queue', i.queue), i.parked::float8
          from ujobs_internal.inbox_counts() i),
    counter as (
        select 1 as n, 'ujobs_jobs_total' as family, 'counter' as kind, 'outcome' as label,
               'Attempts that ended, by outcome, and jobs cancelled, since the server started.' as help
        union all
        select 2, 'ujobs_job_wait_seconds', 'histogram', 'le', 'From when an attempt was due until it started.'
        union all
        select 3, 'ujobs_job_run_seconds', 'histogram', 'le', 'How long attempts ran.'),
    sample as (
        select m.name, case when m.name like '%\_total' then 'counter' else 'gauge' end as kind, m.help, m.labels, m.value, m.n, m.queue, m.labels ->> 'state' as state, 0 as nth
          from m
        union all
        select t.name, c.kind, c.help,
               pg_catalog.jsonb_strip_nulls(pg_catalog.jsonb_build_object('queue', t.queue, c.label, t.label)),
               t.value, 100 + c.n, t.queue, null, t.nth
          from ujobs_internal.counters() with ordinality as t (name, queue, label, value, nth)
          join counter c on c.family = pg_catalog.regexp_replace(t.name, '_(bucket|sum|count)$', ''))
    select s.name, s.kind, s.help, s.labels, s.value
      from sample s
     order by s.n, s.queue collate "C", s.state, s.nth;
end;
comment on function ujobs.metrics() is
'Measurements of this database, one row a sample: name, kind (gauge, counter or histogram), help, labels as a JSON object, value; for everybody.
Gauges are the counts of ujobs.stats. Counters and histograms grow from 0 when the server starts: ujobs_jobs_total by queue and outcome (done, retry, dead, cancelled), ujobs_job_wait_seconds and ujobs_job_run_seconds by queue, as samples _bucket (label le, cumulative), _sum and _count. The first 64 queues are told apart, all others are queue "(other)". What a prepared transaction did is not counted.
By sink: ujobs_outbox_pending, ujobs_outbox_parked, ujobs_outbox_oldest_seconds, ujobs_sink_up, and the counter ujobs_outbox_published_total, which a restart keeps; exact up to 20000 messages of a sink, sampled beyond.
Errors: none of its own.
Example: SELECT name, labels, value FROM ujobs.metrics();';

create function ujobs.prometheus() returns text
    language sql stable
begin atomic
    with m as materialized (
        select * from ujobs.metrics() with ordinality as t (name, kind, help, labels, value, n)),
    line as (
        select m.n, pg_catalog.format(E'%s{%s} %s\n', m.name,
                 (select pg_catalog.string_agg(pg_catalog.format('%s="%s"', l.key,
                             pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(
                                 l.value, E'\\', E'\\\\'), '"', E'\\"'), E'\n', E'\\n')), ',' order by l.key)
                    from pg_catalog.jsonb_each_text(m.labels) l),
                 m.value) as text
          from m),
    family as (
        select m.n, m.help, m.kind,
               case m.kind when 'histogram' then pg_catalog.regexp_replace(m.name, '_(bucket|sum|count)$', '')
                           else m.name end as name
          from m),
    head as (
        select pg_catalog.min(f.n) as n,
               pg_catalog.format(E'# HELP %s %s\n# TYPE %s %s\n', f.name, f.help, f.name, f.kind) as text
          from family f
         group by f.name, f.help, f.kind)
    select coalesce(pg_catalog.string_agg(a.text, '' order by a.n, a.is_head desc), '')
      from (select line.n, line.text, false as is_head from line
            union all
            select head.n, head.text, true from head) a;
end;
comment on function ujobs.prometheus() is
'ujobs.metrics() in the Prometheus text format (version 0.0.4).
Errors: none of its own.
Example: psql -XAtc "SELECT ujobs.prometheus()" > ujobs.prom';

-- JSON ---------------------------------------------------------------------

create function ujobs.inspect_queues() returns jsonb
    language sql stable
begin atomic
    with q as materialized (
        select q.queue, q.ready, q.delayed, q.running, q.suspended, q.dead, q.paused, q.driver,
               case when pg_catalog.isfinite(q.oldest_ready)
                    then ujobs_internal.ms(ujobs_internal.now() - q.oldest_ready) end as age
          from ujobs.queues q)
    select pg_catalog.jsonb_build_object(
               'driver', 'pg',
               'queues', coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
                             'queue', q.queue, 'ready', q.ready, 'delayed', q.delayed, 'running', q.running,
                             'suspended', q.suspended, 'dead', q.dead, 'oldestReadyMs', q.age,
                             'paused', q.paused) ||
                             case when q.driver <> 'pg' then pg_catalog.jsonb_build_object('driver', q.driver) else '{}' end
                             order by q.queue collate "C"), '[]'),
               'totals', pg_catalog.jsonb_build_object(
                             'ready', coalesce(pg_catalog.sum(q.ready), 0),
                             'delayed', coalesce(pg_catalog.sum(q.delayed), 0),
                             'running', coalesce(pg_catalog.sum(q.running), 0),
                             'suspended', coalesce(pg_catalog.sum(q.suspended), 0),
                             'dead', coalesce(pg_catalog.sum(q.dead), 0)),
               'oldestReadyMs', pg_catalog.max(q.age))
      from q;
end;
comment on function ujobs.inspect_queues() is
'All queues as one object: {driver, queues: [{queue, ready, delayed, running, suspended, dead, oldestReadyMs, paused}], totals, oldestReadyMs}; for everybody. Counts as in ujobs.stats. A queue whose jobs go to a broker has its driver too.
Errors: none of its own.
Example: SELECT jsonb_pretty(ujobs.inspect_queues());';

create function ujobs.inspect_job(id bigint) returns jsonb
    language c volatile strict parallel unsafe as 'MODULE_PATHNAME', 'ujobs_sql_inspect_job';
comment on function ujobs.inspect_job(bigint) is
'The trace of a job, live or finished: {id, name, queue, state, attempt, maxAttempts, idempotencyKey, runId, runAt, createdAt, finishedAt, lastError, tenantId, traceparent, enqueuedBy, result, steps, retryDelaysMs}. steps is an array in the order of the steps: {name, status, startedAt, completedAt, wakeAt, durationMs, attempts, error, output}; where the outputs of all of them would be more than 64 MB, they and the errors are null here and are shown by ujobs.steps alone. NULL when there is no such job, it is past its retention, or you may not see it; members of pg_monitor see lastError, result, idempotencyKey and the error and output of steps as null. retryDelaysMs is the schedule of its definition without jitter.
Example: SELECT jsonb_pretty(ujobs.inspect_job(42));';

create function ujobs.inspect_dead_letters(max int default 100) returns jsonb
    language sql stable
begin atomic
    select coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
               'id', d.id, 'name', d.name, 'queue', d.queue, 'attempt', d.attempt, 'lastError', d.last_error,
               'failedAt', ujobs_internal.iso(d.failed_at),
               'retryCommand', pg_catalog.format('SELECT ujobs.retry(%s)', d.id))
               order by d.failed_at desc, d.id desc), '[]')
      from (select l.id, l.name, l.queue, l.attempt, l.last_error, l.failed_at
              from ujobs.dead_letters l
             order by l.failed_at desc, l.id desc
             limit greatest(max, 0)) d;
end;
comment on function ujobs.inspect_dead_letters(int) is
'The newest dead letters that you may see, newest first: [{id, name, queue, attempt, lastError, failedAt, retryCommand}]. max is how many at most.
Example: SELECT jsonb_pretty(ujobs.inspect_dead_letters(10));';

create function ujobs.why(id bigint) returns jsonb
    language c volatile strict parallel unsafe as 'MODULE_PATHNAME', 'ujobs_sql_why';
comment on function ujobs.why(bigint) is
'Why a job is in its state: {state, reason, blockedBy}. reason is a sentence; blockedBy names what would have to change first (a queue, a definition, a setting, the engine) or is null. NULL when there is no such job or you may not see it.
Errors: none of its own.
Example: SELECT ujobs.why(42) ->> ''reason'';';

create function ujobs.statements(out name text, out sql text) returns setof record
    language c stable parallel restricted as 'MODULE_PATHNAME', 'ujobs_sql_statements';
comment on function ujobs.statements() is
'Every statement that the engine runs, by name, verbatim; the name is in a comment in front, so that pg_stat_statements shows it. Statements on ujobs_internal.job_history that look for or write one row are run against the partition (job_history_0 to job_history_31) instead.
Errors: none of its own.
Example: SELECT sql FROM ujobs.statements() WHERE name = ''job_fetch'';';
