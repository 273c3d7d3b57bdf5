-- Enqueueing: what is stored, what is returned, and every refusal.
create schema enqueue_test;
\pset format unaligned
create function enqueue_test.handler(jsonb) returns void language sql as 'select';

-- One error, all of it; ids are hidden.
create function enqueue_test.refused(command text)
returns table (code text, message text, detail text, hint text)
language plpgsql as $$
begin
    execute command;
    code := 'none';
    return next;
exception when others then
    get stacked diagnostics code = returned_sqlstate, message = message_text,
                            detail = pg_exception_detail, hint = pg_exception_hint;
    detail := regexp_replace(detail, 'Job \d+', 'Job N');
    return next;
end
$$;

-- Rows of one definition, without what differs from run to run.
create function enqueue_test.rows(job text)
returns table (tenant text, key text, input jsonb, queue text, priority smallint, max_attempts int,
               revision int, enqueued_by text, traceparent text, due interval)
language sql as $$
    select j.tenant, j.key, j.input, j.queue, j.priority, j.max_attempts,
           j.revision, j.enqueued_by, j.traceparent, coalesce(j.run_at, j.created_at) - j.created_at
      from test_store.job j
      join test_store.definition d on d.id = j.definition_id
     where d.name = job
     order by j.id
$$;

select ujobs.define_job('enqueue_plain', 'enqueue_test.handler', 'plain:{id}',
                        priority => 3, queue => 'enqueue', retry => '{"attempts": 5}') ->> 'name' as name;
select ujobs.define_job('enqueue_tenant', 'enqueue_test.handler', '{a.b}/{{x}}', tenant => '{org}') ->> 'name' as name;
select ujobs.define_job('enqueue_fixed', 'enqueue_test.handler', 'fixed') ->> 'name' as name;
select ujobs.define_external_job('enqueue_external', '{id}') ->> 'kind' as kind;

-- The virtual clock: what is stored is exact.
set ujobs.clock = '2026-03-08 06:59:59Z';

-- Defaults come from the definition.
select id is not null as id, run_id is not null as run_id, deduped from ujobs.enqueue('enqueue_plain', '{"id": 1}');
select j.created_at, coalesce(j.run_at, j.created_at) as run_at, j.due_at, j.attempt, j.state, j.enqueued_role = 'postgres'::regrole as caller
  from test_store.job j join test_store.definition d on d.id = j.definition_id where d.name = 'enqueue_plain';
-- Every option.
select deduped from ujobs.enqueue('enqueue_plain', '{"id": 2}', run_at => '2026-03-09 00:00Z', queue => 'other', priority => -5,
    tenant => 'acme', idempotency_key => 'mine', enqueued_by => 'me',
    traceparent => '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01');
select deduped from ujobs.enqueue('enqueue_plain', '{"id": 3}', null, '3 days');
-- The past is fine: due at once.
select deduped from ujobs.enqueue('enqueue_plain', '{"id": 4}', '2001-01-01 00:00Z');
select deduped from ujobs.enqueue('enqueue_plain', '{"id": 5}', delay => '0');
select deduped from ujobs.enqueue('enqueue_external', '{"id": 5}');
select * from enqueue_test.rows('enqueue_plain');
select run_id::text ~ '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$' as version_4
  from test_store.job group by 1;

-- A live job holds its key: the second enqueue gets it, unchanged.
with first as materialized (select * from ujobs.enqueue('enqueue_plain', '{"id": 10}'))
select f.id = s.id as same_id, f.run_id = s.run_id as same_run, f.deduped as first, s.deduped as second
  from first f, lateral (select * from ujobs.enqueue('enqueue_plain', '{"id": 10, "n": 2}') offset 0 * f.id) s;
select deduped from ujobs.enqueue('enqueue_plain', '{"id": 3}');    -- also one of the future
-- Definitions, tenants and no tenant are name spaces of their own.
select deduped from ujobs.enqueue('enqueue_fixed');
select deduped from ujobs.enqueue('enqueue_fixed', tenant => 'a');
select deduped from ujobs.enqueue('enqueue_fixed', tenant => 'b');
select deduped from ujobs.enqueue('enqueue_fixed', tenant => '');
select deduped from ujobs.enqueue('enqueue_external', '{"id": 1}', idempotency_key => 'fixed');
-- error and replace.
select * from enqueue_test.refused($$select ujobs.enqueue('enqueue_plain', '{"id": 10}', on_conflict => 'error')$$);
select deduped from ujobs.enqueue('enqueue_plain', '{"id": 11}', on_conflict => 'error');
select deduped from ujobs.enqueue('enqueue_plain', '{"id": 12}', on_conflict => 'replace');
select deduped from ujobs.enqueue('enqueue_plain', '{"id": 12, "new": true}', on_conflict => 'replace', priority => 9,
    delay => '1 hour', queue => 'not taken', traceparent => '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01');
