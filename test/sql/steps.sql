-- Steps of durable jobs, through drain in virtual time.
set timezone to 'UTC';
set datestyle to 'ISO';
set intervalstyle to 'postgres';
\pset format unaligned
\pset null '~'
\set SHOW_CONTEXT never
create schema steps_test;
set search_path = steps_test, public;
create table trail (n int generated always as identity, job text, note text);
create table gate (name text primary key, open boolean not null default false);
create table once (name text primary key);

-- Effects: a line of the trail, and an error while a gate is closed.
create function note(what text) returns text language sql as $$
    insert into steps_test.trail (job, note) values (ujobs.current_job() ->> 'name', what) returning note
$$;
create function pass(what text) returns text language plpgsql as $$
begin
    if not (select open from steps_test.gate where name = what) then
        raise exception 'gate "%" is closed', what using errcode = 'ZZ001', detail = 'of a test', hint = 'Open it.';
    end if;
    return what;
end
$$;

-- A durable job with this body, and one attempt if not said otherwise.
create procedure define(job text, body text, attempts int default 1)
language plpgsql as $$
begin
    execute format($f$create or replace procedure steps_test.%I(input jsonb, inout result jsonb) language plpgsql as
        %L$f$, job, 'declare r jsonb; t text; i int; ' || E'\nbegin\n' || body || E'\nend');
    perform ujobs.define_job('steps_' || job, 'steps_test.' || quote_ident(job), '{id}', queue => 'steps', replace => true,
                             retry => jsonb_build_object('attempts', attempts, 'delay', 60000, 'backoff', 'fixed', 'jitter', false));
end
$$;
create procedure add(job text, id text default '1', more jsonb default '{}') language sql as $$
    select from ujobs.enqueue('steps_' || job, jsonb_build_object('id', id) || more)
$$;
create procedure add_all() language sql as $$
    select from (select name from ujobs.definitions where queue = 'steps' order by name) d, ujobs.enqueue(d.name, '{"id": 1}')
$$;
create function drain(max_jobs int default 1000) returns table (name text, outcome text, error text) language sql as $$
    select replace(name, 'steps_', ''), outcome, error from ujobs.drain('steps', max_jobs)
$$;
create view jobs as
    select replace(name, 'steps_', '') as name, state, attempt, run_at, result, last_error from ujobs.jobs where queue = 'steps' order by id;
create view steps as
    select replace(j.name, 'steps_', '') as job, s.seq, s.name, s.status, s.attempts, s.output, s.error ->> 'message' as error, s.wake_at
      from ujobs.steps s
      join ujobs.jobs j on j.id = s.job_id
     where j.queue = 'steps' order by j.id, s.seq;

-- What each job died of.
create view deaths as
    select name, state, coalesce(last_error -> 'cause', last_error) ->> 'sqlstate' as sqlstate,
           coalesce(last_error -> 'cause', last_error) ->> 'message' as message,
           coalesce(last_error -> 'cause', last_error) ->> 'detail' as detail,
           coalesce(last_error -> 'cause', last_error) ->> 'hint' as hint
      from jobs;

-- The three forms of step_run, and a procedure's result.
begin;
set local ujobs.clock = '2026-03-08 06:59:59Z';
call define('forms', $$
    call ujobs.step_run('two', 'select steps_test.note(''two'')');
    call ujobs.step_run('three', 'select steps_test.note($1 ->> ''what'')', '{"what": "three"}');
    call ujobs.step_run('four', 'select steps_test.note($1 ->> ''id'')', input, r);
    result := jsonb_build_object('four', r, 'two', ujobs.step_result('two'), 'unknown', ujobs.step_result('unknown'));
    call ujobs.step_run('null args', 'select $1 is null', null, r);
    result := result || jsonb_build_object('null args', r);
$$);
call add('forms', 'mine');
select * from drain();
select name, state, attempt, result from jobs;
select * from steps;
select note from trail order by n;
rollback;

