-- Steps as rows: what becomes of them when a job ends or is retried, and how
-- they show.  The rows are written by hand; no engine runs.
\set VERBOSITY terse
set client_min_messages = warning;
\pset null '~'
set timezone = 'UTC';
set datestyle = 'ISO';
create schema steps_store;
create procedure steps_store.durable(input jsonb) language plpgsql as $$begin raise 'no luck'; end$$;
select ujobs.define_job('steps_store', 'steps_store.durable', '{id}', retry => '{"attempts": 1}') ->> 'kind' as kind;
select ujobs.define_job('steps_store_unkept', 'steps_store.durable', '{id}', retry => '{"attempts": 1}', retention => '0') ->> 'kind' as kind;

begin;
set local ujobs.clock = '2020-03-08 07:00Z';

-- A job with five steps: done, done with the results JSON null and NULL,
-- failed, and waiting for an event.
create function steps_store.add(id text, name text default 'steps_store') returns bigint
language sql as $$
with job as (
    select e.id from ujobs.enqueue(name, jsonb_build_object('id', id)) e),
step as (
    insert into test_store.job_step
           (job_id, seq, name, status, attempts, started_at, completed_at, output, error, wake_at, since, event, match, event_id)
    select job.id, s.*
      from job,
           (values (1, 'charge', 'c'::"char", 2, timestamptz '2020-03-08 06:00Z', timestamptz '2020-03-08 06:00:01.234567Z',
                    jsonb '{"secret": [1, null, {"a": null}]}', null::jsonb, null::timestamptz, null::timestamptz, null, null, null::bigint),
                   (2, 'json null', 'c', 1, '2020-03-08 06:01Z', '2020-03-08 06:01Z', 'null', null, null, null, null, null, null),
                   (4, 'sql null', 'c', 1, '2020-03-08 06:02Z', '2020-03-08 06:02:00.001Z', null, null, 'infinity', '2020-03-08 06:00Z', 'paid', null, 7),
                   (5, 'mail', 'f', 1, '2020-03-08 06:03Z', null, null, '{"message": "secret"}', null, null, null, null, null),
                   (6, 'approval', 'w', 1, '2020-03-08 06:04Z', null, null, null, '2020-03-09 06:04Z', '2020-03-08 06:00Z', 'approved', 'm1', null)) s)
select job.id from job
$$;
create function steps_store.try(query text) returns text language plpgsql as $$
declare
    value text;
begin
    execute query into value;
    return value;
exception when others then
    return sqlstate || ': ' || regexp_replace(sqlerrm, 'job \d+', 'job N');
end
$$;
create function steps_store.left(job bigint) returns bigint language sql as
$$select count(*) from test_store.job_step where job_id = $1$$;
create function steps_store.folded(job bigint) returns int language sql as
$$select jsonb_array_length(steps) from test_store.job_history where id = $1$$;

-- Live.
select steps_store.add('a') as a \gset
select seq, name, status, output, attempts, error, started_at, completed_at, wake_at, event, match
  from ujobs.steps where job_id = :a order by seq;
select jsonb_pretty(ujobs.inspect_job(:a) -> 'steps');
create temp table before as select * from test_store.job_step where job_id = :a;
create temp table shown as select * from ujobs.steps where job_id = :a;
create temp table trace as select ujobs.inspect_job(:a) -> 'steps' as steps;

-- Cancelled: folded, and shown as before.
select ujobs.cancel(:a) ->> 'state' as state, steps_store.left(:a), steps_store.folded(:a);
select ujobs.inspect_job(:a) -> 'steps' = steps as same from trace;
select count(*) as differ from ((table shown except select * from ujobs.steps where job_id = :a) union all (select * from ujobs.steps where job_id = :a except table shown)) d;

-- Retried: restored to the same rows, every step kept; the wait stays one.
select t ->> 'state' as state, t ->> 'attempt' as attempt, t -> 'steps' = steps as same from ujobs.retry(:a) t, trace;
select count(*) as differ from ((table before except select * from test_store.job_step where job_id = :a) union all (select * from test_store.job_step where job_id = :a except table before)) d;
select events_since from test_store.job where id = :a;

-- Dead, by the run.
select outcome, error from ujobs.drain(max_jobs => 1);
select state, steps_store.left(:a), steps_store.folded(:a) from ujobs.jobs where id = :a;

