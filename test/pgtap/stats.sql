-- Counts at depth: beyond 20000 jobs in a lane, or dead letters, they come
-- from a sample of pages.  Tables of up to 1000 pages are sampled in full, so
-- here the answers are known.
begin;
select plan(6);
set local synchronous_commit = off;
do 'begin perform set_config(''ujobs.clock'', now()::text, true); end';

insert into test_store.definition (id, name, kind, handler, owner, owner_name, idempotency_key, retry, queue,
                                       priority, batch, created_at)
select -1, 'stats_job', 'atomic', 'f', oid, rolname, '{id}', '{"attempts": 3}', 'stats', 0, 1, now()
  from pg_roles where rolname = current_user;
insert into test_store.job (id, due_at, run_at, created_at, definition_id, enqueued_role, priority, max_attempts, run_id,
                                queue, key, input, state)
select -n, now() + interval '1 hour' * sign(n - 20100), now(), now(), -1, 10, 0, 3, '00000000-0000-0000-0000-000000000001',
       'stats', n, '{}', case when n % 1000 = 0 then 's' else 'p' end::"char"
  from generate_series(1, 21000) n;
insert into test_store.job (id, due_at, run_at, created_at, definition_id, enqueued_role, priority, max_attempts, run_id,
                                queue, key, input)
select -100000, now() - interval '2 hours', now(), now(), -1, 10, 1, 3, '00000000-0000-0000-0000-000000000001', 'stats', 'first', '{}';
insert into test_store.job_history (id, slot, run_at, created_at, started_at, finished_at, expires_at, definition_id, enqueued_role,
                                        attempt, max_attempts, priority, state, run_id, queue, tenant, key, input, last_error)
select -n, ujobs_internal.history_slot(now() + interval '1 day'), now(), now(), now(), now(), now() + interval '1 day', -1, 10, 1, 1, 0,
       case when n % 21 = 0 then 'd' else 'x' end::"char", '00000000-0000-0000-0000-000000000001', 'stats', '', n, '{}', '{}'
  from generate_series(200001, 221000) n;

select is((select r.oldest_ready_ms from ujobs.stats() r where queue = 'stats'), 7200000::bigint, 'the oldest ready job of all lanes');
select is(s.ready, 20081::bigint, 'ready') from ujobs.stats() s where queue = 'stats';
select is(s.delayed, 899::bigint, 'delayed') from ujobs.stats() s where queue = 'stats';
select is(s.suspended, 21::bigint, 'suspended') from ujobs.stats() s where queue = 'stats';
select is(s.dead, 20000::bigint, 'dead') from ujobs.stats() s where queue = 'stats';
insert into test_store.job_history (id, slot, run_at, created_at, started_at, finished_at, expires_at, definition_id, enqueued_role,
                                        attempt, max_attempts, priority, state, run_id, queue, tenant, key, input, last_error)
select -300000, 3, now(), now(), now(), now(), now() + interval '1 day', -1, 10, 1, 1, 0,
       'x', '00000000-0000-0000-0000-000000000001', 'stats', '', 'last', '{}', '{}';
select is(s.dead, 20001::bigint, 'dead, sampled') from ujobs.stats() s where queue = 'stats';
select * from finish();
rollback;
