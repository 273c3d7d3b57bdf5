-- Calls of enqueue_many that are large enough to go in without statements, and of
-- enqueue, which needs none either: what they leave is what statements leave,
-- whatever keys are taken.
set client_min_messages = warning;
create schema bulk_test;
create function bulk_test.handler(jsonb) returns void language sql as 'select';
do $$
begin
    perform ujobs.define_job('bulk', 'bulk_test.handler', 'k:{id}');
    perform ujobs.define_job('bulk_tenant', 'bulk_test.handler', '{id}', tenant => '{org}');
end
$$;
create view bulk_test.job as
select j.*, d.name from ujobs_internal.job j join ujobs_internal.definition d on d.id = j.definition_id;

create function bulk_test.inputs(first int, last int, step int default 1) returns jsonb[]
language sql as $$
    select array_agg(jsonb_build_object('id', n) order by n) from generate_series(first, last, step) n
$$;

-- Every row is in every index that should have it, and each index is in order.
create extension if not exists amcheck;
create function bulk_test.check_indexes() returns bigint
language sql as $$
    select count(*)
      from pg_index i
     cross join lateral bt_index_check(i.indexrelid, heapallindexed => true)
     where i.indrelid = 'ujobs_internal.job'::regclass
$$;

-- The same call, small and large: the rows differ in nothing but what is theirs alone.
select count(*), count(distinct id), bool_or(deduped)
  from ujobs.enqueue_many('bulk', bulk_test.inputs(1, 5), queue => 'bulk q', priority => -3, delay => '1 h', enqueued_by => 'me',
                          traceparent => '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01');
select count(*), count(distinct id), bool_or(deduped)
  from ujobs.enqueue_many('bulk', bulk_test.inputs(6, 5000), queue => 'bulk q', priority => -3, delay => '1 h', enqueued_by => 'me',
                          traceparent => '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01');
select count(*), count(distinct run_id) as run_ids, min(run_at - created_at), max(due_at - created_at)
  from bulk_test.job where name = 'bulk';
select distinct to_jsonb(j) - '{id,run_id,created_at,due_at,run_at,idempotency_key,input,definition_id,enqueued_role}'::text[] as alike,
       enqueued_role::regrole = current_user::regrole as mine, idempotency_key = 'k:' || (input ->> 'id') as fits
  from bulk_test.job j where name = 'bulk';
select bulk_test.check_indexes();

select id > 0 as has_id, deduped
  from ujobs.enqueue('bulk', '{"id": 5001}', queue => 'bulk q', priority => -3, delay => '1 h', enqueued_by => 'me',
                     traceparent => '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01');
select distinct to_jsonb(j) - '{id,run_id,created_at,due_at,run_at,idempotency_key,input,definition_id,enqueued_role}'::text[] as alike,
       enqueued_role::regrole = current_user::regrole as mine, idempotency_key = 'k:' || (input ->> 'id') as fits
  from bulk_test.job j where name = 'bulk';

-- At once: run_at is not stored.  Ids follow the inputs, also where keys do not.
create table bulk_test.got as select * from ujobs.enqueue_many('bulk', bulk_test.inputs(99001, 104000)) with ordinality m (id, run_id, deduped, n);
select count(*), bool_and(later) as in_order, bool_and(key = 'k:' || 99000 + n) as each_its_own, bool_and(same_run) as same_runs, count(run_at) as run_ats
  from (select m.n, j.idempotency_key as key, j.run_at, id > coalesce(lag(id) over (order by m.n), 0) as later, m.run_id = j.run_id as same_run
          from bulk_test.got m join ujobs_internal.job j using (id)) x;

-- Inputs of one key share a job: 5000 of 1000 keys, the first of each leads.
select count(*), count(distinct id) as jobs, count(distinct run_id) as run_ids, count(*) filter (where deduped) as deduped,
       count(*) filter (where not deduped and n > 1000) as late_leaders
  from ujobs.enqueue_many('bulk', (select array_agg(jsonb_build_object('id', 200000 + n % 1000, 'n', n) order by n) from generate_series(0, 4999) n))
       with ordinality m (id, run_id, deduped, n);
select count(*), max((input ->> 'n')::int) from bulk_test.job where name = 'bulk' and input ? 'n';