-- A block that drain ran again keeps its place before the steps that follow it.
begin;
call define('order', $$
    if ujobs.step_begin('first') then call ujobs.step_end(); end if;
    call ujobs.step_run('second', 'select 2');
    if ujobs.step_begin('third') then call ujobs.step_end(); end if;
    call ujobs.step_run('fourth', 'select 4');
$$);
call add('order', 'mine');
select * from drain();
select seq, name from steps order by seq;
rollback;

-- A command is one statement.
begin;
call define('two statements', $$ call ujobs.step_run('both', 'select 1; select 2'); $$);
call add('two statements', 'mine');
call define('no statement', $$ call ujobs.step_run('none', ' -- nothing'); $$);
call add('no statement', 'mine');
select * from drain();
rollback;

-- Results of every type; the first column of the first row.
begin;
create type pair as (a int, b text);
create domain percent as int check (value between 0 and 100);
create table made (id int generated always as identity, note text);
call define('types', $$
    for i in 0 .. jsonb_array_length(input -> 'commands') - 1 loop
        call ujobs.step_run(input -> 'commands' ->> i, input -> 'commands' ->> i, null, r);
        result := coalesce(result, '[]') || jsonb_build_array(coalesce(r, '"(NULL)"'));
    end loop;
    -- What is read back is what was given.
    for i in 0 .. jsonb_array_length(input -> 'commands') - 1 loop
        if ujobs.step_result(input -> 'commands' ->> i) is distinct from nullif(result -> i, '"(NULL)"') then
            raise 'not the same: %', input -> 'commands' ->> i;
        end if;
    end loop;
$$);
create table commands (n int generated always as identity, command text);
insert into commands (command) values
    ('select 1'), ('select 9223372036854775807'), ('select 1.50'), ('select ''NaN''::float8'), ('select true'), ('select ''text'''), ('select null'),
    ('select null::jsonb'), ('select ''null''::jsonb'), ('select ''"scalar"''::jsonb'), ('select ''{"a": [1, {"b": null}]}''::jsonb'), ('select ''{"a":1, "a":2}''::json'),
    ('select (1, ''x'')::steps_test.pair'), ('select row(1, ''x'')'), ('select array[1, 2]'), ('select ''{}''::text[]'), ('select array[(1, ''x'')::steps_test.pair]'),
    ('select 7::steps_test.percent'), ('select ''2026-03-08 07:00Z''::timestamptz'), ('select ''\x00ff''::bytea'), ('select int4range(1, 5)'),
    ('select pg_notify(''steps'', '''')'), ('select 1 where false'), ('select'), ('select 1, 2'), ('values (3), (2), (1)'), ('select g from generate_series(5, 9) g'),
    ('table steps_test.made'), ('insert into steps_test.made (note) values (''a'') returning id'), ('insert into steps_test.made (note) values (''b'')'),
    ('insert into steps_test.made (note) select ''c'' from generate_series(1, 3) returning note, id'), ('update steps_test.made set note = ''d'' where id = 1 returning made'),
    ('delete from steps_test.made where id > 100 returning id'), ('with x as (delete from steps_test.made returning id) select count(*) from x'),
    ('create table steps_test.created (a int)'), ('drop table steps_test.created'), ('show server_encoding'), ('explain (costs off) select 1'),
    ('do $d$ begin perform steps_test.note(''by do''); end $d$');
select from ujobs.enqueue('steps_types', jsonb_build_object('id', 1, 'commands', (select jsonb_agg(command order by n) from commands)));
select * from drain();
select c.command, j.result -> (n - 1)::int as result from jobs j, commands c order by n;
select count(*), count(*) filter (where attempts = 1 and status = 'completed') as once from steps;
rollback;

-- A large result comes back whole, in this attempt and later.
begin;
set local ujobs.clock = '2026-03-08 07:00:00Z';
call define('large', $$
    call ujobs.step_run('large', 'select jsonb_build_object(''a'', string_agg(md5(g::text), '''')) from generate_series(1, 100000) g', null, r);
    result := jsonb_build_array(md5(r ->> 'a'), md5(ujobs.step_result('large') ->> 'a'), length(r ->> 'a'));
    call ujobs.step_sleep('1 hour');