select * from enqueue_test.rows('enqueue_plain') where key > 'plain:1' and key < 'plain:2';
-- Only what never began is replaced.
update test_store.job set attempt = 1 where key = 'plain:12';
select * from enqueue_test.refused($$select ujobs.enqueue('enqueue_plain', '{"id": 12}', on_conflict => 'replace')$$);
update test_store.job set attempt = 0, state = 's' where key = 'plain:12';
select * from enqueue_test.refused($$select ujobs.enqueue('enqueue_plain', '{"id": 12}', on_conflict => 'replace')$$);
-- The key is free when the job has left.
delete from test_store.job where key = 'plain:12';
select deduped from ujobs.enqueue('enqueue_plain', '{"id": 12}', on_conflict => 'error');

-- Templates.
select deduped from ujobs.enqueue('enqueue_tenant', '{"a": {"b": "x"}, "org": "acme"}');
select deduped from ujobs.enqueue('enqueue_tenant', '{"a": {"b": 1.50}, "org": true}');
select deduped from ujobs.enqueue('enqueue_tenant', '{"a": {"b": "x"}}', tenant => '');
select deduped from ujobs.enqueue('enqueue_tenant', '{"org": "o"}', idempotency_key => 'given');
select tenant, key from enqueue_test.rows('enqueue_tenant');
select * from enqueue_test.refused($$select ujobs.enqueue('enqueue_tenant', '{"org": "o"}')$$);
select * from enqueue_test.refused($$select ujobs.enqueue('enqueue_tenant', '{"a": {"b": null}, "org": "o"}')$$);
select * from enqueue_test.refused($$select ujobs.enqueue('enqueue_tenant', '{"a": {"b": {}}, "org": "o"}')$$);
select * from enqueue_test.refused($$select ujobs.enqueue('enqueue_tenant', '{"a": {"b": []}, "org": "o"}')$$);
select * from enqueue_test.refused($$select ujobs.enqueue('enqueue_tenant', '{"a": {"b": 1}}')$$);
select * from enqueue_test.refused($$select ujobs.enqueue('enqueue_tenant', jsonb_build_object('a', jsonb_build_object('b', repeat('k', 10240)), 'org', 'o'))$$);
select * from enqueue_test.refused($$select ujobs.enqueue('enqueue_tenant', jsonb_build_object('a', jsonb_build_object('b', 1), 'org', repeat('t', 201)))$$);

-- The longest keys and names, and inputs of every kind.
select deduped from ujobs.enqueue('enqueue_fixed', idempotency_key => repeat('k', 1000), tenant => repeat('t', 200), queue => repeat('q', 63));
select deduped from ujobs.enqueue('enqueue_fixed', x.input, idempotency_key => x.key)
  from (values ('s', '"text"'::jsonb), ('n', '1'), ('z', 'null'), ('b', 'true'), ('a', '[1, 2]'),
               ('digits', repeat('9', 1000)::jsonb), ('deep', (repeat('[', 1000) || repeat(']', 1000))::jsonb),
               ('wide', jsonb_build_object(repeat('ä', 5000), repeat('ö', 5000)))) x (key, input);
select key, length(input::text) from enqueue_test.rows('enqueue_fixed') where key <> 'fixed' and length(key) < 1000;
select deduped from ujobs.enqueue('enqueue_plain', jsonb_build_object('id', repeat('9', 990)::numeric));
select * from enqueue_test.refused($$select ujobs.enqueue('enqueue_plain', jsonb_build_object('id', repeat('9', 1000)::numeric))$$);
select * from enqueue_test.refused($$select ujobs.enqueue('enqueue_plain', '{"a": "\u0000"}')$$);
-- A name of 63 bytes may be defined; one of 63 wide characters cannot exist.
select ujobs.define_job('enqueue_' || repeat('é', 27) || 'x', 'enqueue_test.handler', 'k') ->> 'kind' as kind;
select deduped from ujobs.enqueue('enqueue_' || repeat('é', 27) || 'x');
select code, message from enqueue_test.refused($$select ujobs.enqueue(repeat('é', 63))$$);

