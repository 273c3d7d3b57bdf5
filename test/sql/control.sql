-- Cancel, retry, pause, purge, wait, start and stop: what they answer and what
-- they leave behind.  Rows are made by hand, so that each state can be had.
\set VERBOSITY terse
create role control_owner;
create role control_enqueuer;
create role control_stranger;
grant control_owner to current_user;

insert into test_store.definition (name, kind, handler, owner, owner_name, idempotency_key, retry, queue,
                                       priority, batch, retention, created_at, dropped_at)
select n, 'atomic', 'control.nothing', 'control_owner'::regrole, 'control_owner', '{k}',
       '{"attempts":3,"backoff":"fixed","delay":1000,"maxDelay":1000,"jitter":false,"deadLetter":true,"terminal":[]}',
       'control', 7, 1, r, now(), case n when 'control_dropped' then now() end
  from (values ('control', null::interval), ('control_unkept', '0'), ('control_year', '365 days'),
               ('control_dropped', null)) as v (n, r);

-- A live job by its key.
create function control_make(k text, state "char" default 'p', due timestamptz default now(), def text default 'control')
returns void language sql as $$
    insert into test_store.job (due_at, run_at, created_at, definition_id, enqueued_role, priority, attempt,
                                    max_attempts, state, run_id, queue, key, input, started_at, last_error, reason)
    select due, due, now(), d.id, 'control_enqueuer'::regrole, 7, 2,
           3, state, md5(k)::uuid, 'control', k, '{}', now(), '{"message": "boom"}', 'a reason'
      from test_store.definition d
     where d.name = def
$$;

-- The same, finished.
create function control_make_finished(k text, state "char", finished timestamptz default now(), queue text default 'control')
returns void language sql as $$
    insert into test_store.job_history (id, slot, run_at, created_at, finished_at, expires_at, definition_id,
                                            enqueued_role, attempt, max_attempts, priority, state, run_id, queue,
                                            tenant, key, input, result, last_error)
    select nextval('ujobs_internal.job_id_seq'), abs(hashtext(k)) % 32, finished, finished, finished, finished + '7 days',
           d.id, 'control_enqueuer'::regrole, 3, 3, 7, $2, md5(k)::uuid, $4,
           '', k, '{}', '"r"', '{"message": "boom"}'
      from test_store.definition d
     where d.name = 'control'
$$;

-- The id of the newest job with that key.
create function control_id(k text) returns bigint language sql as $$
    select max(id) from (select id from test_store.job where key = k
                         union all select id from test_store.job_history where key = k) x
$$;

create view control_live as
    select key, state, attempt, due_at <= now() as due, run_at <= now() as run_due, revision, last_error, reason, started_at
      from test_store.job
     where key like 'c-%';

create view control_ended as
    select key, state, attempt, reason, last_error, result, partition
      from test_store.job_history
     where key like 'c-%';

-- Runs a statement with the id of that key and shows the error without ids.
create function control_try(k text, command text) returns text language plpgsql as $$
declare
    answer text;
    detail text;
    hint text;
begin
    execute replace(command, '$1', coalesce(control_id(k), 0)::text) into answer;
    return 'ok ' || coalesce(answer, 'null');
exception when others then
    get stacked diagnostics detail = pg_exception_detail, hint = pg_exception_hint;
    return format(E'%s %s\nDETAIL: %s\nHINT: %s', sqlstate, regexp_replace(sqlerrm, '\m\d+\M', 'N', 'g'),
                  regexp_replace(detail, 'ob \d+', 'ob N', 'g'), hint);
end
$$;

\pset format unaligned
\pset tuples_only on

-- cancel: live in every state
select control_make('c-ready'), control_make('c-delayed', 'p', now() + interval '1 hour'),
       control_make('c-suspended', 's'), control_make('c-leased', 'l');
select control_try(k, 'select t ->> ''state'' || '' '' || (t ->> ''attempt'') from ujobs.cancel($1, ''because'') t')
  from unnest('{c-ready,c-delayed,c-suspended,c-leased}'::text[]) k;
