-- The outbox: defining sinks, publishing, queues on a broker, rights; what
-- needs no module and no server.  The relay is tested where servers are.
\set VERBOSITY terse
set timezone = 'UTC';
set datestyle = 'ISO';
create role outbox_app;
create role outbox_monitor in role pg_monitor;
create role outbox_other;
grant create on schema public to outbox_app;

-- What define_sink refuses before it asks a module.
\set VERBOSITY default
select ujobs.define_sink(null, 'nats', '{}');
select ujobs.define_sink('', 'nats', '{}');
select ujobs.define_sink('outbox_bus', 'kafka', '{"url": "x"}');
select ujobs.define_sink('outbox_bus', 'nats', null);
select ujobs.define_sink('outbox_bus', 'nats', '[]');
select ujobs.define_sink('outbox_bus', 'nats', '{}');
select ujobs.define_sink('outbox_bus', 'nats', '{"url": 4222}');
select ujobs.define_sink('outbox_bus', 'nats', '{"url": "nats://me:outbox-secret@127.0.0.1:4222"}');
select ujobs.define_sink('outbox_bus', 'nats', '{"url": "nats://a:4222,nats://token@b:4222"}');
select ujobs.define_sink('outbox_bus', 'nats', '{"url": "nats://a:4222", "check": "perhaps"}');
begin read only;
select ujobs.define_sink('outbox_bus', 'nats', '{"url": "nats://127.0.0.1:4222"}');
rollback;
select ujobs.set_sink_secret('outbox_none', '{}');
select ujobs.drop_sink('outbox_none');

-- Sinks, as define_sink leaves them.
insert into ujobs_internal.sink (name, kind, options, created_at)
select 'outbox_' || k, k, format('{"url": "%s://127.0.0.1:1"}', k)::jsonb, '2026-01-01'
  from unnest('{nats,redis,http}'::text[]) k;
insert into ujobs_internal.sink_status (sink_id) select id from ujobs_internal.sink;
insert into ujobs_internal.sink_secret select id, '{"password": "outbox-secret"}' from ujobs_internal.sink where name = 'outbox_nats';
select name, kind, options, has_secret, state, published from ujobs.sinks order by name;

-- Publishing: one row in this transaction.
begin;
select ujobs.publish('outbox_nats', 'orders.paid', '{"orderId": 42}', key => '42', headers => '{"x-source": "shop"}') > 0;
select sink, topic, key, state, attempts, payload, headers, published_at, next_try_at <= clock_timestamp() as due from ujobs.outbox;
rollback;
select count(*) from ujobs.outbox;

-- A trace goes along; headers may have their own.
set ujobs.traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
select ujobs.publish('outbox_http', '/hook', '1') > 0;
select ujobs.publish('outbox_http', '/hook', 'null', headers => '{"traceparent": "mine"}') > 0;
reset ujobs.traceparent;
select topic, key, payload, headers from ujobs.outbox order by id;

-- What it refuses.
select ujobs.publish('outbox_none', 't', '{}');
select ujobs.publish(null, 't', '{}');
select ujobs.publish('outbox_http', null, '{}');
select ujobs.publish('outbox_http', '', '{}');
select ujobs.publish('outbox_http', 't', null);
select ujobs.publish('outbox_http', 't', '{}', key => '');
select ujobs.publish('outbox_http', 't', '{}', key => repeat('x', 1001));
select ujobs.publish('outbox_http', 't', '{}', headers => '[]');
select ujobs.publish('outbox_http', 't', '{}', headers => '{"a": 1}');
select ujobs.publish('outbox_http', 't', '{}', headers => '{"a": {"b": "c"}}');
select ujobs.publish('outbox_http', 't', '{}', headers => '{"a b": "c"}');
select ujobs.publish('outbox_http', 't', '{}', headers => '{"a": "b\r\nHost: c"}');
select ujobs.publish('outbox_http', 't', '{}', headers => '{"idempotency-KEY": "b"}');
select ujobs.publish('outbox_http', 't', '{}', headers => (select jsonb_object_agg('h' || n, '') from generate_series(1, 51) n));
begin read only;
select ujobs.publish('outbox_http', 't', '{}');
rollback;