-- enqueue_as: the actor, unless an argument says otherwise.
select deduped from ujobs.enqueue_as('{"orgId": "acme", "id": 7}', 'enqueue_tenant', '{"a": {"b": "as1"}}');
select deduped from ujobs.enqueue_as('{"orgId": "acme", "id": "u"}', 'enqueue_tenant', '{"a": {"b": "as2"}}', tenant => 'arg', enqueued_by => 'arg');
select deduped from ujobs.enqueue_as('{"orgId": ""}', 'enqueue_tenant', '{"a": {"b": "as3"}, "org": "template"}');
select deduped from ujobs.enqueue_as('{"orgId": null}', 'enqueue_tenant', '{"a": {"b": "as4"}, "org": "template"}');
select deduped from ujobs.enqueue_as(null, 'enqueue_tenant', '{"a": {"b": "as5"}, "org": "template"}');
select tenant, key, enqueued_by from enqueue_test.rows('enqueue_tenant') where key like 'as%';
select * from enqueue_test.refused($$select ujobs.enqueue_as('[]', 'enqueue_tenant')$$);
select * from enqueue_test.refused($$select ujobs.enqueue_as('{"orgId": {}}', 'enqueue_tenant')$$);
select * from enqueue_test.refused($$select ujobs.enqueue_as(jsonb_build_object('orgId', repeat('t', 201)), 'enqueue_tenant')$$);

-- The trace context: argument, setting, none.
set ujobs.traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00';
select deduped from ujobs.enqueue('enqueue_fixed', idempotency_key => 'trace 1');
select deduped from ujobs.enqueue('enqueue_fixed', idempotency_key => 'trace 2', traceparent => '');
select deduped from ujobs.enqueue('enqueue_fixed', idempotency_key => 'trace 3', traceparent => '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01');
select key, traceparent from enqueue_test.rows('enqueue_fixed') where key like 'trace%';
set ujobs.traceparent = 'nonsense';
select * from enqueue_test.refused($$select ujobs.enqueue('enqueue_fixed', idempotency_key => 'trace 4')$$);
reset ujobs.traceparent;
select t, code, detail
  from (values ('00-00000000000000000000000000000000-00f067aa0ba902b7-01'),
               ('00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01'),
               ('00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01'),
               ('01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'),
               ('00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g'),
               ('00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7')) v (t),
       enqueue_test.refused(format('select ujobs.enqueue(%L, traceparent => %L)', 'enqueue_fixed', t));

-- Other refusals of options.
create table enqueue_test.before as select count(*) from test_store.job;
select r.*
  from (values (1, $$run_at => now(), delay => '1 s'$$),
               (2, $$delay => '-1 s'$$),
               (3, $$delay => '292300 years'$$),
               (4, $$delay => '178000000 years'$$),
               (5, $$run_at => 'infinity'$$),
               (6, $$run_at => '-infinity'$$),
               (7, $$on_conflict => 'ignore'$$),
               (8, $$priority => 32768$$),
               (9, $$priority => -32769$$),
               (10, $$queue => ''$$),
               (11, $$queue => repeat('q', 64)$$),
               (12, $$tenant => repeat('t', 201)$$),
               (13, $$idempotency_key => ''$$),
               (14, $$idempotency_key => repeat('k', 1001)$$)) v (n, option),
       enqueue_test.refused(format('select ujobs.enqueue(%L, ''{"id": "refused"}'', %s)', 'enqueue_plain', option)) r
 order by n;
select * from enqueue_test.refused($$select ujobs.enqueue(null)$$);
select * from enqueue_test.refused($$select ujobs.enqueue('enqueue_plain', null)$$);
select * from enqueue_test.refused($$select ujobs.enqueue('enqueue_nobody')$$);
select * from enqueue_test.refused($$select ujobs.enqueue('enqueue_plain')$$);
select count(*) = (select count from enqueue_test.before) as nothing_written from test_store.job;

-- Transactions: what is rolled back never existed.
begin;
select deduped from ujobs.enqueue('enqueue_fixed', idempotency_key => 'tx 1');
savepoint s;
select deduped from ujobs.enqueue('enqueue_fixed', idempotency_key => 'tx 2');
rollback to s;
select deduped from ujobs.enqueue('enqueue_fixed', idempotency_key => 'tx 2', input => '2');
commit;
begin;
select deduped from ujobs.enqueue('enqueue_fixed', idempotency_key => 'tx 3');
rollback;
do $$
begin
    perform ujobs.enqueue('enqueue_fixed', idempotency_key => 'tx 4');
    begin
        perform ujobs.enqueue('enqueue_fixed', idempotency_key => 'tx 5');
        raise exception 'undone';
    exception when raise_exception then
        perform ujobs.enqueue('enqueue_fixed', idempotency_key => 'tx 6');
    end;