-- Keys taken: a few, each tenth, a stretch, all.
select count(*), count(distinct id) as jobs, count(*) filter (where deduped) as deduped
  from ujobs.enqueue_many('bulk', bulk_test.inputs(303000, 303002));
truncate bulk_test.got;
insert into bulk_test.got select * from ujobs.enqueue_many('bulk', bulk_test.inputs(300001, 305000)) with ordinality;
select count(*), count(distinct id) as jobs, count(*) filter (where deduped) as deduped, bool_and(j.idempotency_key = 'k:' || 300000 + n) as each_its_own
  from bulk_test.got join ujobs_internal.job j using (id);
select count(*), count(*) filter (where deduped) as deduped from ujobs.enqueue_many('bulk', bulk_test.inputs(400000, 404999, 10));
select count(*), count(distinct id) as jobs, count(*) filter (where deduped) as deduped from ujobs.enqueue_many('bulk', bulk_test.inputs(400000, 404999));
select count(*), count(distinct id) as jobs, count(*) filter (where deduped) as deduped from ujobs.enqueue_many('bulk', bulk_test.inputs(402000, 420000));
select count(*), count(distinct id) as jobs, count(*) filter (where deduped) as deduped from ujobs.enqueue_many('bulk', bulk_test.inputs(402000, 420000));
select bulk_test.check_indexes();

-- Keys of jobs that are gone are free.
delete from ujobs_internal.job where id in (select id from bulk_test.job where name = 'bulk' and idempotency_key like 'k:40%');
select count(*), count(*) filter (where deduped) as deduped from ujobs.enqueue_many('bulk', bulk_test.inputs(402000, 420000));

-- error: nothing is written when one key is taken.
create table bulk_test.before as select count(*) as n from ujobs_internal.job;
\set VERBOSITY terse
do $$
begin
    perform ujobs.enqueue_many('bulk', bulk_test.inputs(415000, 425000), on_conflict => 'error');
exception when sqlstate 'UJ009' then
    raise warning '%', regexp_replace(sqlerrm, '\d+', 'N');
end
$$;
do $$
begin
    perform ujobs.enqueue_many('bulk', bulk_test.inputs(500000, 504000) || bulk_test.inputs(503999, 503999), on_conflict => 'error');
exception when sqlstate 'UJ009' then
    raise warning '%', sqlerrm;
end
$$;
select count(*) = (select n from bulk_test.before) as nothing_written from ujobs_internal.job;
select count(*), bool_or(deduped) from ujobs.enqueue_many('bulk', bulk_test.inputs(500000, 504000), on_conflict => 'error');

-- replace changes those that are there and adds the others.
select count(*), count(distinct id) as jobs, count(*) filter (where deduped) as deduped
  from ujobs.enqueue_many('bulk', bulk_test.inputs(503001, 505000), on_conflict => 'replace', priority => 7);
select revision, priority, count(*) from bulk_test.job where name = 'bulk' and idempotency_key between 'k:503001' and 'k:505000' group by 1, 2 order by 1;

-- A savepoint rolled back takes all of it along; what stays is seen by the next statement.
begin;
select count(*) from ujobs.enqueue_many('bulk', bulk_test.inputs(600001, 602000));
savepoint s;
select count(*), count(*) filter (where deduped) as deduped from ujobs.enqueue_many('bulk', bulk_test.inputs(601001, 606000));
select count(*) from bulk_test.job where idempotency_key like 'k:60____';
rollback to s;
select count(*), count(*) filter (where deduped) as deduped from ujobs.enqueue_many('bulk', bulk_test.inputs(602001, 603000));
commit;
select count(*) from bulk_test.job where idempotency_key like 'k:60____';

-- Tenants, some with a job or two and some with many; large inputs; keys and tenants that only bytes put in order.
select count(*), count(*) filter (where deduped) as deduped
  from ujobs.enqueue_many('bulk_tenant', (select array_agg(jsonb_build_object('id', n, 'org', case when n % 3 = 0 then 'one' else 't' || n end)) from generate_series(1, 3000, 2) n));
select count(*), count(distinct id) as jobs, count(*) filter (where deduped) as deduped
  from ujobs.enqueue_many('bulk_tenant', (select array_agg(jsonb_build_object('id', n, 'org', case when n % 3 = 0 then 'one' else 't' || n end)) from generate_series(1, 3000) n));
