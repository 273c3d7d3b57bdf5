-- Draining: attempts in this session, inside this transaction, in virtual time.
set timezone to 'UTC';
set datestyle to 'ISO';
\pset format unaligned
\set SHOW_CONTEXT never
create schema drain_test;
set search_path = drain_test, public;
create table trail (n int generated always as identity, job text, input jsonb, note text);

-- A job that does what its input says.
create function act(input jsonb) returns jsonb language plpgsql as $$
begin
    insert into drain_test.trail (job, input, note)
    values (ujobs.current_job() ->> 'name', input, ujobs.current_job() ->> 'attempt');
    if input ? 'raise' then
        raise exception using errcode = input ->> 'raise', message = 'as asked: ' || (input ->> 'raise');
    end if;
    if input ? 'after' then
        perform ujobs.retry_after((input ->> 'after')::interval, 'come back');
    end if;
    if input ? 'fail' then
        perform ujobs.fail(input ->> 'fail');
    end if;
    if input ? 'enqueue' then
        perform ujobs.enqueue('drain_' || (input ->> 'enqueue'), '{"id": "child"}');
    end if;
    if input ? 'do' then
        execute input ->> 'do';
    end if;
    return jsonb_build_object('id', input -> 'id');
end
$$;

-- Its variants differ in their retry policies.
create function define(job text, retry jsonb default null, priority int default 0, batch int default 1) returns text
language sql as $$
    select ujobs.define_job('drain_' || job, 'drain_test.act', '{id}', queue => 'drain', retry => define.retry,
                            priority => define.priority, batch => define.batch, replace => true) ->> 'name'
$$;
create function add(job text, id text, more jsonb default '{}') returns void
language sql as $$
    select from ujobs.enqueue('drain_' || job, jsonb_build_object('id', id) || more)
$$;
create function drain(max_jobs int default 1000) returns table (name text, outcome text, error text)
language sql as $$
    select name, outcome, error from ujobs.drain('drain', max_jobs)
$$;
create view jobs as
    select name, idempotency_key as key, state, attempt, run_at, result, started_at, finished_at, last_error
      from ujobs.jobs where queue = 'drain' order by id;

select define('once', '{"attempts": 1}');
select define('thrice', '{"delay": "1 day", "maxDelay": "3 days", "jitter": false}');
select define('at_once', '{"delay": 0, "jitter": false}');
select define('dropped', '{"attempts": 2, "delay": 0, "deadLetter": false}');
select define('urgent', null, -10);
select define('batch', null, 0, 100);

-- Nothing is due.
select * from drain();

-- Every outcome.
begin;
set local ujobs.clock = '2026-03-08 06:59:59Z';
select add('once', 'good'), add('once', 'bad', '{"raise": "22012"}'), add('thrice', 'bad', '{"raise": "22012"}'),
       add('dropped', 'bad', '{"raise": "22012"}'), add('thrice', 'fatal', '{"fail": "no such customer"}');
select * from drain();
select name, key, state, attempt, run_at, started_at, finished_at from jobs;
select name, key, result, last_error from jobs;
-- What failed left nothing.
select job, input ->> 'id' as id from trail;
rollback;
select count(*) from jobs;
select count(*) from trail;

-- Three attempts over three days, in no time.
begin;
set local ujobs.clock = '2026-03-08 06:59:59Z';
select add('thrice', 'slow', '{"raise": "P0001"}');
select * from drain();
select state, attempt, run_at from jobs;
set local ujobs.clock = '2026-03-09 06:59:58Z';
select * from drain();
set local ujobs.clock = '2026-03-09 06:59:59Z';
select * from drain();
select state, attempt, run_at from jobs;
set local ujobs.clock = '2026-03-11 06:59:59Z';
select * from drain();
select state, attempt, finished_at, last_error ->> 'name' as error, last_error -> 'cause' ->> 'sqlstate' as cause from jobs;
rollback;

-- Without a delay a retry belongs to the same drain, and so does what a handler enqueues.
begin;
set local ujobs.clock = '2026-03-08 06:59:59Z';
select add('at_once', 'a', '{"raise": "P0001"}'), add('batch', 'parent', '{"enqueue": "urgent"}'), add('batch', 'last');
select * from drain();
rollback;

-- A failed handler enqueued nothing.
begin;
set local ujobs.clock = '2026-03-08 06:59:59Z';
select add('once', 'a', '{"enqueue": "urgent", "do": "select 1/0"}');
select * from drain();
select name, state from jobs;
rollback;