$$);
call add('large');
select * from drain();
set local ujobs.clock = '2026-03-08 08:00:00Z';
select * from drain();
select result ->> 0 = md5(string_agg(md5(g::text), '')) as whole, result ->> 0 = result ->> 1 as same, result -> 2 as length
  from jobs, generate_series(1, 100000) g group by result;
select length(output::text) as length from steps where name = 'large';
rollback;

-- What cannot be a command, or an argument.
begin;
call define('null_args', $$call ujobs.step_run('s', 'select 1', null);$$);
call define('null_command', $$call ujobs.step_run('s', null);$$);
call define('null_name', $$call ujobs.step_run(null, 'select 1');$$);
call define('no_name', $$call ujobs.step_run('', 'select 1');$$);
call define('long_name', $$call ujobs.step_run(repeat('x', 1001), 'select 1');$$);
call define('null_block', $$if ujobs.step_begin(null) then call ujobs.step_end(); end if;$$);
call define('null_sleep', $$call ujobs.step_sleep(null::interval);$$);
call define('null_sleep_name', $$call ujobs.step_sleep(null, '1 day');$$);
call define('negative_sleep', $$call ujobs.step_sleep('-1 second');$$);
call define('endless_sleep', $$call ujobs.step_sleep('300000 years');$$);
call define('null_until', $$call ujobs.step_sleep_until('s', null);$$);
call define('endless_until', $$call ujobs.step_sleep_until('s', 'infinity');$$);
call define('ancient_until', $$call ujobs.step_sleep_until('s', '-infinity');$$);
call define('empty', $$call ujobs.step_run('s', '');$$);
call define('parameter', $$call ujobs.step_run('s', 'select $2');$$);
call define('syntax', $$call ujobs.step_run('s', 'selec 1');$$);
call define('commit', $$call ujobs.step_run('s', 'commit');$$);
call define('savepoint', $$call ujobs.step_run('s', 'savepoint a');$$);
call define('copy', $$call ujobs.step_run('s', 'copy steps_test.trail to stdout');$$);
call define('vacuum', $$call ujobs.step_run('s', 'vacuum steps_test.trail');$$);
call define('calls_commit', $$call ujobs.step_run('s', 'do $d$ begin commit; end $d$');$$);
call add_all();
select * from drain();
select * from deaths order by name;
rollback;

-- Where a step cannot stand.
begin;
create function in_function() returns void language plpgsql as $$begin call ujobs.step_run('s', 'select 1'); end$$;
create procedure definer() security definer language plpgsql as $$begin call ujobs.step_run('s', 'select 1'); end$$;
create procedure setter() set work_mem = '1MB' language plpgsql as $$begin call ujobs.step_run('s', 'select 1'); end$$;
create procedure plain() language plpgsql as $$begin call ujobs.step_run('s', 'select steps_test.note(''nested'')'); end$$;
create procedure by_sql() language sql as $$call ujobs.step_run('s', 'select 1')$$;
call define('function', $$perform steps_test.in_function();$$);
call define('definer', $$call steps_test.definer();$$);
call define('setter', $$call steps_test.setter();$$);
call define('by_sql', $$call steps_test.by_sql();$$);
call define('execute', $$execute 'call ujobs.step_run(''s'', ''select 1'')';$$);
call define('do', $$execute 'do $d$ begin call ujobs.step_run(''s'', ''select 1''); end $d$';$$);
call define('exception', $$begin call ujobs.step_run('s', 'select 1'); exception when others then null; end;$$);
call define('exception_outside', $$begin call steps_test.plain(); exception when others then null; end;$$);
call define('sleep_caught', $$begin call ujobs.step_sleep('1 day'); exception when query_canceled then null; end;$$);
call define('begin_caught', $$begin if ujobs.step_begin('s') then call ujobs.step_end(); end if; exception when others then null; end;$$);
call define('end_in_exception', $$if ujobs.step_begin('s') then begin perform steps_test.note('lost'); call ujobs.step_end(); exception when others then null; end; end if;$$);
call define('end_by_execute', $$if ujobs.step_begin('s') then perform steps_test.note('lost'); execute 'call ujobs.step_end()'; end if;$$);
call define('step_in_step', $$call ujobs.step_run('outer', 'call ujobs.step_run(''s'', ''select 1'')');$$);
call define('begin_in_step', $$call ujobs.step_run('outer', 'select ujobs.step_begin(''s'')');$$);
call define('first_error', $$
    begin perform steps_test.in_function(); exception when others then null; end;
    begin call ujobs.step_sleep('-1 day'); exception when others then null; end;
    call ujobs.step_run('next', 'select steps_test.note(''never'')');$$);