select key, state, attempt, reason, last_error from control_ended order by key;
select count(*) from control_live;
-- terminal, unknown, not ours, null
select control_try('c-ready', 'select ujobs.cancel($1)');
select control_try('c-none', 'select ujobs.cancel($1)');
select control_try('c-none', 'select ujobs.cancel(null)');
select control_make('c-denied');
set role control_stranger;
select control_try('c-denied', 'select 1') ~ '42501' as internals_are_closed;
reset role;
alter function control_id(text) security definer;
set role control_stranger;
select control_try('c-denied', 'select ujobs.cancel($1)');
select control_try('c-denied', 'select ujobs.retry($1)');
reset role;
set role control_owner;
select control_try('c-denied', 'select ujobs.cancel($1) ->> ''state''');
reset role;
-- rolled back: nothing happened
select control_make('c-rollback');
begin;
select ujobs.cancel(control_id('c-rollback'), 'x') ->> 'state';
savepoint s;
select ujobs.retry(control_id('c-rollback')) ->> 'state';
rollback to s;
select state from control_ended where key = 'c-rollback';
rollback;
select state, revision from control_live where key = 'c-rollback';
-- no retention: a trace, and no row
select control_make('c-unkept', 'p', now(), 'control_unkept');
select ujobs.cancel(control_id('c-unkept')) ->> 'state';
select control_id('c-unkept') is null;
-- a year: at most 30 days ahead in the ring
select control_make('c-year', 'p', now(), 'control_year');
select ujobs.cancel(control_id('c-year')) ->> 'state';
select expires_at - finished_at,
       slot = ((extract(epoch from finished_at)::bigint / 86400) + 30) % 32
  from test_store.job_history where key = 'c-year';

-- retry: from every state but running
select control_make('c-r-ready'), control_make('c-r-delayed', 'p', now() + interval '1 hour'),
       control_make('c-r-suspended', 's'), control_make('c-r-leased', 'l'),
       control_make_finished('c-r-done', 'd'), control_make_finished('c-r-dead', 'x'),
       control_make_finished('c-r-cancelled', 'c');
create temp table before as select key, control_id(key) as id from control_live union all select key, control_id(key) from control_ended;
select k, control_try(k, 'select t ->> ''state'' || '' '' || (t ->> ''attempt'') from ujobs.retry($1) t')
  from unnest('{c-r-ready,c-r-delayed,c-r-suspended,c-r-leased,c-r-done,c-r-dead,c-r-cancelled}'::text[]) k;
select v.key, v.state, v.attempt, due, run_due, v.last_error, v.reason, v.started_at, b.id = control_id(v.key) as same_id,
       j.run_id = md5(v.key)::uuid as same_run, j.priority, j.queue
  from control_live v join before b using (key) join test_store.job j using (key)
 where key like 'c-r-%' and v.state <> 'l' order by key;
select count(*) from control_ended where key like 'c-r-%';
-- outside changes show in the revision; a job that came back has one no run ever held
select key, case when revision between 1 and 9 then revision::text when revision > 9 then 'fresh' end
  from control_live where key like 'c-r-%' and state <> 'l' order by key;
-- steps
select control_try('c-r-ready', 'select ujobs.retry_from_step($1, null) ->> ''state''');
select control_try('c-r-ready', 'select ujobs.retry_from_step($1, ''charge'')');
select control_try('c-none', 'select ujobs.retry($1)');
select control_try('c-none', 'select ujobs.retry(null)');
-- the key is held by another: nothing moves
select control_make_finished('c-held', 'x');
create temp table held as select control_id('c-held') as id;
select control_make('c-held');
select control_try('c-held', format('select ujobs.retry(%s)', (select id from held)));
select state from test_store.job_history where id = (select id from held);
-- free again
select ujobs.cancel(control_id('c-held')) ->> 'state';
select ujobs.retry(id) ->> 'state' from held;
-- a dropped definition takes nothing back
select control_make('c-dropped', 'p', now(), 'control_dropped');
select control_try('c-dropped', 'select ujobs.retry($1)');
select control_try('c-dropped', 'select ujobs.cancel($1) ->> ''state''');

-- queues
create view control_queue as select name, paused from test_store.queue where name like 'control%';
select ujobs.resume_queue('control_unknown');
select * from control_queue;
begin;
select ujobs.pause_queue('control');
rollback;
select * from control_queue;
select ujobs.pause_queue('control'), ujobs.pause_queue('control');
select * from control_queue;
select ujobs.resume_queue('control');
select * from control_queue;
select control_try('', 'select ujobs.pause_queue('''')');
select control_try('', 'select ujobs.resume_queue(repeat(''x'', 64))');
select control_try('', 'select ujobs.pause_queue(null)');

-- purge
delete from test_store.job_history where key like 'c-%';
select control_make_finished('c-p-' || n, s::"char", now() - n * interval '1 day', 'control_purge' || n % 2)
  from unnest(array['d', 'x', 'c', 'd']) with ordinality as u (s, n);
select ujobs.purge('2 days 1 hour', 'control_purge0');
select key from control_ended order by key;
set ujobs.clock = '294276-12-31';
set ujobs.clock = '1969-12-31 23:59:59Z';
set ujobs.clock = '2099-01-01 00:00:00Z';
select ujobs.purge('50 days', 'control_purge0'), ujobs.purge('1 day 1 hour', 'control_purge0');
reset ujobs.clock;
begin;
select ujobs.purge('0', 'control_purge1');
rollback;
select key from control_ended order by key;
select ujobs.purge('100000 years', 'control_purge0');
select control_try('', 'select ujobs.purge(''-1 second'')');
select control_try('', 'select ujobs.purge(null)');
select control_try('', 'select ujobs.purge(''1 day'', '''')');