-- In order of priority, due time and id; no more than asked for; one by one whatever the batch.
begin;
set local ujobs.clock = '2026-03-08 07:00:00Z';
select from ujobs.enqueue('drain_batch', '{"id": "later"}', run_at => '2026-03-08 06:30Z');
select from ujobs.enqueue('drain_once', '{"id": "sooner"}', run_at => '2026-03-08 06:00Z');
select from ujobs.enqueue('drain_once', '{"id": "not yet"}', run_at => '2026-03-08 07:00:01Z');
select from ujobs.enqueue('drain_batch', '{"id": "urgent"}', priority => -1);
select add('batch', 'second'), add('once', 'third'), add('urgent', 'first'), add('batch', 'bad', '{"raise": "22012"}'), add('batch', 'fifth');
select * from drain(3);
select count(*) from drain();
select job, input ->> 'id' as id from trail order by n;
rollback;

-- Queues: one, all, none that is paused.
begin;
set local ujobs.clock = '2026-03-08 07:00:00Z';
select add('once', 'here');
select from ujobs.enqueue('drain_once', '{"id": "there"}', queue => 'drain_other');
select name, outcome from ujobs.drain('drain_other');
select ujobs.pause_queue('drain');
select * from drain();
select ujobs.resume_queue('drain');
select * from drain();
-- A handler that pauses its queue.
select add('urgent', 'stop', '{"do": "select ujobs.pause_queue(''drain'')"}'), add('once', 'waits');
select * from drain();
rollback;

-- retry_after waits exactly as long, up to maxDelay.
begin;
set local ujobs.clock = '2026-03-08 07:00:00Z';
select add('thrice', 'a', '{"after": "90 minutes"}'), add('thrice', 'b', '{"after": "30 days"}'), add('thrice', 'c', '{"after": "0"}');
select * from drain();
select key, state, attempt, run_at from jobs;
rollback;

-- The decision: policy, attempt, error -> what becomes of the job and when.
create function decide(retry jsonb, raised text, attempts int default 1) returns text language plpgsql as $$
declare
    answer text := '';
    r record;
    t timestamptz := '2026-01-01Z';
    job text;
begin
    perform define('decide', retry);
    perform set_config('ujobs.clock', t::text, true);
    perform add('decide', 'x', jsonb_build_object('raise', raised));
    for n in 1 .. attempts loop
        perform set_config('ujobs.clock', t::text, true);
        select * into strict r from ujobs.drain('drain', 1);
        select case when r.outcome = 'retry' then j.run_at end into t from ujobs.jobs j where j.id = r.id;
        answer := concat_ws(' ', nullif(answer, ''), r.outcome,
                            case when t is not null then (t - current_setting('ujobs.clock')::timestamptz)::text end);
    end loop;
    raise exception using errcode = 'ZZZZZ', message = answer;
exception when sqlstate 'ZZZZZ' then
    return sqlerrm;
end
$$;
set intervalstyle to 'postgres';
select decide('{"jitter": false}', '22012', 3);
select decide('{"jitter": false, "attempts": 5, "delay": "2s"}', '22012', 5);
select decide('{"jitter": false, "attempts": 5, "delay": "2s", "maxDelay": "5s"}', '22012', 5);
select decide('{"jitter": false, "attempts": 4, "delay": "2s", "backoff": "linear"}', '22012', 4);
select decide('{"jitter": false, "attempts": 4, "delay": "2s", "backoff": "fixed"}', '22012', 4);
select decide('{"attempts": 1}', '22012');
select decide('{"attempts": 2, "delay": 0, "deadLetter": false}', '22012', 2);
-- Terminal: an SQLSTATE, a class, and the codes that always are.
select decide('{"delay": 0, "terminal": ["22012"]}', '22012');
select decide('{"delay": 0, "terminal": ["22012"]}', '22013');
select decide('{"delay": 0, "terminal": ["22"]}', '22013');
select decide('{"delay": 0, "terminal": ["22"]}', '23514');
select decide('{"delay": 0, "terminal": ["22"], "deadLetter": false}', '22012');
select code, decide('{"delay": 0}', code)
  from unnest(array['UJ012', 'UJ013', 'UJ016', 'UJ020', 'UJ026', 'UJ014', 'UJ018', '57014', '40001', '57P01']) code;
