-- Looking into the outbox and the inbox.  The publisher of a message sees it;
-- members of pg_monitor see that it is there.

-- Once a statement: what is on its way, and whether anybody delivers at all.
create view ujobs_internal.relay_now as
select ujobs_internal.publishing() as ids,
       exists (select
                 from ujobs_internal.workers() w
                where w.kind = 'relay'
                  and w.pid is not null
                  and w.database = pg_catalog.current_database()) as runs
offset 0;

-- held_by has nothing volatile in it, so it costs nothing where it is not asked for.
create view ujobs_internal.outbox_row with (security_barrier) as
select o.id, s.name::text as sink, o.topic::text as topic,
       case when a.access > 1 then o.key::text end as key,
       case when o.parked then 'parked' when o.id = any (r.ids) then 'publishing' else 'pending' end as state,
       o.attempts::int as attempts,
       case when a.access > 1 then o.last_error end as last_error,
       o.created_at,
       case when not o.parked then greatest(o.due_at, t.next_try_at) end as next_try_at,
       null::timestamptz as published_at,
       o.message_id,
       case when a.access > 1 then o.payload end as payload,
       case when a.access > 1 then o.headers end as headers,
       case when o.parked then 'refused for good: retry_outbox tries it again, skip_outbox removes it'
            when o.id = any (r.ids) then null
            else coalesce(
                case when o.key is not null then
                (select case when e.parked then pg_catalog.format('message %s of the same key is parked', e.id) end
                   from ujobs_internal.outbox e
                  where e.sink_id = o.sink_id and e.key = o.key and e.id + 0 < o.id
                  order by e.sink_id, e.key, e.id + 0
                  limit 1) end,
                case when t.last_error is not null
                     then pg_catalog.format('sink "%s" cannot be reached: %s; next try at %s', s.name, t.last_error,
                                            coalesce(ujobs_internal.iso(t.next_try_at), 'any moment'))
                     when o.due_at > pg_catalog.statement_timestamp()
                     then pg_catalog.format('attempt %s failed; next try at %s', o.attempts, ujobs_internal.iso(o.due_at))
                     end,
                case when o.key is not null then
                (select pg_catalog.format('message %s of the same key is not delivered yet', e.id)
                   from ujobs_internal.outbox e
                  where e.sink_id = o.sink_id and e.key = o.key and e.id + 0 < o.id
                  order by e.sink_id, e.key, e.id + 0
                  limit 1) end,
                case when not r.runs
                     then 'no relay runs in this database; it needs a running engine and a free background worker' end)
            end as held_by
  from ujobs_internal.outbox o
 cross join ujobs_internal.relay_now r
  left join ujobs_internal.sink s on s.id = o.sink_id
  left join ujobs_internal.sink_status t on t.sink_id = o.sink_id
 cross join lateral (select ujobs_internal.row_access(null, null, o.publisher) as access
                     offset 0) a
 where a.access > 0;

create view ujobs_internal.published_row with (security_barrier) as
select o.id, s.name::text as sink, o.topic::text as topic,
       case when a.access > 1 then o.key::text end as key,
       'published' as state, o.attempts, null::jsonb as last_error, o.created_at,
       null::timestamptz as next_try_at, o.published_at, o.message_id,
       case when a.access > 1 then o.payload end as payload,
       case when a.access > 1 then o.headers end as headers,
       null::text as held_by
  from ujobs_internal.outbox_published o
  left join ujobs_internal.sink s on s.id = o.sink_id
 cross join lateral (select ujobs_internal.row_access(null, null, o.publisher) as access
                     offset 0) a
 where a.access > 0;

create view ujobs.outbox with (security_barrier) as
select * from ujobs_internal.outbox_row
union all
select * from ujobs_internal.published_row;
comment on view ujobs.outbox is
'Messages to other systems: those that are not delivered yet (state pending, publishing or parked) and those published, until ujobs.retention is over. attempts counts the tries that failed through the message; last_error is the last of them; held_by is a sentence that says what keeps it from being delivered now (NULL: nothing does). You see the messages that a role published whose member you are; superusers see all, members of pg_monitor see all with NULL for key, payload, headers and last_error.';

create view ujobs.sinks with (security_barrier) as
select s.name::text as name, s.kind,
       case when a.access > 0 then s.options end as options,
       exists (select from ujobs_internal.sink_secret x where x.sink_id = s.id and x.secret <> '{}') as has_secret,
       case when t.last_error is null then 'up' else 'down' end as state,
       case when a.access > 0 then t.last_error end as last_error,
       t.failed_at, t.next_try_at, t.published, s.created_at
  from ujobs_internal.sink s
  left join ujobs_internal.sink_status t on t.sink_id = s.id
 cross join lateral (select ujobs_internal.row_access(null, null, null) as access
                     offset 0) a;
comment on view ujobs.sinks is
'The systems that ujobs.define_sink named, never their secrets. state is down while the relay cannot reach it: last_error says why, next_try_at when it tries again; failed_at is when that last happened. published counts messages delivered. Everybody sees which there are; options and last_error are NULL for those who are neither superusers nor members of pg_monitor.';

create view ujobs.inbox with (security_barrier) as
select i.message_id::text as message_id, i.queue::text as queue, s.name::text as sink,
       case when i.parked then 'parked' else 'taken' end as state,
       i.job_id, i.taken_at,
       case when a.access > 1 then i.message end as message,
       case when a.access > 1 then i.error end as error
  from ujobs_internal.inbox i
  left join ujobs_internal.sink s on s.id = i.sink_id
 cross join lateral (select ujobs_internal.row_access(null, null, null) as access
                     offset 0) a
 where a.access > 0;
comment on view ujobs.inbox is
'Messages of brokers'' queues that this database took in, for a week or ujobs.retention, whichever is longer. job_id is the job that one became, or the live job that held its key; a parked one could not become a job yet: error says why, message is its body, and it is tried again when definitions change. For superusers and members of pg_monitor (without message and error).';