-- Sizes: by the sink's option, by kind; as text, not as it is stored.
update ujobs_internal.sink set options = options || '{"maxPayload": 100}' where name = 'outbox_redis';
select ujobs.publish('outbox_redis', 't', to_jsonb(repeat('x', 98))) > 0;
select ujobs.publish('outbox_redis', 't', to_jsonb(repeat('x', 99)));
select ujobs.publish('outbox_redis', 't', '[1e60, 1e60]');
select ujobs.publish('outbox_nats', 't', to_jsonb(repeat('x', 1048577)));

-- Who may: a running job always, others with a grant.
set role outbox_app;
select ujobs.publish('outbox_nats', 't', '{}');
select ujobs.define_sink('outbox_bus', 'nats', '{"url": "nats://127.0.0.1:4222"}');
select ujobs.set_queue_driver('outbox_q', 'nats', 'outbox_nats');
select ujobs.consume_queue('outbox_q', 'outbox_nats');
select ujobs.retry_outbox(1);
select ujobs.skip_outbox(1);
reset role;
grant execute on function ujobs.publish, ujobs.define_sink, ujobs.set_sink_secret, ujobs.drop_sink,
    ujobs.set_queue_driver, ujobs.consume_queue to outbox_app;
set role outbox_app;
select ujobs.publish('outbox_nats', 'of.app', '{"secret": 1}', key => 'k') > 0;
-- a grant does not make a superuser
select ujobs.define_sink('outbox_bus', 'nats', '{"url": "nats://127.0.0.1:4222"}');
select ujobs.set_sink_secret('outbox_nats', '{"password": "x"}');
select ujobs.drop_sink('outbox_nats');
select ujobs.set_queue_driver('outbox_q', 'nats', 'outbox_nats');
select ujobs.consume_queue('outbox_q', 'outbox_nats');
-- its own messages
select sink, topic, key, payload from ujobs.outbox;
select name, options, last_error from ujobs.sinks order by name;
select count(*) from ujobs.inbox;
set role outbox_other;
select count(*) from ujobs.outbox;
set role outbox_monitor;
select sink, topic, key, payload, headers from ujobs.outbox where topic = 'of.app';
select name, options from ujobs.sinks order by name limit 1;
reset role;

-- A secret is nowhere to be seen.
select count(*) from ujobs.sinks s where s::text like '%outbox-secret%';
select count(*) from ujobs.metrics() m where m::text like '%outbox-secret%';
select count(*) from ujobs.statements() s where s::text like '%outbox-secret%';
select 'ujobs_internal.sink_secret'::regclass = any (extconfig) from pg_extension where extname = 'ujobs';
set role outbox_monitor;
select * from ujobs_internal.sink_secret;
reset role;

-- A queue on a broker.
create function outbox_echo(i jsonb) returns jsonb language sql return i;
select ujobs.define_job('outbox_echo', 'outbox_echo', 'echo:{id}', tenant => '{org}', queue => 'outbox_q',
    retry => '{"attempts": 5}', input_schema => '{"type": "object", "required": ["id"]}') ->> 'queue';
select ujobs.set_queue_driver('outbox_q', 'kafka', 'outbox_nats');
select ujobs.set_queue_driver('outbox_q', 'nats');
select ujobs.set_queue_driver('outbox_q', 'nats', 'outbox_redis');
select ujobs.set_queue_driver('outbox_q', 'nats', 'outbox_http');
select ujobs.set_queue_driver('outbox_q', 'nats', 'outbox_none');
select ujobs.set_queue_driver('outbox_q', 'pg', 'outbox_nats');
select ujobs.set_queue_driver('', 'nats', 'outbox_nats');
select ujobs.consume_queue('outbox_q', 'outbox_http');
delete from ujobs_internal.outbox;
select ujobs.set_queue_driver('outbox_q', 'nats', 'outbox_nats');
select queue, driver from ujobs.queues where queue like 'outbox%';
select q ->> 'driver' from jsonb_array_elements(ujobs.inspect_queues() -> 'queues') q where q ->> 'queue' = 'outbox_q';
set ujobs.clock = '2026-03-08 06:59:59.123456Z';
begin;
select id, run_id is not null as run_id, deduped
  from ujobs.enqueue('outbox_echo', '{"id": 1, "org": "acme"}', enqueued_by => 'me', priority => 3,
                     traceparent => '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01');