-- Jitter takes from half of the delay to all of it, and not always the same.
select min(wait) >= '5 s' as least, max(wait) <= '10 s' as most, count(distinct wait) > 1 as varies
  from (select replace(decide('{"delay": "10s"}', '22012'), 'retry ', '')::interval as wait from generate_series(1, 50)) w;

-- What a handler sees: its tenant and trace, gone afterwards.
create function see(input jsonb) returns jsonb language plpgsql as $$
begin
    perform set_config('work_mem', '7MB', false), set_config('ujobs.tenant_id', 'stolen', false);
    set local statement_timeout = '1h';
    return jsonb_build_object('job', ujobs.current_job() - array['id', 'runId'], 'user', current_user);
end
$$;
create function see_tenant(input jsonb) returns jsonb language sql as $$
    select jsonb_build_object('tenant', current_setting('ujobs.tenant_id', true), 'trace', current_setting('ujobs.traceparent'))
$$;
select ujobs.define_job('drain_see', 'drain_test.see', '{id}', tenant => '{org}', queue => 'drain') ->> 'name' as name;
select ujobs.define_job('drain_see_tenant', 'drain_test.see_tenant', '{id}', tenant => '{org}', queue => 'drain') ->> 'name' as name;
begin;
set local work_mem = '5MB';
set local ujobs.tenant_id = 'mine';
select from ujobs.enqueue('drain_see', '{"id": 1, "org": "acme"}', enqueued_by => 'me',
                          traceparent => '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01');
select from ujobs.enqueue('drain_see_tenant', '{"id": 1, "org": "acme"}',
                          traceparent => '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01');
select from ujobs.enqueue('drain_see_tenant', '{"id": 2, "org": "other"}');
select * from drain();
select result from jobs;
select current_setting('work_mem') as work_mem, current_setting('ujobs.tenant_id') as tenant,
       current_setting('statement_timeout') as statement_timeout, current_setting('ujobs.traceparent') as trace,
       ujobs.current_job() is null as outside;
rollback;

-- What a handler leaves behind goes, what was there before stays.
begin;
create temp table drain_mine as select 1 as n;
prepare drain_mine as select 1;
declare drain_mine cursor for select 1;
select add('once', x::text, jsonb_build_object('do', format($$
    create temp table drain_left (id serial primary key);
    create function pg_temp.drain_left() returns int language sql return 1;
    create temp table drain_left_too as select 1;
    set work_mem = '7MB'$$))) from generate_series(1, 2) x;
select add('once', 'cursor', '{"do": "declare drain_left cursor with hold for select 1"}'),
       add('once', 'cursor again', '{"do": "declare drain_left cursor for table drain_mine"}'),
       add('once', 'prepared', '{"do": "prepare drain_left as select 1"}'),
       add('once', 'prepared and failed', '{"do": "prepare drain_left as select 1; create temp table drain_left(); select 1/0"}'),
       add('once', 'prepared again', '{"do": "prepare drain_left as select 1"}');
select * from drain();
select relname from pg_class where relnamespace = pg_my_temp_schema() order by 1;
select name from pg_cursors where name ~ 'drain';
select name from pg_prepared_statements;
fetch drain_mine;
rollback;
deallocate drain_mine;

-- Roles: SET ROLE is undone.
create role drain_owner;
create role drain_other;
begin;
select add('urgent', 'role', '{"do": "set role drain_owner"}'), add('once', 'see');
select * from drain();
select current_user = session_user as same;
rollback;

-- Own jobs only; with a role that was taken on, a handler cannot go back.
grant usage on schema drain_test to drain_owner, drain_other;
grant execute on function ujobs.define_job, ujobs.drain to drain_owner;
alter role drain_owner login;
create function whoami(input jsonb) returns text language sql as 'select current_user::text';
create function escape(input jsonb) returns text language plpgsql as $$
begin
    execute input ->> 'do';
    return current_user;