create function atomic(input jsonb) returns int language plpgsql as $$begin call ujobs.step_run('s', 'select 1'); return 1; end$$;
create function atomic_begin(input jsonb) returns boolean language plpgsql as $$begin return ujobs.step_begin('s'); end$$;
create function atomic_result(input jsonb) returns jsonb language plpgsql as $$begin return coalesce(ujobs.step_result('s'), '"none"'); end$$;
select ujobs.define_job('steps_' || f, 'steps_test.' || f, '{id}', queue => 'steps') ->> 'kind' as kind from unnest(array['atomic', 'atomic_begin', 'atomic_result']) f;
select ujobs.define_command('steps_command', $$call ujobs.step_run('s', 'select 1')$$, 'c', queue => 'steps') ->> 'kind' as kind;
call add_all();
select * from drain();
select * from deaths order by name;
select note from trail;
select result from jobs where name = 'atomic_result';
-- In a plain procedure that the handler calls, it may.
call define('nested', $$call steps_test.plain();$$);
call add('nested', '2');
select * from drain();
-- Wherever drain itself is called.
call add('nested', '3');
do $$
declare
    r record;
begin
    begin
        for r in execute 'select * from steps_test.drain()' loop
            raise notice '% %', r.name, r.outcome;
        end loop;
    exception when division_by_zero then
        null;
    end;
end
$$;
rollback;

-- Outside of a job.
call ujobs.step_run('s', 'select 1');
call ujobs.step_run('s', 'select 1', '{}');
call ujobs.step_run('s', 'select 1', '{}', null);
select ujobs.step_begin('s');
call ujobs.step_end();
select ujobs.step_result('s');
call ujobs.step_sleep('1 day');
call ujobs.step_sleep('s', '1 day');
call ujobs.step_sleep_until('s', now());
do $$ begin call ujobs.step_run('s', 'select 1'); end $$;

