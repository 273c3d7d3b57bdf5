-- Tasks: what define_task takes and refuses, what changes a task, and, with a
-- virtual clock and rounds of the scheduler by hand, which occurrences fire.
set timezone = 'UTC';
set datestyle = 'ISO, MDY';
set intervalstyle = 'postgres';
create schema tasks;
create function tasks.work(input jsonb) returns jsonb language sql as 'select $1';
create function tasks.what(occurrence timestamptz) returns jsonb language sql
    as $$select jsonb_build_array(jsonb_build_array('tasks_work', jsonb_build_object('n', extract(day from occurrence)::int)))$$;
create function tasks.nothing(occurrence timestamptz) returns jsonb language sql return null::jsonb;
create function tasks.nonsense(occurrence timestamptz) returns jsonb language sql return '{"job": 1}'::jsonb;
create function tasks.wrong(occurrence timestamptz) returns text language sql return 'x';
select ujobs.define_job('tasks_work', 'tasks.work', 'n:{n}') ->> 'name' as name;
select ujobs.define_job('tasks_other', 'tasks.work', 'other', tenant => '{t}', queue => 'tasks_q', priority => 7) ->> 'name' as name;

-- A call, in words: what it says, or code, message, DETAIL and HINT.
create function tasks.try(call text) returns table (said text) language plpgsql as $$
declare
    d text;
    h text;
begin
    return query execute 'select (' || call || ')::text';
exception when others then
    get stacked diagnostics d = pg_exception_detail, h = pg_exception_hint;
    return query select x from unnest(array[sqlstate || ': ' || sqlerrm, '  ' || nullif(d, ''), '  ' || nullif(h, '')]) x where x is not null;
end
$$;
\pset tuples_only on
\pset format unaligned

-- Refused.
select said from unnest(array[
    $$ujobs.define_task(null, '* * * * *', 'UTC', '[["tasks_work", {"n": 1}]]')$$,
    $$ujobs.define_task('t', null, 'UTC', '[["tasks_work", {"n": 1}]]')$$,
    $$ujobs.define_task('t', '* * * * *', null, '[["tasks_work", {"n": 1}]]')$$,
    $$ujobs.define_task('', '* * * * *', 'UTC', '[["tasks_work", {"n": 1}]]')$$,
    $$ujobs.define_task('t', '* * * *', 'UTC', '[["tasks_work", {"n": 1}]]')$$,
    $$ujobs.define_task('t', '* * * * *', 'Mars', '[["tasks_work", {"n": 1}]]')$$,
    $$ujobs.define_task('t', '* * * * *', 'UTC')$$,
    $$ujobs.define_task('t', '* * * * *', 'UTC', '[["tasks_work", {"n": 1}]]', 'tasks.what')$$,
    $$ujobs.define_task('t', '* * * * *', 'UTC', '[]')$$,
    $$ujobs.define_task('t', '* * * * *', 'UTC', '{}')$$,
    $$ujobs.define_task('t', '* * * * *', 'UTC', '["tasks_work"]')$$,
    $$ujobs.define_task('t', '* * * * *', 'UTC', '[["tasks_work", {"n": 1}], ["tasks_work", {}, 1]]')$$,
    $$ujobs.define_task('t', '* * * * *', 'UTC', '[[1, {}]]')$$,
    $$ujobs.define_task('t', '* * * * *', 'UTC', '[["tasks_unknown"]]')$$,
    $$ujobs.define_task('t', '* * * * *', 'UTC', '[["tasks_work", {"m": 1}]]')$$,
    $$ujobs.define_task('t', '* * * * *', 'UTC', '[["tasks_work", {"n": 1}]]', catch_up => 'all')$$,
    $$ujobs.define_task('t', '* * * * *', 'UTC', '[["tasks_work", {"n": 1}]]', max_catch_up => 0)$$,
    $$ujobs.define_task('t', '* * * * *', 'UTC', format('[["tasks_work", {"n": "%s"}]]', repeat('9', 990))::jsonb)$$,
    $$ujobs.define_task('t', '* * * * *', 'UTC', enqueue_fn => 'tasks.missing')$$,
    $$ujobs.define_task('t', '* * * * *', 'UTC', enqueue_fn => 'tasks.work')$$,
    $$ujobs.define_task('t', '* * * * *', 'UTC', enqueue_fn => 'tasks.wrong')$$,
    $$ujobs.drop_task('t')$$, $$ujobs.pause_task('t')$$, $$ujobs.resume_task('t')$$, $$ujobs.describe_task('t')$$,
    $$ujobs.task_entries('t')$$, $$ujobs.enqueue_task('t')$$, $$ujobs.drop_task(null)$$]) call, tasks.try(call);

