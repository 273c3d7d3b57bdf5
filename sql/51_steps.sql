-- Steps and events: how a finished job keeps its steps, and what users see.
--
-- A finished job has its steps as one jsonb array in its history row.  Where
-- that array would grow too big, they stay rows of job_step instead, and so
-- does a step that was committed while a cancel at REPEATABLE READ waited for
-- the job's row.  So the steps of a finished job are always those of the array
-- and those left in job_step.

-- Archive and restore ------------------------------------------------------

-- The size of a value without its compression, read from its header alone.
create function ujobs_internal.raw_size(value jsonb) returns int
    language c immutable strict parallel safe as 'MODULE_PATHNAME', 'ujobs_sql_raw_size';

-- What a step adds to the array, keys included.
create function ujobs_internal.step_size(s ujobs_internal.job_step) returns bigint
    language sql immutable parallel safe
    return 500 + coalesce(ujobs_internal.raw_size((s).output), 0) + coalesce(ujobs_internal.raw_size((s).error), 0);

-- An output that is NULL is left out, because one that is JSON null is not the same.
create function ujobs_internal.archive_step(s ujobs_internal.job_step) returns jsonb
    language sql stable parallel safe
    return pg_catalog.to_jsonb(s) - array['job_id', case when (s).output is null then 'output' else 'job_id' end];

create function ujobs_internal.restore_step(job bigint, archived jsonb) returns ujobs_internal.job_step
    language sql stable parallel safe
    return pg_catalog.jsonb_populate_record(
               row(job, null, null, null, null, null, null, null, null, null, null, null, null,
                   archived -> 'output', null)::ujobs_internal.job_step,
               archived - 'output');

create function ujobs_internal.restore_steps(job bigint, archived jsonb) returns setof ujobs_internal.job_step
    language sql stable parallel safe
begin atomic
    select s.*
      from pg_catalog.jsonb_array_elements(archived) e
     cross join lateral ujobs_internal.restore_step(job, e.value) s;
end;

-- All steps of a job, live (archived is NULL) or finished.
create function ujobs_internal.steps_of(job bigint, archived jsonb) returns setof ujobs_internal.job_step
    language sql stable parallel safe
begin atomic
    select * from ujobs_internal.job_step s where s.job_id = job
    union all
    select * from ujobs_internal.restore_steps(job, archived);
end;

create function ujobs_internal.step_word(status "char") returns text
    language sql immutable strict parallel safe
    return case status when 'c' then 'completed' when 's' then 'sleeping' when 'w' then 'waiting' when 'f' then 'failed' end;

-- May the outputs of a job's steps be in one JSON value?
create function ujobs_internal.steps_fit(job bigint) returns boolean
    language sql stable parallel safe
begin atomic
    select coalesce(pg_catalog.sum(ujobs_internal.step_size(s)) <= 67108864, true)  -- UJOBS_ARCHIVE_MAX
      from ujobs_internal.job_step s
     where s.job_id = job;
end;

-- The steps of a trace; error and output for those alone who may see payload,
-- and where they fit into it.
create function ujobs_internal.step_trace(job bigint, archived jsonb, payload boolean) returns jsonb
    language sql stable parallel safe
begin atomic
    select coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
               'name', s.name,
               'status', ujobs_internal.step_word(s.status),
               'startedAt', ujobs_internal.iso(s.started_at),
               'completedAt', ujobs_internal.iso(s.completed_at),
               'wakeAt', ujobs_internal.iso(s.wake_at),
               'durationMs', ujobs_internal.ms(s.completed_at - s.started_at),
               'attempts', s.attempts,
               'error', case when shown.payload then s.error end,
               'output', case when shown.payload then s.output end) order by s.seq), '[]')
      from (select payload and ujobs_internal.steps_fit(job) as payload offset 0) shown
     cross join lateral ujobs_internal.steps_of(job, archived) s;
end;

-- Views --------------------------------------------------------------------

-- Barriers in each part, as for ujobs.jobs.
create view ujobs_internal.live_step with (security_barrier) as
select s.*, a.access
  from ujobs_internal.job_step s
  join ujobs_internal.job j on j.id = s.job_id
  left join ujobs_internal.definition d on d.id = j.definition_id
 cross join lateral (select ujobs_internal.row_access(d.owner, d.owner_name, j.enqueued_role) as access
                     offset 0) a
 where a.access > 0;

-- Not steps_of: the tables of a function in a view are asked for as the invoker.
create view ujobs_internal.archived_step with (security_barrier) as
select h.id as job_id, s.started_at, s.completed_at, s.seq, s.attempts, s.status, s.name, s.wake_at, s.since,
       s.event_id, s.child_id, s.event, s.match, s.output, s.error, a.access
  from ujobs_internal.job_history h
  left join ujobs_internal.definition d on d.id = h.definition_id
 cross join lateral (select ujobs_internal.row_access(d.owner, d.owner_name, h.enqueued_role) as access
                     offset 0) a
 cross join lateral ujobs_internal.restore_steps(h.id, h.steps) s
 where h.steps is not null
   and a.access > 0;

-- Those that were left as rows: without a live job, which are few.
create view ujobs_internal.left_step with (security_barrier) as
select s.*, a.access
  from (select * from ujobs_internal.job_step r
         where not exists (select from ujobs_internal.job j where j.id = r.job_id)) s
  join ujobs_internal.job_history h on h.id = s.job_id
  left join ujobs_internal.definition d on d.id = h.definition_id
 cross join lateral (select ujobs_internal.row_access(d.owner, d.owner_name, h.enqueued_role) as access
                     offset 0) a
 where a.access > 0;

create view ujobs.steps with (security_barrier) as
select s.job_id, s.seq, s.name::text as name, ujobs_internal.step_word(s.status) as status,
       case when s.access > 1 then s.output end as output,
       s.attempts::int as attempts,
       case when s.access > 1 then s.error end as error,
       s.started_at, s.completed_at, s.wake_at, s.event::text as event,
       case when s.access > 1 then s.match::text end as match
  from (select * from ujobs_internal.live_step
        union all
        select * from ujobs_internal.archived_step
        union all
        select * from ujobs_internal.left_step) s;
comment on view ujobs.steps is
'The remembered steps of durable and external jobs, live ones and those of kept history, in the order of seq within a job. status is completed, sleeping, waiting or failed (the next attempt runs it again). wake_at is the end of a sleep or the deadline of a wait (infinity: none). You see the steps of the jobs that ujobs.jobs shows you; members of pg_monitor see NULL for output, error and match.';

create view ujobs.events with (security_barrier) as
select e.id, e.name::text as name,
       case when a.access > 1 then e.match::text end as match,
       case when a.access > 1 then e.payload end as payload,
       e.published_at, e.expires_at
  from ujobs_internal.event e
 cross join lateral (select ujobs_internal.row_access(null, null, e.publisher) as access
                     offset 0) a
 where a.access > 0;
comment on view ujobs.events is
'Published events until they are removed, some time after expires_at. You see the events that a role published whose member you are; superusers see all, members of pg_monitor see all with NULL for match and payload.';
