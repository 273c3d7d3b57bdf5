-- The invariants of the store, each a query for the rows that break it.

create function ujobs.check(out rule text, out detail text) returns setof record
    language sql stable security definer
    set search_path = pg_catalog, pg_temp
begin atomic
    select 'job_definition', pg_catalog.format('job %s: there is no definition %s', j.id, j.definition_id)
      from ujobs_internal.job j
     where not exists (select from ujobs_internal.definition d where d.id = j.definition_id)
    union all
    select 'history_definition', pg_catalog.format('finished job %s: there is no definition %s', h.id, h.definition_id)
      from ujobs_internal.job_history h
     where not exists (select from ujobs_internal.definition d where d.id = h.definition_id)
    union all
    select 'grant_definition', pg_catalog.format('a grant to %s is for definition %s, which is not there', g.role_name, g.definition_id)
      from ujobs_internal.definition_grant g
     where not exists (select from ujobs_internal.definition d where d.id = g.definition_id)
    union all
    select 'definition_owner',
           pg_catalog.format('definition "%s": its owner "%s" (%s) is %s', d.name, d.owner_name, d.owner,
                             coalesce('now the name or number of another role, "' || r.rolname || '"', 'not a role'))
      from ujobs_internal.definition d
      left join pg_catalog.pg_roles r on r.oid = d.owner
     where d.dropped_at is null
       and r.rolname is distinct from d.owner_name
    union all
    select 'grant_role',
           pg_catalog.format('definition %s: a grant to role "%s" (%s), which is %s', g.definition_id, g.role_name, g.role,
                             coalesce('now "' || r.rolname || '"', 'not there'))
      from ujobs_internal.definition_grant g
      left join pg_catalog.pg_roles r on r.oid = g.role
     where g.role <> 0
       and r.rolname is distinct from g.role_name
    union all
    select 'task_owner',
           pg_catalog.format('task "%s": its owner "%s" (%s) is %s', t.name, t.owner_name, t.owner,
                             coalesce('now the name or number of another role, "' || r.rolname || '"', 'not a role'))
      from ujobs_internal.task t
      left join pg_catalog.pg_roles r on r.oid = t.owner
     where r.rolname is distinct from t.owner_name
    union all
    select 'task_watermark', pg_catalog.format('task "%s": its watermark is %s, so it would never fire', t.name, t.watermark)
      from ujobs_internal.task t
     where not pg_catalog.isfinite(t.watermark)
    union all
    select 'definition_name', pg_catalog.format('definition "%s" is there %s times', d.name, pg_catalog.count(*))
      from ujobs_internal.definition d
     where d.dropped_at is null
     group by d.name
    having pg_catalog.count(*) > 1
    union all
    select 'job_key',
           pg_catalog.format('%s live jobs of definition %s hold one key: %s', pg_catalog.count(*), j.definition_id,
                             pg_catalog.string_agg(j.id::text, ', ' order by j.id))
      from ujobs_internal.job j
     group by j.definition_id, j.tenant_id || '', j.idempotency_key || ''
    having pg_catalog.count(*) > 1
    union all
    select 'job_state', pg_catalog.format('job %s: state "%s" is not one of a live job', j.id, j.state)
      from ujobs_internal.job j
     where j.state not in ('p', 's', 'l')
    union all
    select 'job_attempt',
           pg_catalog.format('job %s: %s of %s attempts were made and it still waits to start', j.id, j.attempt, j.max_attempts)
      from ujobs_internal.job j
     where j.attempt < 0
        or (j.state = 'p' and j.attempt >= j.max_attempts)
    union all
    select 'job_due_at', pg_catalog.format('job %s: due_at is %s, so nothing would ever start it', j.id, j.due_at)
      from ujobs_internal.job j
     where not pg_catalog.isfinite(j.due_at)
       and not (j.state = 's' and j.due_at = 'infinity')
    union all
    select 'job_lease',
           pg_catalog.format('job %s is leased, but %s', j.id,
                             case when l.job_id is null then 'it has no lease, so it would never end'
                                  else pg_catalog.format('its lease ends at %s', l.visible_at) end)
      from ujobs_internal.job j
      left join ujobs_internal.lease l on l.job_id = j.id
     where j.state = 'l'
       and (l.job_id is null or not pg_catalog.isfinite(l.visible_at))
    union all
    select 'lease_job', pg_catalog.format('job %s has a lease, but is not leased', l.job_id)
      from ujobs_internal.lease l
      left join ujobs_internal.job j on j.id = l.job_id
     where j.state is distinct from 'l'
    union all
    select 'job_twice', pg_catalog.format('job %s is both live and finished', j.id)
      from ujobs_internal.job j
      join ujobs_internal.job_history h on h.id = j.id
    union all
    select 'history_twice', pg_catalog.format('finished job %s is in %s partitions', h.id, pg_catalog.count(*))
      from ujobs_internal.job_history h
     group by h.id
    having pg_catalog.count(*) > 1
    union all
    select 'history_state', pg_catalog.format('finished job %s: state "%s" is not one of a finished job', h.id, h.state)
      from ujobs_internal.job_history h
     where h.state not in ('d', 'x', 'c')
    union all
    select 'history_slot',
           pg_catalog.format('finished job %s is in partition %s and expires at %s: that is partition %s', h.id, h.slot,
                             h.expires_at, ujobs_internal.history_slot(h.expires_at))
      from ujobs_internal.job_history h
     where case when pg_catalog.isfinite(h.expires_at) and pg_catalog.isfinite(h.finished_at)
                then h.expires_at <= h.finished_at + interval '30 days'  -- longer ones are moved as the ring turns
                 and h.slot <> ujobs_internal.history_slot(h.expires_at) end
    union all
    select 'history_expiry', pg_catalog.format('finished job %s expires at %s, before it finished at %s', h.id, h.expires_at, h.finished_at)
      from ujobs_internal.job_history h
     where h.expires_at < h.finished_at
        or not pg_catalog.isfinite(h.expires_at)
        or not pg_catalog.isfinite(h.finished_at)
    union all
    select 'history_attempt', pg_catalog.format('finished job %s: %s attempts of %s', h.id, h.attempt, h.max_attempts)
      from ujobs_internal.job_history h
     where h.attempt < 0
        or h.attempt > h.max_attempts
        or (h.attempt = 0 and h.state = 'd')
    union all
    select 'history_error', pg_catalog.format('dead job %s has no error', h.id)
      from ujobs_internal.job_history h
     where h.state = 'x'
       and h.last_error is null
    union all
    select 'step_job', pg_catalog.format('step %s "%s" is of job %s, which is neither live nor finished', s.seq, s.name, s.job_id)
      from ujobs_internal.job_step s
     where not exists (select from ujobs_internal.job j where j.id = s.job_id)
       and not exists (select from ujobs_internal.job_history h where h.id = s.job_id)
    union all
    select 'step_name', pg_catalog.format('job %s has %s steps named "%s"', s.job_id, pg_catalog.count(*), s.name)
      from ujobs_internal.job_step s
     group by s.job_id, s.name
    having pg_catalog.count(*) > 1
    union all
    select 'step_status',
           pg_catalog.format('job %s, step "%s": %s', s.job_id, s.name,
               case when s.seq < 1 then pg_catalog.format('its seq is %s', s.seq)
                    when s.status = 'c' and s.completed_at is null then 'completed, but not when'
                    when s.status in ('s', 'w') and s.wake_at is null then 'it sleeps or waits without an end'
                    when s.status = 's' and not pg_catalog.isfinite(s.wake_at) then 'it sleeps for ever'
                    when s.status = 'w' and s.event is null and s.child_id is null then 'it waits for neither an event nor a job'
                    when s.status = 'w' and s.event is not null and s.child_id is not null then 'it waits for both an event and a job'
                    when s.status = 'w' and s.event is not null and s.since is null then 'it waits for an event since no instant' end)
      from ujobs_internal.job_step s
     where s.seq < 1
        or (s.status = 'c' and s.completed_at is null)
        or (s.status in ('s', 'w') and s.wake_at is null)
        or (s.status = 's' and not pg_catalog.isfinite(s.wake_at))
        or (s.status = 'w' and pg_catalog.num_nonnulls(s.event, s.child_id) <> 1)
        or (s.status = 'w' and s.event is not null and s.since is null)
    union all
    select 'job_wait',  -- a program may park an external job, and a missing handler suspends any, for its reason
           pg_catalog.format('job %s is suspended until %s, but %s', j.id, j.due_at,
                             case when w.name is null then 'none of its steps sleeps or waits'
                                  else pg_catalog.format('its step "%s" ends at %s', w.name, w.wake_at) end)
      from ujobs_internal.job j
      join ujobs_internal.definition d on d.id = j.definition_id
      left join lateral (select s.name, s.wake_at
                           from ujobs_internal.job_step s
                          where s.job_id = j.id
                            and s.status in ('s', 'w')
                          order by s.seq desc
                          limit 1) w on true
     where j.state = 's'
       and d.kind = 'durable'
       and j.reason is null
       and j.started_at is not null
       and j.due_at > pg_catalog.clock_timestamp()
       and (w.name is null or w.wake_at < j.due_at)
    union all
    select 'history_steps', pg_catalog.format('finished job %s: its steps are not an array of steps', h.id)
      from ujobs_internal.job_history h
     where h.steps is not null
       and case when pg_catalog.jsonb_typeof(h.steps) <> 'array' then true
                else pg_catalog.jsonb_array_length(h.steps) = 0
                  or exists (select
                               from pg_catalog.jsonb_array_elements(h.steps) e
                              where pg_catalog.jsonb_typeof(e.value) <> 'object'
                                 or pg_catalog.jsonb_typeof(e.value -> 'seq') is distinct from 'number'
                                 or pg_catalog.jsonb_typeof(e.value -> 'name') is distinct from 'string'
                                 or pg_catalog.jsonb_typeof(e.value -> 'attempts') is distinct from 'number'
                                 or pg_catalog.jsonb_typeof(e.value -> 'started_at') is distinct from 'string'
                                 or coalesce(e.value ->> 'status', '') not in ('c', 's', 'w', 'f')) end
    union all
    select 'step_twice', pg_catalog.format('finished job %s has step %s as a row, and steps in its history', s.job_id, s.seq)
      from ujobs_internal.job_step s
      join ujobs_internal.job_history h on h.id = s.job_id
     where h.steps is not null
    union all
    select 'sink_status', pg_catalog.format('sink "%s" has no status', s.name)
      from ujobs_internal.sink s
     where not exists (select from ujobs_internal.sink_status t where t.sink_id = s.id)
    union all
    select 'outbox_sink', pg_catalog.format('message %s: there is no sink %s', o.id, o.sink_id)
      from ujobs_internal.outbox o
     where not exists (select from ujobs_internal.sink s where s.id = o.sink_id)
    union all
    select 'outbox_due_at', pg_catalog.format('message %s: due_at is %s, so it would never be delivered', o.id, o.due_at)
      from ujobs_internal.outbox o
     where not pg_catalog.isfinite(o.due_at)
    union all
    select 'outbox_headers', pg_catalog.format('message %s: its headers are not an object', o.id)
      from ujobs_internal.outbox o
     where pg_catalog.jsonb_typeof(o.headers) <> 'object'
    union all
    select 'outbox_error', pg_catalog.format('message %s is parked without an error', o.id)
      from ujobs_internal.outbox o
     where o.parked
       and o.last_error is null
    union all
    select 'outbox_twice', pg_catalog.format('message %s is both in the outbox and published', o.id)
      from ujobs_internal.outbox o
      join ujobs_internal.outbox_published p on p.id = o.id
    union all
    select 'queue_driver', pg_catalog.format('queue "%s" has driver %s, but %s', q.name, q.driver,
                                             coalesce('its sink is of kind ' || s.kind, 'its sink is not there'))
      from ujobs_internal.queue q
      left join ujobs_internal.sink s on s.id = q.sink_id
     where q.driver <> 'pg'
       and s.kind is distinct from q.driver
    union all
    select 'consumer_sink', pg_catalog.format('queue "%s" is taken from sink %s, which is not there', c.queue, c.sink_id)
      from ujobs_internal.consumer c
     where not exists (select from ujobs_internal.sink s where s.id = c.sink_id)
    union all
    select 'inbox_state', pg_catalog.format('message %s of the inbox is %s', i.message_id,
               case when i.parked then 'parked without its body or the reason' else 'taken in without a job' end)
      from ujobs_internal.inbox i
     where case when i.parked then i.message is null or i.error is null or i.job_id is not null
                else i.job_id is null end;
end;
comment on function ujobs.check() is
'Every invariant of the store that does not hold: the rule''s name and the facts. No rows means healthy. Reads the tables in full. Write ujobs.check(): CHECK alone is a keyword.
Errors: none of its own.
Example: SELECT * FROM ujobs.check();';