select count(*) from ujobs.jobs where name = 'outbox_echo';
select o.sink, o.topic, o.key, o.headers, o.payload - 'id' - 'runId' - 'signatureSha256' as message,
       length(o.payload ->> 'signatureSha256') as signature,
       o.message_id::text = o.payload ->> 'runId' and o.payload ->> 'id' = o.payload ->> 'runId' as one_id
  from ujobs.outbox o;
rollback;
select count(*) from ujobs.outbox;
select count(*), count(id) as ids, count(distinct run_id) as run_ids, bool_or(deduped) as deduped
  from ujobs.enqueue_many('outbox_echo', array['{"id": 1, "org": ""}', '{"id": 2, "org": "b"}', '{"id": 1, "org": ""}']::jsonb[],
                          run_at => '2026-04-01 00:00:00Z');
select payload ->> 'idempotencyKey' as key, payload -> 'tenantId' as tenant, payload ->> 'runAt' as run_at, headers,
       payload -> 'input' as input
  from ujobs.outbox order by id;
select count(*) from ujobs.enqueue_many('outbox_echo', '{}');
-- as everywhere
select id from ujobs.enqueue('outbox_echo', '{"org": "a"}');
select id from ujobs.enqueue('outbox_echo', '{"id": 1}');
select id from ujobs.enqueue('outbox_echo', '{"id": 1, "org": "a"}', on_conflict => 'error');
select id from ujobs.enqueue('outbox_echo', '{"id": 1, "org": "a"}', on_conflict => 'replace');
-- another queue is a row
select id > 0 as has_id from ujobs.enqueue('outbox_echo', '{"id": 1, "org": "a"}', queue => 'outbox_pg');
reset ujobs.clock;

-- A task, and a job of a job.
delete from ujobs_internal.outbox;
select ujobs.define_task('outbox_task', '0 0 1 1 *', 'UTC', enqueue => '[["outbox_echo", {"id": 7, "org": "t"}]]') ->> 'name';
select id, deduped from ujobs.enqueue_task('outbox_task');
create function outbox_parent(i jsonb) returns jsonb language plpgsql as $$
begin
    perform ujobs.enqueue('outbox_echo', '{"id": 8, "org": "p"}');
    perform ujobs.publish('outbox_http', '/done', i);
    return '{}';
end $$;
alter function outbox_parent owner to outbox_app;
select ujobs.define_job('outbox_parent', 'outbox_parent', '{id}', queue => 'outbox_pg') ->> 'name';
select id > 0 as has_id from ujobs.enqueue('outbox_parent', '{"id": 1}');
select name, outcome, error from ujobs.drain('outbox_pg') order by name;
select topic, payload -> 'input' as input from ujobs.outbox order by id;

-- What holds a message back.
delete from ujobs_internal.outbox;
select ujobs.publish('outbox_nats', 'a', '1', key => 'k') as first \gset
select ujobs.publish('outbox_nats', 'b', '2', key => 'k') as second \gset
select ujobs.publish('outbox_nats', 'c', '3') as third \gset
select topic, state, regexp_replace(held_by, '\d+', 'N') as held_by from ujobs.outbox order by id;
update ujobs_internal.outbox set parked = true, attempts = 3, last_error = '{"message": "no such subject"}' where id = :first;
select topic, state, attempts, last_error, regexp_replace(held_by, '\d+', 'N') as held_by from ujobs.outbox order by id;
update ujobs_internal.sink_status set last_error = 'connection refused', failed_at = '2026-01-01', next_try_at = '2026-01-01 00:00:01Z'
 where sink_id = (select id from ujobs_internal.sink where name = 'outbox_nats');
