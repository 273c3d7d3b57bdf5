-- publish_event, and what satisfies a wait.
\set VERBOSITY terse
\set SHOW_CONTEXT never

-- ---- arguments ----
select ujobs.publish_event('events_a') < ujobs.publish_event('events_a', 'null', '', '0') as ids_grow;
select name, match, payload, published_at <= clock_timestamp() as published, expires_at - published_at as ttl,
       publisher = current_user::regrole as publisher
  from test_store.event where name = 'events_a' order by id;
\set VERBOSITY default
select ujobs.publish_event(null);
select ujobs.publish_event('');
select ujobs.publish_event(repeat('x', 1001));
select ujobs.publish_event('events_a', null);
select ujobs.publish_event('events_a', '{}', repeat('x', 1001));
select ujobs.publish_event('events_a', '{}', null, null);
select ujobs.publish_event('events_a', '{}', null, '-1 second');
select ujobs.publish_event('events_a', '{}', null, '178000000 years');
select ujobs.publish_event('events_endless', '{}', null, '296530 years') > 0 as published;
select expires_at from test_store.event where name = 'events_endless';
begin transaction read only;
select ujobs.publish_event('events_a');
rollback;

-- Transactional, in a savepoint too.
begin;
select ujobs.publish_event('events_gone') > 0 as published;
savepoint s;
select ujobs.publish_event('events_gone') > 0 as published;
rollback to s;
select count(*) from test_store.event where name = 'events_gone';
rollback;
select count(*) from test_store.event where name = 'events_gone';

-- ---- who may ----
create role events_app;
create role events_member in role events_app;
set role events_app;
select ujobs.publish_event('events_app');
reset role;
grant execute on function ujobs.publish_event to events_app;
set role events_member;
select ujobs.publish_event('events_app') > 0 as allowed;
reset role;
revoke execute on function ujobs.publish_event from events_app;
set role events_member;
select ujobs.publish_event('events_app');
reset role;

-- A running job may, whoever owns it.
create role events_owner login;
create schema events_app authorization events_owner;
create function events_app.tell(input jsonb) returns bigint language sql
    as $$ select ujobs.publish_event('events_told', input, 'k') $$;
grant usage on schema events_app to events_owner;
grant execute on function ujobs.define_job, ujobs.drain to events_owner;
set role events_owner;
begin;
select ujobs.define_job('events_tell', 'events_app.tell', 'k') is not null as defined;
select deduped from ujobs.enqueue('events_tell', '{"a": 1}');
select name, outcome, error from ujobs.drain();
select ujobs.publish_event('events_told');
rollback;
reset role;

-- ---- what satisfies a wait ----
-- Jobs suspended by hand; drain runs those whose wait is over.
begin;
set local ujobs.clock = '2026-03-08 12:00:00Z';
create function events_app.noop(input jsonb) returns text language sql as $$ select 'went on' $$;
select ujobs.define_job('events_noop', 'events_app.noop', '{id}', queue => 'events') is not null as defined;

create function pg_temp.waits(key text, event text, match text default null, since text default '11:00', deadline text default '13:00')
returns bigint language plpgsql as $$
declare
    waiting bigint;
begin
    select e.id into waiting from ujobs.enqueue('events_noop', jsonb_build_object('id', key)) e;
    update test_store.job set state = 's', started_at = due_at, due_at = ('2026-03-08 ' || deadline || 'Z')::timestamptz where id = waiting;
    insert into test_store.job_step (job_id, started_at, seq, attempts, status, name, wake_at, since, event, match)
    values (waiting, '2026-03-08 11:00Z', 1, 1, 'w', 'wait', ('2026-03-08 ' || deadline || 'Z')::timestamptz,
            ('2026-03-08 ' || since || 'Z')::timestamptz, event, match);
    return waiting;
end
$$;
create function pg_temp.publish(at text, event text, match text default null, ttl interval default '1 day')
returns void language plpgsql as $$
begin
    perform set_config('ujobs.clock', '2026-03-08 ' || at || 'Z', true);
    perform ujobs.publish_event(event, '{}', match, ttl);
    perform set_config('ujobs.clock', '2026-03-08 12:00:00Z', true);
end
$$;
create function pg_temp.woken() returns text language sql as $$
    select coalesce(string_agg(j.input ->> 'id' || ':' || d.outcome, ' ' order by j.input ->> 'id' collate "C"), 'nobody')
      from ujobs.drain('events') d join ujobs.jobs j using (id)
$$;

select pg_temp.woken() as nothing_waits;
select count(pg_temp.waits(key, event, match))
  from (values ('any', 'paid', null), ('one', 'paid', '1'), ('two', 'paid', '2'), ('empty', 'paid', ''),
               ('other', 'sent', null), ('other1', 'sent', '1')) as w (key, event, match);
select pg_temp.woken() as no_event;
select pg_temp.publish('11:30', 'unrelated', '1');
select pg_temp.woken() as unrelated;
select pg_temp.publish('11:30', 'paid', '1');
select pg_temp.woken() as of_match_1_and_any;
select pg_temp.publish('11:30', 'paid');
select pg_temp.woken() as without_match;
select pg_temp.publish('11:30', 'paid', '');
select pg_temp.woken() as empty_match;