-- Blocks, balanced and not.
begin;
set local ujobs.clock = '2026-03-08 07:00:00Z';
call define('block', $$
    if ujobs.step_begin('a') then
        perform steps_test.note('a');
        begin
            perform 1 / 0;
        exception when division_by_zero then
            perform steps_test.note('caught');
        end;
        call ujobs.step_end('{"a": 1}');
    end if;
    if ujobs.step_begin('no result') then
        call ujobs.step_end();
    end if;
    result := jsonb_build_object('a', ujobs.step_result('a'), 'none', ujobs.step_result('no result'));
$$);
call define('error_as_result', $$
    if ujobs.step_begin('a') then
        begin
            perform steps_test.pass('never');
            call ujobs.step_end('{"ok": true}');
        exception when others then
            r := jsonb_build_object('error', sqlerrm);
        end;
    end if;
    result := '"not reached"';
$$);
call define('error_as_result_well', $$
    if ujobs.step_begin('a') then
        begin
            perform steps_test.note('undone'), steps_test.pass('never');
            r := '{"ok": true}';
        exception when others then
            r := jsonb_build_object('error', sqlerrm);
        end;
        call ujobs.step_end(r);
    end if;
    result := ujobs.step_result('a');
$$);
call define('no_end', $$if ujobs.step_begin('a') then perform steps_test.note('lost'); end if;$$);
call define('no_begin', $$call ujobs.step_end();$$);
call define('end_twice', $$if ujobs.step_begin('a') then call ujobs.step_end(); call ujobs.step_end(); end if;$$);
call define('begin_twice', $$if ujobs.step_begin('a') then if ujobs.step_begin('b') then call ujobs.step_end(); end if; call ujobs.step_end(); end if;$$);
call define('run_in_block', $$if ujobs.step_begin('a') then call ujobs.step_run('b', 'select 1'); call ujobs.step_end(); end if;$$);
call define('sleep_in_block', $$if ujobs.step_begin('a') then call ujobs.step_sleep('1 day'); call ujobs.step_end(); end if;$$);
call define('begin_unheeded', $$perform ujobs.step_begin('a'); perform steps_test.note('lost');$$);
insert into gate values ('never');
call add_all();
select * from drain();
select * from deaths where state = 'dead' order by name;
select name, result from jobs where state = 'done' order by name;
select note from trail order by n;
select job, name, status, attempts, output, error from steps where job in ('block', 'error_as_result_well', 'no_end', 'end_twice') order by job, seq;
rollback;

-- A name is used once in an attempt.
begin;
call define('twice', $$
    call ujobs.step_run('a', 'select steps_test.note(''once'')');
    call ujobs.step_run('a', 'select steps_test.note(''twice'')');$$, 5);
call define('twice_block', $$
    call ujobs.step_run('a', 'select steps_test.note(''once'')');
    if ujobs.step_begin('a') then call ujobs.step_end(); end if;$$, 5);
call define('twice_sleep', $$
    call ujobs.step_sleep('a', '0');
    call ujobs.step_sleep_until('a', '2000-01-01');$$, 5);
call define('twice_caught', $$
    call ujobs.step_run('a', 'select steps_test.note(''once'')');
    begin call ujobs.step_run('a', 'select 1'); exception when others then null; end;$$, 5);
call add_all();
select * from drain();
select * from deaths order by name;
rollback;

-- A failed step is recorded and run again; completed steps are kept.
begin;
set local ujobs.clock = '2026-03-08 07:00:00Z';
insert into gate values ('second');
call define('retried', $$
    call ujobs.step_run('first', 'select steps_test.note(''first '' || ($1 ->> ''attempt''))', ujobs.current_job());
    call ujobs.step_run('second', 'select steps_test.note(''second'') || steps_test.pass(''second'')');
    call ujobs.step_run('third', 'select steps_test.note(''third '' || ($1 ->> ''attempt''))', ujobs.current_job());
    result := jsonb_build_array(ujobs.step_result('first'), ujobs.step_result('second'), ujobs.step_result('third'));
$$, 3);
call add('retried');
select * from drain();
select name, state, attempt, run_at, last_error ->> 'message' as error from jobs;
select * from steps;
select jsonb_pretty(error - 'context') from ujobs.steps where status = 'failed';
set local ujobs.clock = '2026-03-08 07:01:00Z';
select * from drain();
select * from steps;
update gate set open = true;
set local ujobs.clock = '2026-03-08 07:02:00Z';
select * from drain();
select name, state, attempt, result from jobs;
select * from steps;
select note from trail order by n;
rollback;

-- What commands did stands when the attempt fails; what the handler did itself, and its blocks, do not.
begin;
set local ujobs.clock = '2026-03-08 07:00:00Z';
call define('stands', $$
    perform steps_test.note('by the handler');
    if ujobs.step_begin('block') then
        perform steps_test.note('by a block');
        call ujobs.step_end();
    end if;
    call ujobs.step_run('command', 'select steps_test.note(''by a command'')');
    raise exception 'now it fails';
$$, 2);
call add('stands');
select * from drain();
select note from trail order by n;
select * from steps;
set local ujobs.clock = '2026-03-08 07:01:00Z';
select * from drain();
select note from trail order by n;
select * from steps;
rollback;