-- From a step on: that one and all later ones are dropped.  No wait for an
-- event is among those from here.
update test_store.job_history set steps = steps - 4 where id = :a;
select jsonb_path_query_array(ujobs.retry_from_step(:a, 'mail'), '$.steps[*].name') as kept;
select events_since from test_store.job where id = :a;
-- Here one is, a completed one.
set local ujobs.clock = '2020-03-08 08:00Z';
select jsonb_path_query_array(ujobs.retry_from_step(:a, 'json null'), '$.steps[*].name') as kept;
select events_since, due_at, attempt from test_store.job where id = :a;
-- It is kept through history.
select ujobs.cancel(:a) ->> 'state' as state;
select ujobs.retry(:a) ->> 'state' as state;
select events_since from test_store.job where id = :a;
select ujobs.retry_from_step(:a, 'charge') -> 'steps' as kept;

-- No such step: nothing is changed.
select steps_store.add('b') as b \gset
select ujobs.cancel(:b) ->> 'state' as state;
select steps_store.try(format('select ujobs.retry_from_step(%s, %L)', :b, 'nonsense'));
select state, steps_store.left(:b), steps_store.folded(:b) from ujobs.jobs where id = :b;

-- The key is held: nothing is moved.
select id as c from ujobs.enqueue('steps_store', '{"id": "b"}') \gset
select steps_store.try(format('select ujobs.retry_from_step(%s, %L)', :b, 'charge'));
select state, steps_store.left(:b), steps_store.folded(:b) from ujobs.jobs where id = :b;

-- A sleeping one, and ones that wait, say so.
select steps_store.add('d') as d \gset
create function steps_store.suspend(job bigint, due timestamptz) returns void language sql as
$$update test_store.job set state = 's', due_at = due, attempt = 1, started_at = '2020-03-08 06:00Z' where id = $1$$;
select steps_store.suspend(:d, '2020-03-09 06:04Z');
select ujobs.why(:d);
update test_store.job_step set match = null where job_id = :d and seq = 6;
select ujobs.why(:d) ->> 'reason';
update test_store.job_step set event = null, child_id = 12 where job_id = :d and seq = 6;
select ujobs.why(:d);
update test_store.job_step set wake_at = 'infinity' where job_id = :d and seq = 6;
select ujobs.why(:d) ->> 'reason';
update test_store.job_step set child_id = null, status = 's', wake_at = '2020-03-09 06:04Z' where job_id = :d and seq = 6;
select ujobs.why(:d);
-- It is counted as suspended, due or not, and runs on when due.
select state, attempt from ujobs.jobs where id = :d;
update test_store.job set queue = 'steps_store' where id = :d;
select ready, delayed, running, suspended, oldest_ready from ujobs.queues where queue = 'steps_store';
set local ujobs.clock = '2020-03-09 06:04Z';
select state from ujobs.jobs where id = :d;
select ready, delayed, running, suspended, oldest_ready from ujobs.queues where queue = 'steps_store';
select ujobs.why(:d) ->> 'state' as state, ujobs.why(:d) ->> 'reason' like 'waiting: the engine was stopped%' as reason;
-- Retried while it sleeps, it keeps the sleep and comes due now.
set local ujobs.clock = '2020-03-08 08:00Z';
select t ->> 'state' as state, t ->> 'attempt' as attempt, t -> 'steps' -> 4 ->> 'status' as status from ujobs.retry(:d) t;

-- Too much to fold: the rows stay, and everything works as before.  A trace
-- leaves the outputs to the view.
create temp table big as select to_jsonb(repeat('x', 67200000)) as value;
select steps_store.add('e') as e \gset
update test_store.job_step set output = value from big where job_id = :e and seq = 2;
select t ->> 'state' as state, t -> 'steps' -> 0 as first, steps_store.left(:e), steps_store.folded(:e) from ujobs.cancel(:e) t;
select seq, name, status, output is not null as output, error from ujobs.steps where job_id = :e order by seq;
select jsonb_path_query_array(ujobs.inspect_job(:e), '$.steps[*].name') as steps;
select ujobs.retry_from_step(:e, 'json null') -> 'steps' as kept;
select ujobs.cancel(:e) ->> 'state' as state, steps_store.left(:e), steps_store.folded(:e);

-- Rows beside a folded array: a retry brings both together.
insert into test_store.job_step (job_id, seq, name, status, attempts, started_at, completed_at)
values (:e, 2, 'late', 'c', 1, ujobs_internal.now(), ujobs_internal.now());
select seq, name from ujobs.steps where job_id = :e order by seq;
select jsonb_path_query_array(ujobs.retry(:e), '$.steps[*].name') as kept;