end
$$;
select key, input from enqueue_test.rows('enqueue_fixed') where key like 'tx%';
-- Prepared transactions carry jobs too.
begin;
select deduped from ujobs.enqueue('enqueue_fixed', idempotency_key => 'prepared 1');
prepare transaction 'enqueue 1';
begin;
select deduped from ujobs.enqueue('enqueue_fixed', idempotency_key => 'prepared 2');
prepare transaction 'enqueue 2';
rollback prepared 'enqueue 2';
select key from enqueue_test.rows('enqueue_fixed') where key like 'prepared%';
commit prepared 'enqueue 1';
select key from enqueue_test.rows('enqueue_fixed') where key like 'prepared%';
-- At every isolation level, and read-only.
begin isolation level serializable;
select deduped from ujobs.enqueue('enqueue_fixed', idempotency_key => 'iso');
select deduped from ujobs.enqueue('enqueue_fixed', idempotency_key => 'iso');
select deduped from ujobs.enqueue_many('enqueue_fixed', '{1,2}', tenant => 'iso');
commit;
begin read only;
select * from enqueue_test.refused($$select ujobs.enqueue('enqueue_fixed')$$);
select code, message from enqueue_test.refused($$select ujobs.enqueue_many('enqueue_fixed', '{}')$$);
select code, message from enqueue_test.refused($$select ujobs.enqueue_as('{}', 'enqueue_fixed')$$);
commit;

-- ujobs.outbox_mode = required: only in a transaction block.
set ujobs.outbox_mode = 'required';
\set VERBOSITY verbose
\set SHOW_CONTEXT never
begin;
select deduped from ujobs.enqueue('enqueue_fixed', idempotency_key => 'block');
commit;
\set VERBOSITY default
\set ON_ERROR_STOP 0
select deduped from ujobs.enqueue('enqueue_fixed', idempotency_key => 'no block');
select deduped from ujobs.enqueue_many('enqueue_fixed', '{1}', tenant => 'no block');
\echo :SQLSTATE
select key from enqueue_test.rows('enqueue_fixed') where key like '%block';
reset ujobs.outbox_mode;

-- In a trigger, in the same transaction as the row that causes it.
create table enqueue_test.orders (id int);
create function enqueue_test.on_order() returns trigger language plpgsql as $$
begin
    perform ujobs.enqueue('enqueue_plain', jsonb_build_object('id', 'order ' || new.id));
    return null;
end
$$;
create trigger on_order after insert on enqueue_test.orders for each row execute function enqueue_test.on_order();
insert into enqueue_test.orders values (1), (2), (1);
select key from enqueue_test.rows('enqueue_plain') where key like '%order%';

-- Grants.
create role enqueue_owner;
create role enqueue_friend;
create role enqueue_other;
grant usage, create on schema enqueue_test to enqueue_owner;
grant usage on schema enqueue_test to enqueue_other;
alter role enqueue_owner login;
grant execute on function ujobs.define_job, ujobs.grant_enqueue to enqueue_owner;
set role enqueue_owner;
select ujobs.define_job('enqueue_granted', 'enqueue_test.handler', '{id}') ->> 'name' as name;
select ujobs.grant_enqueue('enqueue_granted', 'enqueue_friend');
select deduped from ujobs.enqueue('enqueue_granted', '{"id": 1}');
create function enqueue_test.definer(i jsonb) returns boolean language sql security definer
as $$select deduped from ujobs.enqueue('enqueue_granted', i)$$;
set role enqueue_friend;
select deduped from ujobs.enqueue('enqueue_granted', '{"id": 2}');
select deduped from ujobs.enqueue('enqueue_granted', '{"id": 1}');
reset role;
set role enqueue_other;
select * from enqueue_test.refused($$select ujobs.enqueue('enqueue_granted', '{"id": 3}')$$);
select code, message from enqueue_test.refused($$select ujobs.enqueue_many('enqueue_granted', '{1}')$$);
select code, message from enqueue_test.refused($$select ujobs.enqueue('enqueue_nobody')$$);
select enqueue_test.definer('{"id": 4}');
reset role;
-- Replacing is control, which a grant does not give.
grant usage on schema enqueue_test to enqueue_friend;
set role enqueue_friend;
select * from enqueue_test.refused($$select ujobs.enqueue('enqueue_granted', '{"id": 2}', on_conflict => 'replace')$$);
reset role;
select key, enqueued_role::regrole as role from test_store.job
 where definition_id = (select id from test_store.definition where name = 'enqueue_granted') order by key;

