-- Looking in: shapes, states and sentences.  The rows are written by hand, so
-- that every state is there without an engine, and rolled back.
\set VERBOSITY verbose
\pset null '~'
set timezone = 'UTC';
set datestyle = 'ISO';

-- Columns of the views, in order.
select table_name, string_agg(column_name, ', ' order by ordinal_position)
  from information_schema.columns
 where table_schema = 'ujobs'
 group by table_name
 order by table_name collate "C";

-- The list of errors.
select * from ujobs.error_codes where sqlstate in ('UJ011', 'UJ020');
select count(*), count(distinct sqlstate), count(distinct name), bool_and(meaning <> '' and fix <> '') from ujobs.error_codes;

-- Statements carry their names, and their texts parse.
select count(*) > 20 as some, bool_and(sql like '/* ujobs:' || name || ' */%') as named,
       count(*) = count(distinct name) as unique
  from ujobs.statements();

-- No such job.
select ujobs.inspect_job(-1), ujobs.why(-1);

begin;
set local ujobs.clock = '2026-03-08 07:00:00.123Z';

insert into test_store.definition (id, name, kind, handler, owner, owner_name, idempotency_key, retry, queue,
                                       priority, batch, concurrency, created_at)
select -v.id, v.name, v.kind, case when v.kind <> 'external' then 'inspect.handler' end, r.oid, r.rolname, '{id}',
       '{"attempts": 3, "backoff": "exponential", "delay": 1000, "maxDelay": 3600000, "jitter": true, "deadLetter": true, "terminal": []}',
       'inspect', 0, 1, null, '2026-03-01Z'
  from pg_roles r,
       (values (1, 'inspect_b', 'atomic'), (2, 'inspect_a', 'external'), (3, 'inspect_Z', 'durable')) v (id, name, kind)
 where r.rolname = current_user;
insert into test_store.queue (name, paused, concurrency, rate_per_tenant, rate_window)
values ('inspect paused', true, null, null, null), ('inspect', false, 7, 3, '1 minute');

insert into test_store.job (id, due_at, run_at, created_at, definition_id, enqueued_role, priority, attempt, max_attempts,
                                state, run_id, queue, tenant, key, input, last_error, reason, enqueued_by)
select -v.id, v.due::timestamptz, '2026-03-08 06:00Z', '2026-03-08 05:00Z', v.definition, 0, 5, v.attempt, 3,
       v.state::"char", '00000000-0000-0000-0000-000000000001', v.queue, 'acme', 'k' || v.id, '{"n": 1}',
       case when v.attempt > 0 then '{"sqlstate": "P0001", "message": "it broke"}'::jsonb end, v.reason, 'ann'
  from (values (1, '2026-03-08 06:59:59Z', 0, 'p', 'inspect', -1, null),
               (2, '2026-03-08 07:00:00.123Z', 0, 'p', 'inspect', -1, null),
               (3, '2026-03-08 07:00:00.124Z', 0, 'p', 'inspect', -1, null),
               (4, '2026-03-08 07:30Z', 2, 'p', 'inspect', -1, null),
               (5, '2026-03-09Z', 1, 's', 'inspect', -1, null),
               (6, 'infinity', 1, 's', 'inspect', -1, 'handler "inspect.handler" does not exist'),
               (7, '2026-03-08 07:01Z', 1, 'l', 'inspect', -2, null),
               (8, '2026-03-08 06:00Z', 0, 'p', 'inspect paused', -1, null),
               (9, '2026-03-08 06:00Z', 0, 'p', 'inspect 2', -2, null)) v (id, due, attempt, state, queue, definition, reason);

insert into test_store.lease (job_id, lease, visible_at, worker)
values (-7, 1, '2026-03-08 07:01Z', 'inspect');

insert into test_store.job_history (id, slot, run_at, created_at, started_at, finished_at, expires_at, definition_id, enqueued_role,
                                        attempt, max_attempts, priority, state, run_id, queue, tenant, key, input, result, last_error, reason)