-- Defined, again, otherwise, replaced.
set ujobs.clock = '2026-03-01 12:00Z';
select ujobs.define_task('tasks_a', '0 3 * * *', 'europe/berlin', '[["tasks_work", {"n": 1}], ["tasks_other", {"t": "x"}], ["tasks_work", {"n": 2}]]');
set ujobs.clock = '2026-03-01 13:00Z';
select ujobs.define_task('tasks_a', '0 3 * * *', 'Europe/Berlin', '[["tasks_work", {"n": 1.0}], ["tasks_other", {"t": "x"}], ["tasks_work", {"n": 2}]]') is not null;
select watermark from test_store.task where name = 'tasks_a';
select * from tasks.try($$ujobs.define_task('tasks_a', '0 4 * * *', 'Europe/Berlin', '[["tasks_work", {"n": 1}]]')$$);
select * from tasks.try($$ujobs.define_task('tasks_a', '0 3 * * *', 'Europe/Berlin', '[["tasks_work", {"n": 1}]]')$$);
select ujobs.define_task('tasks_a', '0 3 * * *', 'Europe/Berlin', '[["tasks_work"], ["tasks_other", {"t": "x"}]]', replace => true);
select ujobs.define_task('tasks_a', '0 3 * * *', 'Europe/Berlin', '[["tasks_work", {"n": 1}], ["tasks_other", {"t": "x"}]]', catch_up => 'run-all', max_catch_up => 3, description => 'a', replace => true);
select watermark from test_store.task where name = 'tasks_a';
select ujobs.define_task('tasks_a', '0 4 * * *', 'Europe/Berlin', '[["tasks_work", {"n": 1}], ["tasks_other", {"t": "x"}]]', replace => true);
select watermark from test_store.task where name = 'tasks_a';
select ujobs.define_task('tasks_either', '0 0 13 * 5', 'UTC', '[["tasks_work", {"n": 1}]]') ->> 'name';
select ujobs.drop_task('tasks_either');

-- Paused and resumed: what came due meanwhile is gone.  A pause outlives the
-- same definition; enabled => false defines a task paused.
select name, enabled, next_run from ujobs.tasks where name like 'tasks%';
select ujobs.pause_task('tasks_a');
select ujobs.define_task('tasks_a', '0 4 * * *', 'Europe/Berlin', '[["tasks_work", {"n": 1}], ["tasks_other", {"t": "x"}]]') is not null;
select name, enabled, next_run from ujobs.tasks where name like 'tasks%';
set ujobs.clock = '2026-03-05 13:00Z';
select ujobs_internal.fire_due_tasks();
select ujobs.resume_task('tasks_a');
select ujobs_internal.fire_due_tasks();
select name, enabled, next_run from ujobs.tasks where name like 'tasks%';
select ujobs.define_task('tasks_off', '* * * * *', 'UTC', '[["tasks_work", {"n": 1}]]', enabled => false) ->> 'name';
select name, enabled, next_run from ujobs.tasks where name = 'tasks_off';
select ujobs.define_task('tasks_off', '* * * * *', 'UTC', '[["tasks_work", {"n": 1}]]', replace => true) ->> 'name';
select name, enabled, next_run from ujobs.tasks where name = 'tasks_off';
select ujobs.drop_task('tasks_off');