-- From the instant on which events count, to the deadline, both included.
select count(pg_temp.waits(key, 'edge', key, since, deadline))
  from (values ('since', '11:30', '13:00'), ('before', '11:30:00.000001', '13:00'), ('until', '11:00', '12:30')) as w (key, since, deadline);
select pg_temp.publish('11:30', 'edge', key) from (values ('since'), ('before')) as e (key);
select pg_temp.publish('12:30', 'edge', 'until');
select pg_temp.woken() as from_its_instant_on;
select pg_temp.waits('late', 'late', null, '11:00', '12:10') > 0 as waits;
select pg_temp.publish('12:10:00.000001', 'late');
select pg_temp.woken() as after_the_deadline;

-- Expired at this very instant is expired.
select count(pg_temp.waits(key, 'ttl', key)) from (values ('over'), ('left')) as w (key);
select pg_temp.publish('11:30', 'ttl', 'over', '30 minutes'), pg_temp.publish('11:30', 'ttl', 'left', '30 minutes 1 us');
select pg_temp.woken() as unexpired;

-- An event that another step of the job has taken; it is still there for other jobs.
select pg_temp.waits('taken', 'take') > 0 as waits;
select pg_temp.publish('11:30', 'take');
insert into test_store.job_step (job_id, started_at, completed_at, seq, attempts, status, name, event_id)
select j.id, now(), now(), 2, 1, 'c', 'first', e.id from ujobs.jobs j, test_store.event e
 where j.idempotency_key = 'taken' and e.name = 'take';
select pg_temp.woken() as taken_by_itself;
select pg_temp.waits('fresh', 'take') > 0 as waits;
select pg_temp.woken() as for_another_job;
select pg_temp.publish('11:31', 'take');
select pg_temp.woken() as next_event;

-- A wait that was left behind wakes nobody: the job is suspended at another one.
select pg_temp.waits('moved', 'left behind') > 0 as waits;
update test_store.job set due_at = due_at + interval '1 day' where key = 'moved';
select pg_temp.publish('11:30', 'left behind');
select pg_temp.woken() as left_behind;

-- Children: live, ended, never there.
create function pg_temp.waits_for(key text, child bigint) returns void language plpgsql as $$
begin
    perform pg_temp.waits(key, 'x');
    update test_store.job_step set event = null, since = null, child_id = child
     where job_id = (select id from test_store.job j where j.key = $1);
end
$$;
select pg_temp.waits('child', 'never') as child \gset
select pg_temp.waits_for('parent', :child);
select pg_temp.waits_for('orphan', -1);
select pg_temp.woken() as orphan;
select ujobs.cancel(:child) ->> 'state' as child;
select pg_temp.woken() as parent;
rollback;

-- A child that keeps no history has an outcome as long as somebody waits for it.
begin;
create function events_app.fails(input jsonb) returns void language plpgsql as $$ begin raise 'no'; end $$;
create function events_app.nothing(input jsonb) returns void language sql as $$ select $$;
select count(ujobs.define_job('events_' || f, 'events_app.' || f, '{id}', retention => '0', retry => '{"attempts": 1}',
                              queue => 'events'))
  from (values ('nothing'), ('fails')) as d (f);
create temp table child as
select f || ' ' || n as name, e.id
  from (values ('nothing'), ('fails')) as d (f), generate_series(1, 4) n,
       ujobs.enqueue('events_' || f, jsonb_build_object('id', n), delay => case when n > 2 then interval '1 hour' else '0' end) e;
insert into test_store.job_step (job_id, started_at, seq, attempts, status, name, wake_at, child_id)
select -1, now(), id, 1, 'w', name, 'infinity', id from child where name like '% 1' or name like '% 3';
select count(*) from ujobs.drain('events');
select ujobs.cancel(id) ->> 'state' as state from child where name in ('nothing 3', 'nothing 4') order by name;
select ujobs.drop_job('events_fails', force => true);
select c.name, j.state from child c join ujobs.jobs j using (id) order by c.name;
select count(*) from test_store.job_history h join child using (id) where h.expires_at <> h.finished_at + interval '1 hour';
rollback;

drop schema events_app cascade;
revoke execute on function ujobs.define_job, ujobs.drain from events_owner;
drop role events_app, events_member, events_owner;
delete from test_store.event where name like 'events%';

-- A handler was replaced while its job waited: the wait it left behind wakes nobody.
begin;
create procedure events_replaced(input jsonb) language plpgsql as
    $$ begin call ujobs.step_wait_for_event('before', 'events_before', '', null); end $$;
select ujobs.define_job('events_replaced', 'public.events_replaced', '{n}', queue => 'events_replaced') ->> 'kind' as kind;
select deduped from ujobs.enqueue('events_replaced', '{"n": 1}');
select outcome from ujobs.drain('events_replaced');
create or replace procedure events_replaced(input jsonb) language plpgsql as
    $$ begin call ujobs.step_wait_for_event('after', 'events_after', '', null); end $$;
select ujobs.publish_event('events_before', '{}', '') is not null as published;
select outcome from ujobs.drain('events_replaced');
select s.name, s.status, s.wake_at from ujobs.steps s join ujobs.jobs j on j.id = s.job_id where j.queue = 'events_replaced';
select outcome from ujobs.drain('events_replaced');
select ujobs.publish_event('events_after', '{}', '') is not null as published;
select outcome from ujobs.drain('events_replaced');
rollback;