-- Sleeps, with names of their own and derived ones, in a loop too.
begin;
set local ujobs.clock = '2026-03-08 07:00:00Z';
call define('sleeps', $$
    for i in 1 .. 3 loop
        call ujobs.step_run('day ' || i, 'select steps_test.note($1 #>> ''{}'')', to_jsonb('day ' || i));
        call ujobs.step_sleep('1 day');
    end loop;
    call ujobs.step_sleep('nap', '90 minutes');
    call ujobs.step_sleep('24:00:00');
    call ujobs.step_sleep('0');
    call ujobs.step_sleep_until('opening', '2026-03-14 09:00 UTC');
    call ujobs.step_sleep_until('past', '2000-01-01 UTC');
    result := to_jsonb(ujobs.current_job() -> 'attempt');
$$);
call add('sleeps');
select * from drain();
select name, state, attempt, run_at, ujobs.why(id) ->> 'state' as why from ujobs.jobs where queue = 'steps';
select * from steps;
select * from drain();
set local ujobs.clock = '2026-03-09 06:59:59.999Z';
select * from drain();
set local ujobs.clock = '2026-03-09 07:00:00Z';
select * from drain();
set local ujobs.clock = '2026-03-10 07:00:00Z';
select * from drain();
set local ujobs.clock = '2026-03-11 07:00:00Z';
select * from drain();
-- The session's style has no part in names.
set local intervalstyle = 'iso_8601';
set local ujobs.clock = '2026-03-11 08:30:00Z';
select * from drain();
set local ujobs.clock = '2026-03-12 08:30:00Z';
select * from drain();
set local ujobs.clock = '2026-03-14 09:00:00Z';
select * from drain();
select seq, name, status, attempts, wake_at from steps;
select state, attempt, result from jobs;
select note from trail order by n;
rollback;

-- A sleep goes on where its first arrival began, also after a failure.
begin;
set local ujobs.clock = '2026-03-08 07:00:00Z';
insert into gate values ('after');
call define('woken', $$
    call ujobs.step_sleep('nap', '1 hour');
    call ujobs.step_run('after', 'select steps_test.pass(''after'')');
$$, 2);
call add('woken');
select * from drain();
set local ujobs.clock = '2026-03-08 08:00:00Z';
select * from drain();
update gate set open = true;
set local ujobs.clock = '2026-03-08 08:01:00Z';
select * from drain();
select name, status, attempts, wake_at, error from steps;
select state, attempt from jobs;
rollback;

-- A handler replaced while its job sleeps: steps go by name.
begin;
set local ujobs.clock = '2026-03-08 07:00:00Z';
call define('replaced', $$
    call ujobs.step_run('a', 'select steps_test.note(''a'')');
    call ujobs.step_run('b', 'select steps_test.note(''b'')');
    call ujobs.step_run('gone', 'select steps_test.note(''gone'')');
    call ujobs.step_sleep('nap', '1 hour');
$$);
call add('replaced');
select * from drain();
call define('replaced', $$
    call ujobs.step_run('inserted', 'select steps_test.note(''inserted'')');
    call ujobs.step_run('b', 'select steps_test.note(''never'')');
    call ujobs.step_sleep('nap', '9 hours');
    call ujobs.step_run('renamed', 'select steps_test.note(''renamed'')');
    call ujobs.step_run('a', 'select steps_test.note(''never'')');
$$);
set local ujobs.clock = '2026-03-08 08:00:00Z';
select * from drain();
select seq, name, status, attempts, output from steps;
select note from trail order by n;
-- Another kind of step under the same name.
call define('kinds', $$
    call ujobs.step_sleep('x', '1 hour');
$$);
call add('kinds');
select * from drain();
call define('kinds', $$
    call ujobs.step_run('x', 'select steps_test.note(''x'')', null, result);
$$);
set local ujobs.clock = '2026-03-08 09:00:00Z';
select * from drain();
select name, status, attempts, output from steps where job = 'kinds';
select result from jobs where name = 'kinds';
rollback;