-- A fire: run_at is the occurrence, the key has it, the definition's queue,
-- priority and tenant.  Once.
set ujobs.clock = '2026-03-06 03:00:00.5Z';
begin;
select ujobs_internal.fire_due_tasks();
select ujobs_internal.fire_due_tasks();
select name, state, run_at, idempotency_key, queue, priority, tenant_id, input from ujobs.jobs where name like 'tasks%' order by id;
select next_run, last_fired_at, last_occurrence, lateness, dropped, broken from ujobs.tasks where name = 'tasks_a';
rollback;

-- Downtime of three days and a half: skip fires the latest, run-once the
-- earliest, run-all the newest three; afterwards all are at one point.
set ujobs.clock = '2026-03-10 12:00Z';
create procedure tasks.downtime(policy text) language plpgsql as $$
declare
    r record;
begin
    perform ujobs.define_task('tasks_a', '0 */12 * * *', 'UTC', '[["tasks_work", {"n": 1}]]', catch_up => policy, max_catch_up => 3, replace => true);
    perform set_config('ujobs.clock', '2026-03-14 00:30Z', true);
    raise notice '%: % fired', policy, ujobs_internal.fire_due_tasks();
    for r in select idempotency_key, run_at from ujobs.jobs where name like 'tasks%' order by id loop
        raise notice '  % at %', r.idempotency_key, r.run_at;
    end loop;
    for r in select last_occurrence, dropped, next_run, ujobs_internal.fire_due_tasks() as again from ujobs.tasks where name = 'tasks_a' loop
        raise notice '  last %, % dropped, next %, again %', r.last_occurrence, r.dropped, r.next_run, r.again;
    end loop;
end
$$;
begin; call tasks.downtime('skip'); rollback;
begin; call tasks.downtime('run-once'); rollback;
begin; call tasks.downtime('run-all'); rollback;

-- Years of a task of every second: the same work.
begin;
select ujobs.define_task('tasks_a', '* * * * * *', 'America/New_York', '[["tasks_work", {"n": 1}]]', catch_up => 'run-all', max_catch_up => 2, replace => true) ->> 'name';
set local ujobs.clock = '2029-03-10 12:00Z';
select ujobs_internal.fire_due_tasks();
select idempotency_key, run_at from ujobs.jobs where name like 'tasks%' order by id;
select dropped = extract(epoch from timestamptz '2029-03-10 12:00Z' - timestamptz '2026-03-10 12:00Z') - 2 as all_others_dropped from ujobs.tasks where name = 'tasks_a';
rollback;

-- The clock set back an hour: nothing again.  Forward: as downtime.
begin;
select ujobs.define_task('tasks_a', '*/10 * * * *', 'UTC', '[["tasks_work", {"n": 1}]]', replace => true) ->> 'name';
set local ujobs.clock = '2026-03-10 12:10Z';
select ujobs_internal.fire_due_tasks();
set local ujobs.clock = '2026-03-10 11:10Z';
select ujobs_internal.fire_due_tasks(), next_run from ujobs.tasks where name = 'tasks_a';
set local ujobs.clock = '2026-03-10 12:10Z';
select ujobs_internal.fire_due_tasks();
set local ujobs.clock = '2026-03-10 13:10Z';
select ujobs_internal.fire_due_tasks();
select idempotency_key from ujobs.jobs where name like 'tasks%' order by id;
rollback;

-- Clocks forward and back in a zone: once each night.
begin;
select ujobs.define_task('tasks_a', '30 2 * * *', 'America/New_York', '[["tasks_work", {"n": 1}]]', catch_up => 'run-all', replace => true) ->> 'name';
set local ujobs.clock = '2026-03-09 12:00Z';
update test_store.task set watermark = '2026-03-06 12:00Z';
select ujobs_internal.fire_due_tasks();
set local ujobs.clock = '2026-11-02 12:00Z';
update test_store.task set watermark = '2026-10-30 12:00Z';
select ujobs_internal.fire_due_tasks();
select run_at from ujobs.jobs where name like 'tasks%' order by id;
rollback;