-- enqueue_many: results in the order of the inputs; inputs of one key share a job.
select n, id = first_value(id) over (partition by k order by n) as same, id > lag(id) over (order by n) as later, deduped
  from (select m.*, (array['b', 'a', 'c', 'a'])[m.n] as k
          from ujobs.enqueue_many('enqueue_plain', array['{"id": "b"}', '{"id": "a"}', '{"id": "c"}', '{"id": "a", "n": 2}']::jsonb[])
               with ordinality m (id, run_id, deduped, n)) x order by n;
select deduped from ujobs.enqueue_many('enqueue_plain', array['{"id": "b"}', '{"id": "d"}']::jsonb[],
    delay => '1 h', queue => 'many', priority => 8, enqueued_by => 'x', tenant => 'none of these');
select deduped from ujobs.enqueue_many('enqueue_plain', array['{"id": "c"}', '{"id": "e"}', '{"id": "c"}']::jsonb[]);
select * from enqueue_test.rows('enqueue_plain') where key between 'plain:a' and 'plain:f';
select count(*) from ujobs.enqueue_many('enqueue_plain', '{}');
select deduped from ujobs.enqueue_many('enqueue_plain', array['{"id": "x", "n": 1}', '{"id": "a", "n": 9}', '{"id": "x", "n": 2}']::jsonb[], on_conflict => 'replace');
select key, input, revision from enqueue_test.rows('enqueue_plain') where key in ('plain:a', 'plain:x');
truncate enqueue_test.before;
insert into enqueue_test.before select count(*) from test_store.job;
select * from enqueue_test.refused($$select ujobs.enqueue_many('enqueue_plain', array['{"id": "y"}', '{"id": "a"}']::jsonb[], on_conflict => 'error')$$);
select * from enqueue_test.refused($$select ujobs.enqueue_many('enqueue_plain', array['{"id": "y"}', '{"id": "z"}', '{"id": "y"}']::jsonb[], on_conflict => 'error')$$);
select * from enqueue_test.refused($$select ujobs.enqueue_many('enqueue_plain', array['{"id": "y"}', null]::jsonb[])$$);
select * from enqueue_test.refused($$select ujobs.enqueue_many('enqueue_plain', null)$$);
select * from enqueue_test.refused($$select ujobs.enqueue_many('enqueue_plain', array['{"id": "y"}', '{}']::jsonb[])$$);
select count(*) = (select count from enqueue_test.before) as nothing_written from test_store.job;
-- More than one statement's worth, half of them there already.
select count(*), count(distinct id) as jobs, count(*) filter (where deduped) as deduped
  from ujobs.enqueue_many('enqueue_plain', (select array_agg(jsonb_build_object('id', n)) from generate_series(100001, 109000) n));
select count(*), count(distinct id) as jobs, count(*) filter (where deduped) as deduped, bool_and(key = 'plain:' || n) as in_order
  from ujobs.enqueue_many('enqueue_plain', (select array_agg(jsonb_build_object('id', n) order by n) from generate_series(105001, 115000) n))
       with ordinality m (id, run_id, deduped, o)
  join lateral (select o + 105000 as n) x on true
  left join test_store.job j using (id);

-- The rules of a row hold whoever writes it.
select code, message
  from (values (1, $$state = 'd'$$), (2, 'attempt = -1'), (3, 'max_attempts = 0')) v (n, change),
       enqueue_test.refused(format('update test_store.job set %s where key = %L', change, 'plain:1'))
 order by n;

-- A dropped definition is unknown, at once.
select ujobs.drop_job('enqueue_tenant', force => true);
select code, message from enqueue_test.refused($$select ujobs.enqueue('enqueue_tenant', '{"a": {"b": 1}, "org": 1}')$$);

select ujobs.drop_job(name, force => true) from test_store.definition where name like 'enqueue%' and dropped_at is null;
set client_min_messages = warning;
drop schema enqueue_test cascade;
revoke execute on function ujobs.define_job, ujobs.grant_enqueue from enqueue_owner;
drop role enqueue_owner, enqueue_friend, enqueue_other;