-- wait_for_job, as far as nothing runs
select control_make('c-w-live'), control_make_finished('c-w-done', 'd');
select control_try('c-w-live', 'select ujobs.wait_for_job($1)');
select control_try('c-w-live', 'select ujobs.wait_for_job($1, ''0'')');
select control_try('c-w-done', 'select t ->> ''state'' || '' '' || (t ->> ''result'') from ujobs.wait_for_job($1) t');
select control_try('c-none', 'select ujobs.wait_for_job($1)');
select control_try('c-w-done', 'select ujobs.wait_for_job($1, null)');
select control_try('c-w-done', 'select ujobs.wait_for_job(null)');
set role control_stranger;
select control_try('c-w-done', 'select ujobs.wait_for_job($1)');
set role control_enqueuer;
select control_try('c-w-done', 'select ujobs.wait_for_job($1) ->> ''state''');
reset role;
begin;
select control_make('c-w-own');
select control_try('c-w-own', 'select ujobs.wait_for_job($1)');
rollback;
begin;
select ujobs.retry(control_id('c-w-done')) ->> 'state';
select control_try('c-w-done', 'select ujobs.wait_for_job($1)');
rollback;
begin isolation level repeatable read;
select control_try('c-w-done', 'select ujobs.wait_for_job($1)');
rollback;

-- start and stop are remembered; the writer of the row stays known, in a subtransaction too
create view control_origin as
    select stopped, database = (select oid from pg_database where datname = current_database()) as here,
           row_xmin::text::bigint = inserted_by::text::bigint % 4294967296 as written_here
      from test_store.origin;
begin;
select ujobs.stop_workers(), ujobs.stop_workers();
select * from control_origin;
do $$
begin
    perform ujobs.start_workers();
    perform ujobs.start_workers();
exception when division_by_zero then
    null;
end
$$;
select * from control_origin;
-- A dump restored: another xmin, roles known by name alone.
update test_store.origin set stopped = true;
update test_store.definition set owner = 4294967000 where name = 'control';
update test_store.definition set owner = 'control_enqueuer'::regrole, owner_name = 'control_vanished' where name = 'control_year';
update test_store.definition set owner = 4294967001, owner_name = 'control_vanished' where name = 'control_unkept';
insert into test_store.definition_grant (definition_id, privilege, role, role_name)
select d.id, 'e', g.role, g.role_name
  from test_store.definition d,
       (values ('control_stranger'::regrole::oid, 'control_enqueuer'), ('control_enqueuer'::regrole, 'control_stranger'),
               ('control_owner'::regrole, 'control_vanished'), (0, 'public'), (4294967002, 'control_gone')) as g (role, role_name)
 where d.name = 'control';
select ujobs.stop_workers();
select * from control_origin;
select ujobs.start_workers();
select * from control_origin;
select name, case when owner < 4294967000 and owner <> 0 then owner::regrole::text else owner::text end from test_store.definition
 where name like 'control%' order by name;
select case when role between 1 and 4294966999 then role::regrole::text else role::text end, role_name
  from test_store.definition_grant where definition_id = (select id from test_store.definition where name = 'control')
 order by role_name;
rollback;
-- A copy made inside the cluster: the same xmin in another database; roles stay as they are.
begin;
select ujobs.stop_workers();
update test_store.origin set database = 1, inserted_by = pg_current_xact_id();
update test_store.definition set owner_name = 'control_renamed' where name = 'control';
select ujobs.stop_workers();
select * from control_origin;
select ujobs.start_workers();
select * from control_origin;
select owner::regrole, owner_name from test_store.definition where name = 'control';
rollback;

-- who may
select p.proname, has_function_privilege('control_stranger', p.oid, 'execute')
  from pg_proc p
 where p.pronamespace = 'ujobs'::regnamespace
   and p.proname in ('cancel', 'retry', 'retry_from_step', 'wait_for_job', 'purge', 'pause_queue', 'resume_queue', 'start_workers', 'stop_workers')
 order by p.proname collate "C";

-- read-only
begin read only;
select control_try('c-w-live', c) ~ '^25006'
  from unnest('{select ujobs.cancel($1),select ujobs.retry($1),select ujobs.pause_queue(''c''),select ujobs.resume_queue(''c''),select ujobs.purge(''0''),select ujobs.start_workers(),select ujobs.stop_workers()}'::text[]) c;
rollback;

\pset format aligned
\pset tuples_only off
delete from test_store.job where definition_id in (select id from test_store.definition where name like 'control%');
delete from test_store.job_history where definition_id in (select id from test_store.definition where name like 'control%');
delete from test_store.definition where name like 'control%';
delete from test_store.queue where name like 'control%';
drop view control_live, control_ended, control_queue, control_origin;
drop function control_make, control_make_finished, control_id, control_try;
drop role control_owner, control_enqueuer, control_stranger;