-- A function says what: a job of the task's own calls it.
begin;
select ujobs.define_task('tasks_fn', '0 0 * * *', 'UTC', enqueue_fn => 'tasks.what');
select ujobs.task_entries('tasks_fn'), ujobs.task_entries('tasks_fn', '2026-02-28Z'), ujobs.task_entries('tasks_a');
set local ujobs.clock = '2026-03-12 00:00Z';
select ujobs_internal.fire_due_tasks();
select name, run_at, idempotency_key, input from ujobs.jobs where name like '%tasks%' order by id;
select name, outcome, error from ujobs.drain();
select name, state, run_at, idempotency_key, input, jsonb_path_query_array(result, '$[*].job') as result from ujobs.jobs where name like '%tasks%' order by id;
select jsonb_array_length(ujobs.inspect_manifest() -> 'tasks'), ujobs.inspect_manifest() @? '$.jobs[*].name ? (@ starts with "task:")' as shows_its_job;
select ujobs.define_task('tasks_fn', '0 0 * * *', 'UTC', enqueue_fn => 'tasks.nothing', replace => true) ->> 'jobs';
set local ujobs.clock = '2026-03-13 00:00Z';
select ujobs_internal.fire_due_tasks();
select name, outcome, error from ujobs.drain();
select ujobs.define_task('tasks_fn', '0 0 * * *', 'UTC', enqueue_fn => 'tasks.nonsense', replace => true) ->> 'jobs';
set local ujobs.clock = '2026-03-14 00:00Z';
select ujobs.pause_task('tasks_a');
select ujobs_internal.fire_due_tasks();
select name, outcome, error from ujobs.drain(max_jobs => 1);
-- The job that was dropped is back with the same definition.
select ujobs.drop_job('task:tasks_fn', force => true);
set local ujobs.clock = '2026-03-15 00:00Z';
select ujobs_internal.fire_due_tasks();
select broken from ujobs.tasks where name = 'tasks_fn';
select ujobs.define_task('tasks_fn', '0 0 * * *', 'UTC', enqueue_fn => 'tasks.nonsense') ->> 'jobs';
select ujobs_internal.fire_due_tasks();
select broken from ujobs.tasks where name = 'tasks_fn';
-- Without the function there is no job for it either.
select ujobs.define_task('tasks_fn', '0 0 * * *', 'UTC', '[["tasks_work", {"n": 9}]]', replace => true) -> 'jobs';
select name, state from ujobs.jobs where name like 'task:%' order by id;
select count(*) from ujobs.definitions where name like 'task:%';
rollback;
begin;
select ujobs.define_task('tasks_' || repeat('ä', 28), '0 0 * * *', 'UTC', enqueue_fn => 'tasks.what') ->> 'kind';
select name, description from ujobs.definitions where name like 'task:%';
select ujobs.drop_task('tasks_' || repeat('ä', 28));
select count(*) from ujobs.definitions where name like 'task:%';
rollback;

-- Enqueued by hand: plain keys.
begin;
select deduped from ujobs.enqueue_task('tasks_a');
select deduped from ujobs.enqueue_task('tasks_a');
select idempotency_key, run_at from ujobs.jobs where name like 'tasks%' order by id;
rollback;