select held_by from ujobs.outbox where id = :third;
select name, state, last_error, failed_at, next_try_at from ujobs.sinks where name = 'outbox_nats';
select name, kind, labels, value from ujobs.metrics()
 where labels ->> 'sink' = 'outbox_nats' and name <> 'ujobs_outbox_oldest_seconds';
select value between 0 and 600 from ujobs.metrics() where labels ->> 'sink' = 'outbox_nats' and name = 'ujobs_outbox_oldest_seconds';
select ujobs.prometheus() like '%# TYPE ujobs_outbox_published_total counter%';
select ujobs.retry_outbox(:first);
select topic, state, attempts from ujobs.outbox where id = :first;
select ujobs.skip_outbox(:first);
select topic, key from ujobs.outbox order by id;
\set VERBOSITY sqlstate
select ujobs.skip_outbox(:first);
\set VERBOSITY default
select ujobs.retry_outbox(0);
select ujobs.retry_outbox(null);
insert into ujobs_internal.outbox_published (id, created_at, published_at, sink_id, attempts, publisher, is_job, message_id, topic, headers, payload)
select 0, now(), now(), id, 0, 10, false, gen_random_uuid(), 't', '{}', '{}' from ujobs_internal.sink where name = 'outbox_nats';
select ujobs.retry_outbox(0);
select id, state, sink, topic, held_by from ujobs.outbox where state = 'published';

-- Taking in, and dropping a sink that is needed.
select ujobs.consume_queue('outbox_q', 'outbox_redis');
select ujobs.consume_queue('outbox_q', 'outbox_redis', enabled => null) ->> 'enabled';
\set VERBOSITY sqlstate
select ujobs.drop_sink('outbox_nats');
\set VERBOSITY default
delete from ujobs_internal.outbox;
select ujobs.drop_sink('outbox_nats');
select ujobs.drop_sink('outbox_redis');
select * from ujobs.check();
update ujobs_internal.outbox_published set id = 0;
insert into ujobs_internal.outbox (id, created_at, due_at, sink_id, publisher, is_job, message_id, topic, headers, payload, parked)
values (0, now(), 'infinity', 0, 10, false, gen_random_uuid(), 't', '[]', '{}', true);
insert into ujobs_internal.inbox (taken_at, sink_id, parked, message_id, queue) values (now(), 0, true, 'outbox 1', 'outbox_q'),
    (now(), 0, false, 'outbox 2', 'outbox_q');
update ujobs_internal.queue set sink_id = 0 where name = 'outbox_q';
update ujobs_internal.consumer set sink_id = 0;
delete from ujobs_internal.sink_status where sink_id = (select id from ujobs_internal.sink where name = 'outbox_http');
select * from ujobs.check() order by rule, detail collate "C";
set role outbox_monitor;
select message_id, queue, state, message from ujobs.inbox order by 1;
reset role;

-- As it was.
delete from ujobs_internal.consumer;
delete from ujobs_internal.inbox where message_id like 'outbox %';
delete from ujobs_internal.outbox;
delete from ujobs_internal.outbox_published;
select ujobs.set_queue_driver('outbox_q');
select id > 0 as has_id from ujobs.enqueue('outbox_echo', '{"id": 1, "org": "a"}');
select ujobs.drop_task('outbox_task');
select ujobs.drop_job('outbox_echo', force => true);
select ujobs.drop_job('outbox_parent', force => true);
select ujobs.drop_sink(name) from ujobs.sinks;
select count(*) from ujobs_internal.sink_secret;
drop function outbox_echo, outbox_parent;
revoke all on function ujobs.publish, ujobs.define_sink, ujobs.set_sink_secret, ujobs.drop_sink,
    ujobs.set_queue_driver, ujobs.consume_queue from outbox_app;
revoke create on schema public from outbox_app;
drop role outbox_app, outbox_monitor, outbox_other;