end
$$;
set role drain_owner;
select ujobs.define_job('drain_whoami', 'drain_test.whoami', '{id}', queue => 'drain') ->> 'name' as name;
select ujobs.define_job('drain_escape', 'drain_test.escape', '{id}', queue => 'drain', retry => '{"attempts": 1}') ->> 'name' as name;
begin;
select from ujobs.enqueue('drain_whoami', '{"id": 1}');
select from ujobs.enqueue('drain_escape', '{"id": 1, "do": "reset role"}');
select from ujobs.enqueue('drain_escape', '{"id": 2, "do": "set role postgres"}');
select from ujobs.enqueue('drain_escape', '{"id": 3, "do": "reset session authorization"}');
reset role;
select add('once', 'of somebody else');
set role drain_owner;
select name, outcome, error from ujobs.drain('drain');
select name, result from ujobs.jobs where queue = 'drain' order by id;
reset role;
select * from drain();
rollback;
set role drain_other;
select * from ujobs.drain();
reset role;
-- Members of the owner are not the owner.
grant drain_owner to drain_other;
grant execute on function ujobs.drain to drain_other;
begin;
set local role drain_owner;
select from ujobs.enqueue('drain_whoami', '{"id": 1}');
set local role drain_other;
select * from ujobs.drain();
rollback;

-- Others' jobs, while no engine serves.
select add('once', 'committed earlier');
select ujobs.stop_workers();
begin;
select * from drain();
rollback;
select * from drain();
select state from jobs;

-- Kinds: a durable job's procedure runs, but cannot commit; a command says what the server says.
create procedure proc(input jsonb, inout result jsonb) language plpgsql as $$
begin
    result := jsonb_build_object('was', input);
end
$$;
create procedure commits(input jsonb) language plpgsql as $$
begin
    insert into drain_test.trail (note) values ('never');
    commit;
end
$$;
select ujobs.define_job('drain_proc', 'drain_test.proc', '{id}', queue => 'drain') ->> 'name' as name;
select ujobs.define_job('drain_commits', 'drain_test.commits', '{id}', queue => 'drain', retry => '{"attempts": 1}') ->> 'name' as name;
select ujobs.define_command('drain_vacuum', 'vacuum drain_test.trail', 'vacuum', queue => 'drain', retry => '{"attempts": 1}') ->> 'name' as name;
select ujobs.define_command('drain_command', $$insert into drain_test.trail (note) values ('by command')$$, 'command', queue => 'drain') ->> 'name' as name;
select ujobs.define_external_job('drain_external', '{id}', queue => 'drain') ->> 'name' as name;
begin;
select from ujobs.enqueue('drain_proc', '{"id": 1}');
select from ujobs.enqueue('drain_commits', '{"id": 1}');
select from ujobs.enqueue('drain_vacuum');
select from ujobs.enqueue('drain_command');
select from ujobs.enqueue('drain_external', '{"id": 1}');
select * from drain();
select name, state, result, last_error -> 'cause' ->> 'sqlstate' as cause from jobs where key <> 'committed earlier';
select note from trail where job is null;
rollback;

-- A missing handler suspends, for it may come back; a dropped definition cancels.
begin;
set local ujobs.clock = '2026-03-08 07:00:00Z';
select from ujobs.enqueue('drain_whoami', '{"id": 1}');
select from ujobs.enqueue('drain_proc', '{"id": 1}');
drop procedure proc;
select * from drain();
select state, attempt, last_error ->> 'sqlstate' as code from jobs where name = 'drain_proc';
create procedure proc(input jsonb) language sql as 'select 1';
set local ujobs.clock = '2026-03-08 07:00:10Z';
select * from drain();
select state, attempt from jobs where name = 'drain_proc';
rollback;
-- It looks again at once when the definition gets another handler.
begin;
set local ujobs.clock = '2026-03-08 07:00:00Z';
create function drain_test.gone(input jsonb) returns int language sql as 'select 1';
create function drain_test.found(input jsonb) returns int language sql as 'select null::int';
select ujobs.define_job('drain_gone', 'drain_test.gone', '{id}', queue => 'drain') ->> 'name';
select from ujobs.enqueue('drain_gone', '{"id": 1}');
drop function gone;
select * from drain();
select jsonb_pretty(last_error) from jobs where name = 'drain_gone';
select ujobs.define_job('drain_gone', 'drain_test.found', '{id}', queue => 'drain', replace => true) ->> 'name';
select * from drain();
-- A function that returns NULL, or no row: JSON null.
select state, attempt, result, last_error from jobs where name = 'drain_gone';
rollback;

-- A handler can neither cancel nor retry its own job.
begin;
select add('once', op, jsonb_build_object('do', format('select ujobs.%s((ujobs.current_job() ->> ''id'')::bigint)', op)))
  from unnest(array['cancel', 'retry']) op;