-- A missing handler waits for its return, and loses no step.
begin;
set local ujobs.clock = '2026-03-08 07:00:00Z';
call define('missing', $$
    call ujobs.step_run('a', 'select steps_test.note(''a'')');
    call ujobs.step_sleep('nap', '1 hour');
    call ujobs.step_run('b', 'select steps_test.note(''b'')');
$$);
call add('missing');
select * from drain();
drop procedure missing;
set local ujobs.clock = '2026-03-08 08:00:00Z';
select * from drain();
select state, attempt from jobs;
call define('missing', $$
    call ujobs.step_run('a', 'select steps_test.note(''a'')');
    call ujobs.step_sleep('nap', '1 hour');
    call ujobs.step_run('b', 'select steps_test.note(''b'')');
$$);
set local ujobs.clock = '2026-03-08 08:00:10Z';
select * from drain();
select state, attempt from jobs;
select note from trail order by n;
rollback;

-- COMMIT and ROLLBACK have no place in drain.
begin;
call define('commits', $$commit;$$);
call define('rolls_back', $$call ujobs.step_run('a', 'select steps_test.note(''stands'')'); rollback;$$);
call add('commits');
call add('rolls_back');
select * from drain();
select note from trail;
select count(*) from jobs where state = 'dead' and last_error -> 'cause' ->> 'sqlstate' = '2D000';
rollback;

-- Cancelled and dropped while it sleeps; retried from a step.
begin;
set local ujobs.clock = '2026-03-08 07:00:00Z';
call define('controlled', $$
    call ujobs.step_run('a', 'select steps_test.note(''a'')');
    call ujobs.step_sleep('nap', '1 hour');
    call ujobs.step_run('b', 'select steps_test.note(''b'')');
$$);
call add('controlled');
select * from drain();
select ujobs.cancel(id, 'no more') ->> 'state' as state from ujobs.jobs where queue = 'steps';
set local ujobs.clock = '2026-03-08 09:00:00Z';
select * from drain();
select name, status, wake_at from steps;
select ujobs.retry(id) ->> 'state' as state from ujobs.jobs where queue = 'steps';
select * from drain();
select name, status, wake_at from steps;
select ujobs.retry_from_step(id, 'nap') ->> 'state' as state from ujobs.jobs where queue = 'steps';
select * from drain();
select name, status, wake_at from steps;
select note from trail order by n;
rollback;

-- 300 steps in one drain, each once.
begin;
call define('many', $$
    for i in 1 .. 300 loop
        call ujobs.step_run('step ' || i, 'insert into steps_test.once values ($1 #>> ''{}'')', to_jsonb(i));
    end loop;
$$);
call add('many');
select * from drain();
select count(*), min(seq), max(seq), max(attempts) as attempts from steps;
select count(*) from once;
rollback;

-- A drain that was cancelled leaves nothing for the next one.
call define('interrupted', $$
    call ujobs.step_run('a', 'select steps_test.note(''a'')');
    perform pg_sleep(100);
$$);
create function fails(input jsonb) returns int language sql as 'select 1 / 0';
select ujobs.define_job('steps_fails', 'steps_test.fails', '{id}', queue => 'steps', retry => '{"attempts": 1}') ->> 'kind' as kind;
begin;
call add('interrupted');
set local statement_timeout = '200ms';
select * from drain();
rollback;
begin;
call add('fails');
select * from drain();
select count(*) from steps;
rollback;

-- Nothing was left of all this.
select count(*) from jobs;
select * from ujobs.check();
set client_min_messages to warning;
drop schema steps_test cascade;
select ujobs.drop_job('steps_fails'), ujobs.drop_job('steps_interrupted');