select -v.id, ujobs_internal.history_slot(v.finished::timestamptz + '7 days'), '2026-03-08 01:00Z', '2026-03-08 00:00Z',
       '2026-03-08 01:00Z', v.finished::timestamptz, v.finished::timestamptz + '7 days', -1, 0, v.attempt, 3, 0, v.state,
       '00000000-0000-0000-0000-000000000002', 'inspect', '', 'h' || v.id, '{}', v.result::jsonb, v.error::jsonb, v.reason
  from (values (11, '2026-03-08 01:00:01Z', 1, 'd'::"char", '{"ok": true}', null, null),
               (12, '2026-03-08 02:00:00Z', 3, 'x', null, '{"sqlstate": "UJ022", "message": "all 3 attempts failed: it broke"}', null),
               (13, '2026-03-08 03:00:00Z', 0, 'c', null, null, 'not needed'),
               (14, '2026-02-27 03:00:00Z', 1, 'x', null, '{"sqlstate": "23514", "message": "never"}', null))
       v (id, finished, attempt, state, result, error, reason);

select * from ujobs.jobs where name like 'inspect%' order by id desc;
select id, name, state, last_error, failed_at from ujobs.dead_letters where name like 'inspect%' order by failed_at;
select name, kind, handler, owner = current_user as mine, queue, retry ->> 'attempts' as attempts from ujobs.definitions where name like 'inspect%' order by 1;
select count(*) from ujobs.steps;

select * from ujobs.queues where queue like 'inspect%';
select * from ujobs.stats() where queue like 'inspect%';
select jsonb_pretty(q) from jsonb_array_elements(ujobs.inspect_queues() -> 'queues') q where q ->> 'queue' = 'inspect';
select ujobs.inspect_queues() - 'queues' - 'oldestReadyMs' - 'totals' as rest,
       (select jsonb_agg(k order by k) from jsonb_object_keys(ujobs.inspect_queues() -> 'totals') k) as totals;

select jsonb_pretty(ujobs.inspect_job(-4));
select jsonb_pretty(ujobs.inspect_job(-11));
select ujobs.inspect_job(-14) ->> 'state' as state, ujobs.inspect_job(-14) ->> 'finishedAt' as finished;
select jsonb_pretty(jsonb_agg(l)) from jsonb_array_elements(ujobs.inspect_dead_letters()) l where l ->> 'name' like 'inspect%';
select jsonb_array_length(ujobs.inspect_dead_letters(1)), ujobs.inspect_dead_letters(0);
select jsonb_pretty(j) from jsonb_array_elements(ujobs.inspect_manifest() -> 'jobs') j where j ->> 'name' like 'inspect%';
select ujobs.inspect_manifest() -> 'tasks' as tasks;

select id, w ->> 'state' as state, w ->> 'blockedBy' as blocked_by,
       case w ->> 'blockedBy' when 'engine' then regexp_replace(w ->> 'reason', '^(waiting: ).*(; call .*)', '\1...\2') else w ->> 'reason' end as reason
  from generate_series(-14, -1) id, ujobs.why(id) w
 where w is not null
 order by id desc;

select name, kind, labels, value from ujobs.metrics() where labels ->> 'queue' = 'inspect';
update test_store.job set queue = E'inspect "q"\\\n' where id = -8;
select line from regexp_split_to_table(ujobs.prometheus(), '\n') line where line like '%inspect "%' or line like '%inspect \\"%' or line like '# %depth%';

-- The store is healthy, and check says so when it is not.
select * from ujobs.check() where detail ~ ' -\d|inspect_';
savepoint broken;
update test_store.job set attempt = 3 where id = -1;
update test_store.job set due_at = 'infinity' where id = -2;
update test_store.job set definition_id = -99 where id = -3;
update test_store.job_history set slot = (slot + 1) % 32 where id = -11;
update test_store.job_history set last_error = null where id = -12;
update test_store.job_history set expires_at = finished_at - interval '1 second', slot = 19 where id = -13;
update test_store.job_history set id = -4 where id = -14;
update test_store.definition set owner_name = 'inspect_nobody' where id = -2;
update test_store.definition set owner = 1, owner_name = 'inspect_gone' where id = -3;
insert into test_store.definition_grant values (-98, 'e', 1, 'inspect_gone');
select rule, regexp_replace(detail, '\(\d\d+\)|"' || current_user || '"', '(role)', 'g') as detail
  from ujobs.check()
 where detail ~ ' -\d|inspect_'
 order by 1, 2;
rollback to broken;
rollback;