select name, outcome, regexp_replace(error, '\d+', 'N') as error from drain();
rollback;
-- One that cancels another: that one is not run.
begin;
select add('urgent', 'killer', '{"do": "select ujobs.cancel(id) from ujobs.jobs where idempotency_key = ''victim''"}'), add('once', 'victim');
select * from drain();
select key, state from jobs where key = 'victim';
rollback;

-- Inside a job: drain is refused, and an enqueue needs no block.
begin;
select add('once', 'nested', '{"do": "select * from ujobs.drain()"}');
select * from drain();
rollback;
select add('once', 'inside', '{"enqueue": "urgent"}');
set ujobs.outbox_mode = 'required';
select * from drain();
reset ujobs.outbox_mode;

-- A savepoint's jobs are this transaction's, and gone with it.
begin;
savepoint s;
select add('once', 'in a savepoint');
select * from drain();
rollback to s;
select * from drain();
savepoint s;
select add('once', 'in another');
release s;
select * from drain();
rollback;

-- Nothing is kept of a job whose retention is 0, whatever became of it.
select ujobs.define_job('drain_unkept', 'drain_test.act', '{id}', queue => 'drain', retention => '0', retry => '{"attempts": 1}') ->> 'name' as name;
begin;
select add('unkept', 'good'), add('unkept', 'bad', '{"raise": "22012"}');
select * from drain();
select count(*) from jobs where name = 'drain_unkept';
rollback;

-- In a function with an exception block, and in a loop over its rows.
do $$
declare
    r record;
begin
    perform add('once', 'in a loop'), add('once', 'bad', '{"raise": "22012"}');
    for r in select * from drain() loop
        raise notice '% %', r.outcome, r.error;
    end loop;
    raise exception 'undo';
exception when raise_exception then
    raise notice 'undone';
end
$$;
select count(*) from jobs where key = 'in a loop';

-- A cancel of the whole statement is no job's failure, even if somebody around it catches it.
create function wait() returns void language plpgsql as 'begin loop perform 1; end loop; end';
create function try_drain() returns text language plpgsql as $$
begin
    perform drain();
    return 'drained';
exception when query_canceled then
    return 'cancelled';
end
$$;
\set VERBOSITY sqlstate
begin;
select add('thrice', 'sleeper', '{"do": "select drain_test.wait()"}');
savepoint s;
set local statement_timeout = '50ms';
select * from drain();
rollback to s;
set local statement_timeout = '50ms';
select try_drain();
set local statement_timeout = 0;
select key, state, attempt from jobs where key = 'sleeper';
select ujobs.current_job() is null as outside;
-- What a handler raises itself is its failure.
select ujobs.cancel(id) ->> 'state' as state from ujobs.jobs where name = 'drain_thrice';
select add('once', 'raises', '{"raise": "57014"}');
select * from drain();
rollback;

-- Refused.
\set VERBOSITY default
select * from ujobs.drain('drain', 0);
select * from ujobs.drain('drain', -1);
select * from ujobs.drain('drain', null);
begin read only;
select * from ujobs.drain('drain');
rollback;

-- While an engine serves, this transaction's own jobs only, those of its savepoints too.  The other
-- one is due in a far future, which only this session's clock has reached.
create function await_engine(serves boolean) returns void language plpgsql as $$
begin
    while serves <> exists (select from ujobs.workers where kind = 'dispatcher' and database = current_database()
                                                        and state = 'running') loop
    end loop;
end
$$;
set statement_timeout = '1 min';
select from ujobs.enqueue('drain_once', '{"id": "not mine"}', run_at => '2126-01-01Z');
select ujobs.start_workers();
select await_engine(true);
begin;
set local ujobs.clock = '2126-03-08 07:00:00Z';
select * from drain();
select add('once', 'mine');
savepoint s;
select add('once', 'of a savepoint');
release s;
do $$ begin perform add('once', 'of a block'); exception when others then null; end $$;
select * from drain();
select key, state from jobs where name = 'drain_once' and (key ~ '^of a' or key ~ 'mine$');
rollback;
select ujobs.stop_workers();
select await_engine(false);
begin;
set local ujobs.clock = '2126-03-08 07:00:00Z';
select * from drain();
rollback;

select * from ujobs.check();
reset statement_timeout;
reset search_path;
\set VERBOSITY terse
set client_min_messages = warning;
select ujobs.drop_job(name, force => true) from ujobs.definitions where name ~ '^drain_' order by name;
drop schema drain_test cascade;
drop owned by drain_owner, drain_other;
drop role drain_owner, drain_other;