select count(*), count(distinct id) as jobs, count(*) filter (where deduped) as deduped
  from ujobs.enqueue_many('bulk_tenant', (select array_agg(jsonb_build_object('id', repeat(chr(180 + n % 5000), n % 7 + 1) || n, 'org', chr(250 + n % 11), 'big', repeat(md5(n::text), 200)))
                                            from generate_series(1, 1000) n));
select count(*), min(length(input ->> 'big')), bool_and(idempotency_key = input ->> 'id' and tenant_id = input ->> 'org') from bulk_test.job where input ? 'big';
select bulk_test.check_indexes();

-- An administrator's trigger and index are served.
create function bulk_test.on_job() returns trigger language plpgsql as $$ begin new.reason := 'seen'; return new; end $$;
create index bulk_test_index on ujobs_internal.job (upper(idempotency_key)) where idempotency_key like 'k:70%';
select count(*) from ujobs.enqueue_many('bulk', bulk_test.inputs(700001, 701000));
set enable_seqscan = off;
select count(*) from ujobs_internal.job where upper(idempotency_key) > 'K:' and idempotency_key like 'k:70%';
select deduped from ujobs.enqueue('bulk', '{"id": 702000}');
select count(*) from ujobs_internal.job where upper(idempotency_key) > 'K:' and idempotency_key like 'k:70%';
reset enable_seqscan;
drop index ujobs_internal.bulk_test_index;
create trigger bulk_test before insert on ujobs_internal.job for each row execute function bulk_test.on_job();
select count(*) from ujobs.enqueue_many('bulk', bulk_test.inputs(710001, 711000));
select deduped from ujobs.enqueue('bulk', '{"id": 712000}');
drop trigger bulk_test on ujobs_internal.job;
select count(*) from ujobs_internal.job where reason = 'seen';
alter table ujobs_internal.job add constraint bulk_test check (idempotency_key <> 'k:720000');
select deduped from ujobs.enqueue('bulk', '{"id": 720001}');
select ujobs.enqueue('bulk', '{"id": 720000}');
alter table ujobs_internal.job drop constraint bulk_test;
select deduped from ujobs.enqueue('bulk', '{"id": 720000}');

-- What a session knows of the indexes follows them, whatever takes a place that another had.
create index bulk_test_index on ujobs_internal.job (idempotency_key) where queue = 'none';
select deduped from ujobs.enqueue('bulk', '{"id": 721001}');
drop index ujobs_internal.bulk_test_index;
create index bulk_test_index on ujobs_internal.job (upper(idempotency_key));
select deduped from ujobs.enqueue('bulk', '{"id": 721002}');
drop index ujobs_internal.bulk_test_index;
select deduped from ujobs.enqueue('bulk', '{"id": 721003}');
begin;
alter table ujobs_internal.job add column bulk_test int default 7;
select deduped from ujobs.enqueue('bulk', '{"id": 721004}');
select count(*) from ujobs.enqueue_many('bulk', bulk_test.inputs(722001, 723000));
select bulk_test, count(*) from ujobs_internal.job where idempotency_key between 'k:721004' and 'k:723000' group by 1;
rollback;

-- One by one, some twice, in transactions that end this way or that.
create function bulk_test.one(id int, out deduped bool) language sql as $$ select e.deduped from ujobs.enqueue('bulk', jsonb_build_object('id', id)) e $$;
begin;
select count(*) filter (where bulk_test.one(730000 + n / 2)) as deduped from generate_series(0, 19) n;
savepoint s;
select count(*) filter (where bulk_test.one(730005 + n)) as deduped from generate_series(0, 9) n;
rollback to s;
select count(*) filter (where bulk_test.one(730005 + n)) as deduped from generate_series(0, 9) n;
commit;
select count(*), count(distinct idempotency_key) from bulk_test.job where idempotency_key like 'k:7300%';
select bulk_test.check_indexes();

do $$ begin perform ujobs.drop_job(n, force => true) from unnest('{bulk,bulk_tenant}'::text[]) n; end $$;
drop extension amcheck;
drop schema bulk_test cascade;