-- A broken task hurts nobody else and goes on by itself when it is mended.
begin;
create role tasks_owner login;
grant execute on function ujobs.define_task to tasks_owner;
select ujobs.grant_enqueue('tasks_work', 'tasks_owner');
set local role tasks_owner;
select ujobs.define_task('tasks_gone', '0 0 * * *', 'UTC', '[["tasks_work", {"n": 5}]]') ->> 'name';
reset role;
select ujobs.define_job('tasks_third', 'tasks.work', 'third') ->> 'name';
select ujobs.define_task('tasks_jobless', '0 0 * * *', 'UTC', '[["tasks_third"]]') ->> 'name';
select ujobs.define_task('tasks_keyless', '0 0 * * *', 'UTC', '[["tasks_work", {"n": 6}]]') ->> 'name';
select ujobs.define_task('tasks_well', '0 0 * * *', 'UTC', '[["tasks_other", {"t": "y"}]]') ->> 'name';
update test_store.task set enqueue = '[["tasks_work", {"m": 6}]]' where name = 'tasks_keyless';
-- A job that a task enqueues is in use.
savepoint in_use;
select ujobs.drop_job('tasks_third');
rollback to in_use;
select ujobs.drop_job('tasks_third', force => true);
select broken from ujobs.tasks where name = 'tasks_jobless';
revoke execute on function ujobs.define_task from tasks_owner;
update test_store.task set owner = 4294967295, owner_name = 'tasks_nobody' where name = 'tasks_gone';
set local ujobs.clock = '2026-03-12 00:00Z';
select ujobs_internal.fire_due_tasks();
select name, last_occurrence, broken from ujobs.tasks where name like 'tasks%' order by name;
select rule, detail from ujobs.check() where rule like 'task%';
select ujobs.define_job('tasks_third', 'tasks.work', 'third') ->> 'name';
select ujobs.set_task_owner('tasks_gone', 'tasks_owner');
select ujobs.revoke_enqueue('tasks_work', 'tasks_owner');
select ujobs_internal.fire_due_tasks();
select name, last_occurrence, broken from ujobs.tasks where name like 'tasks%' order by name;
-- A stricter schema is found out when the task is due, and when one is defined.
select ujobs.define_job('tasks_third', 'tasks.work', 'third', input_schema => '{"required": ["x"]}', replace => true) ->> 'name';
set local ujobs.clock = '2026-03-13 00:00Z';
select ujobs_internal.fire_due_tasks();
select last_occurrence, broken from ujobs.tasks where name = 'tasks_jobless';
select * from tasks.try($$ujobs.define_task('tasks_more', '0 0 * * *', 'UTC', '[["tasks_third", {"y": 1}]]')$$);
rollback;

-- Whose task it is.
begin;
create role tasks_plain login;
grant execute on all functions in schema ujobs to tasks_plain;
grant usage on schema tasks to tasks_plain;
set local role tasks_plain;
select count(*) from ujobs.tasks;
savepoint s; select ujobs.pause_task('tasks_a'); rollback to s;
select ujobs.resume_task('tasks_a'); rollback to s;
select ujobs.drop_task('tasks_a'); rollback to s;
select ujobs.task_entries('tasks_a'); rollback to s;
select ujobs.enqueue_task('tasks_a'); rollback to s;
select ujobs.define_task('tasks_a', '* * * * *', 'UTC', enqueue_fn => 'tasks.what', replace => true); rollback to s;
select ujobs.define_task('tasks_b', '* * * * *', 'UTC', '[["tasks_work", {"n": 1}]]'); rollback to s;
select ujobs_internal.fire_due_tasks(); rollback to s;
-- Who changes it does not become its owner, so the jobs must be the owner's to enqueue.
reset role;
select ujobs.grant_enqueue('tasks_work', 'tasks_plain');
set local role tasks_plain;
select ujobs.define_task('tasks_mine', '* * * * *', 'UTC', '[["tasks_work", {"n": 1}]]') ->> 'name';
reset role;
savepoint t;
select ujobs.define_task('tasks_mine', '* * * * *', 'UTC', '[["tasks_other", {"t": "y"}]]', replace => true); rollback to t;
select ujobs.define_task('tasks_mine', '* * * * *', 'UTC', '[["tasks_work", {"n": 2}]]', replace => true) -> 'jobs';
select owner from ujobs.tasks where name = 'tasks_mine';
rollback;

-- Up again as it was.
reset ujobs.clock;
select ujobs.drop_task('tasks_a');
select ujobs.drop_job('tasks_work');
select ujobs.drop_job('tasks_other');
set client_min_messages = warning;
drop schema tasks cascade;
\pset tuples_only off