-- Without history nothing is left, whatever ends the job.
select steps_store.add('f', 'steps_store_unkept') as f, steps_store.add('g', 'steps_store_unkept') as g, steps_store.add('h', 'steps_store_unkept') as h \gset
select jsonb_array_length(ujobs.cancel(:f) -> 'steps') as shown, steps_store.left(:f);
select outcome, count(*) from ujobs.drain() where name = 'steps_store_unkept' group by 1;
select steps_store.left(:g), steps_store.left(:h);
select steps_store.add('i', 'steps_store_unkept') as i, steps_store.add('j', 'steps_store_unkept') as j \gset
update test_store.job_step set output = value from big where job_id = :j and seq = 1;
select ujobs.cancel(:j) ->> 'state' as state, steps_store.left(:j);
select ujobs.drop_job('steps_store_unkept', force => true);
select steps_store.left(:i);

-- Dropped by force: folded, or left as rows.
select steps_store.add('k') as k, steps_store.add('l') as l \gset
update test_store.job_step set output = value from big where job_id = :l and seq = 1;
select ujobs.drop_job('steps_store', force => true);
select steps_store.left(:k), steps_store.folded(:k), steps_store.left(:l), steps_store.folded(:l);
select count(*) as steps from ujobs.steps where job_id in (:k, :l);

-- Purge takes left rows along.
select ujobs.purge('0') > 2 as removed;
select count(*) as steps from ujobs.steps where job_id in (:a, :b, :c, :d, :e, :f, :g, :h, :i, :j, :k, :l);
select count(*) as rows from test_store.job_step where job_id in (:a, :b, :c, :d, :e, :f, :g, :h, :i, :j, :k, :l);
select count(*) as unhealthy from ujobs.check() where rule like '%step%' or rule = 'job_wait';
rollback;

-- The housekeeper's statement removes rows whose job is gone, and no others.
begin;
select ujobs.define_job('steps_store_2', 'steps_store.durable', '{id}') ->> 'kind' as kind;
select id as live from ujobs.enqueue('steps_store_2', '{"id": "live"}') \gset
select id as ended from ujobs.enqueue('steps_store_2', '{"id": "ended"}') \gset
select ujobs.cancel(:ended) ->> 'state' as state;
insert into test_store.job_step (job_id, seq, name, status, attempts, started_at, completed_at)
select job, n, 's' || n, 'c', 1, now(), now()
  from unnest(array[-5, -4, -3, :live, :ended, 2000000000]) job, generate_series(1, 2) n;
select detail from ujobs.check() where rule = 'step_job' and (detail like '%job -%' or detail like '%job 2000000000,%') order by detail collate "C";
select sql from ujobs.statements() where name = 'retention_left_steps' \gset
:sql;
select case job_id when :live then 'live' when :ended then 'ended' else 'lost' end as job, count(*)
  from test_store.job_step where job_id in (-5, -4, -3, :live, :ended, 2000000000) group by 1 order by 1;

-- What check() says of broken steps.
delete from test_store.job_step where job_id = :live;
insert into test_store.job_step (job_id, seq, name, status, attempts, started_at, wake_at, event, since, child_id)
values (:live, 0, 'a', 'f', 1, now(), null, null, null, null),
       (:live, 1, 'b', 'c', 1, now(), null, null, null, null),
       (:live, 2, 'c', 's', 1, now(), null, null, null, null),
       (:live, 3, 'd', 's', 1, now(), 'infinity', null, null, null),
       (:live, 4, 'e', 'w', 1, now(), 'infinity', null, null, null),
       (:live, 5, 'f', 'w', 1, now(), 'infinity', 'x', now(), 1),
       (:live, 6, 'f', 'w', 1, now(), '2020-03-08Z', 'x', null, null);
update test_store.job set state = 's', started_at = now(), due_at = 'infinity' where id = :live;
update test_store.job_history set steps = '[{"seq": 1, "name": "a", "status": "c", "attempts": 1}]' where id = :ended;
update test_store.job_step set name = name || name where job_id = :ended;
create function steps_store.broken() returns table (rule text, detail text) language sql as $$
select rule, regexp_replace(detail, 'job \d+', 'job N') from ujobs.check() where rule like '%step%' or rule = 'job_wait' order by 1, 2$$;
select * from steps_store.broken();
delete from test_store.job_step where job_id = :live;
update test_store.job_history set steps = '{}' where id = :ended;
select * from steps_store.broken();
rollback;

-- Events.
begin;
insert into test_store.event (published_at, expires_at, publisher, name, match, payload)
select '2020-03-08 07:00Z', '2020-03-15 07:00Z', oid, 'steps_store', 'm', '{"n": 1}' from pg_roles where rolname = current_user;
select name, match, payload, published_at, expires_at from ujobs.events where name = 'steps_store';
rollback;

select ujobs.drop_job('steps_store'), ujobs.drop_job('steps_store_unkept');
drop schema steps_store cascade;
