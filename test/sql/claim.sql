-- The worker interface: what its calls answer, refuse and leave behind.
\set VERBOSITY terse
create role claim_owner login;
create role claim_worker;
create role claim_stranger;
grant claim_owner to current_user;

-- Without an engine there is nobody to ask.
select * from ujobs.claim('w');
call ujobs.wait_for_work();

select ujobs.start_workers();
grant execute on function ujobs.define_external_job to claim_owner;
set role claim_owner;
select ujobs.define_external_job('claim_a', '{k}', queue => 'claim', tenant => '{t}',
                                 retry => '{"attempts": 2, "backoff": "fixed", "delay": "1 hour", "jitter": false}') ->> 'kind';
select ujobs.define_external_job('claim_dropped', '{k}', queue => 'claim dropped', retry => '{"attempts": 1, "deadLetter": false}') ->> 'kind';
select ujobs.define_external_job('claim_unkept', '{k}', queue => 'claim unkept', retention => '0') ->> 'kind';
reset role;

-- What a claim says, but for what differs each time.
create function claim_one(variadic queues text[] default '{claim}', out id bigint, out lease bigint, out says text) language plpgsql as $$
declare
    c ujobs.claimed_job;
begin
    select * into c from ujobs.claim('claim test', queues, visibility_timeout => '1 hour', wait => '20 seconds');
    id := c.id;
    lease := c.lease;
    says := format('%s %s %s attempt %s of %s tenant %s by %s trace %s', c.name, c.queue, c.input, c.attempt, c.max_attempts,
                   c.tenant_id, c.enqueued_by, c.traceparent)
            || case when c.lease > 0 and c.visible_at > now() + interval '59 minutes' and c.run_id is not null then '' else ' ?' end;
end
$$;
create function claim_job(wanted bigint) returns text language sql as $$
    select concat_ws(' ', j.state, 'attempt', j.attempt, 'result', j.result, j.last_error ->> 'sqlstate', j.last_error ->> 'message',
                     case when j.started_at is null then 'not started' end,
                     (select 'leased' from ujobs_internal.lease where job_id = wanted))
      from ujobs.jobs j where j.id = wanted
$$;
create function claim_due(wanted bigint) returns interval language sql as $$
    select date_trunc('minute', due_at - now() + interval '30 seconds') from ujobs_internal.job where id = wanted
$$;
set intervalstyle = 'postgres';

-- ---- ack ----
select id as a from ujobs.enqueue('claim_a', '{"k": 1, "t": "acme"}', enqueued_by => 'ann',
                                  traceparent => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01') \gset
select * from claim_one() \gset
\echo :says
select :a = :id, claim_job(:id), regexp_replace(ujobs.why(:id) ->> 'reason', '\d{4}-.*', 'T');
select ujobs.ack(:id, :lease + 1), ujobs.ack(:id + 1000000, :lease), claim_job(:id);
begin;
savepoint s;
select ujobs.ack(:id, :lease, '{"ok": true}');
rollback to s;
select claim_job(:id);
commit;
select ujobs.ack(:id, :lease, '{"ok": true}');
select ujobs.ack(:id, :lease), ujobs.ack(:id, :lease + 1), claim_job(:id);
select ujobs.heartbeat(:id, :lease);
\set VERBOSITY sqlstate
select ujobs.nack(:id, :lease);
\set VERBOSITY terse
select ujobs.retry(:id) ->> 'state';
select ujobs.ack(:id, :lease);
select * from claim_one() \gset
\echo :says
\set VERBOSITY sqlstate
select ujobs.retry(:id);
\set VERBOSITY terse
select ujobs.cancel(:id) ->> 'state', claim_job(:id);
select ujobs.ack(:id, :lease), ujobs.heartbeat(:id, :lease);

-- One that keeps no history cannot know later who finished it.
select id as a from ujobs.enqueue('claim_unkept', '{"k": 1}') \gset
select * from claim_one('claim unkept') \gset
select ujobs.ack(:id, :lease), ujobs.ack(:id, :lease);

-- Claim and ack in one transaction, and one statement.
select count(*) from ujobs.enqueue('claim_a', '{"k": 2, "t": ""}') \gset
select c.name, ujobs.ack(c.id, c.lease) from ujobs.claim('w', '{claim}', wait => '20 seconds') c;

-- ---- nack ----
select id as a from ujobs.enqueue('claim_a', '{"k": 3, "t": ""}') \gset
select * from claim_one() \gset
select ujobs.nack(:id, :lease, 'too hot');
select claim_job(:id), claim_due(:id);
select ujobs.retry(:id) ->> 'state';
select * from claim_one() \gset
select ujobs.nack(:id, :lease, delay => '2 hours', counts_as_attempt => false);
select claim_job(:id), claim_due(:id);
select ujobs.retry(:id) ->> 'state';
select * from claim_one() \gset
select ujobs.nack(:id, :lease, 'first', delay => '0');
select * from claim_one() \gset
\echo :says
select ujobs.nack(:id, :lease, 'second');
select claim_job(:id);
select last_error -> 'cause' ->> 'message' from ujobs.jobs where id = :id;
select ujobs.retry(:id) ->> 'state';
select * from claim_one() \gset
select ujobs.nack(:id, :lease, 'poison', dead_letter => true);
select claim_job(:id);
select ujobs.retry(:id) ->> 'state';
select * from claim_one() \gset
select ujobs.nack(:id, :lease, 'x', delay => '0');
select * from claim_one() \gset
select ujobs.nack(:id, :lease, 'not worth a letter', dead_letter => false);
select claim_job(:id);
select id as a from ujobs.enqueue('claim_dropped', '{"k": 1}') \gset
select * from claim_one('claim dropped') \gset
select ujobs.nack(:id, :lease, 'drop me');
select claim_job(:id);

-- Parked: until somebody retries it, or for a while.
select id as a from ujobs.enqueue('claim_a', '{"k": 4, "t": ""}') \gset
select * from claim_one() \gset
select ujobs.nack(:id, :lease, 'wait for the key', park => true);
select claim_job(:id), ujobs.why(:id) ->> 'reason';
select ujobs.retry(:id) ->> 'state';
select * from claim_one() \gset
\echo :says
select ujobs.nack(:id, :lease, park => true, delay => '10 ms');
select * from claim_one() \gset
\echo :says

-- ---- steps ----
select ujobs.step_get(:id, :lease, 'one'), ujobs.step_put(:id, :lease, 'one', '{"n": 1}'), ujobs.step_put(:id, :lease, 'two', null);
select ujobs.step_get(:id, :lease, 'one'), ujobs.step_get(:id, :lease, 'two'), ujobs.step_get(:id, :lease, 'three');
select ujobs.step_put(:id, :lease, 'one', '{"n": 2}'), ujobs.step_get(:id, :lease, 'one');
select ujobs.step_suspend(:id, :lease, 'no time', '0');
select ujobs.step_suspend(:id, :lease, 'nap', '300 ms') > now();
select claim_job(:id);
\set VERBOSITY sqlstate
select ujobs.step_get(:id, :lease, 'one');
\set VERBOSITY terse
select * from claim_one() \gset
\echo :says
select ujobs.step_suspend(:id, :lease, 'nap', '1 hour'), ujobs.step_get(:id, :lease, 'one');
select ujobs.step_await(:id, :lease, 'go', 'claim_go', match => 'k4', timeout => null);
select claim_job(:id), ujobs.why(:id) ->> 'reason';
select ujobs.publish_event('claim_go', '{"go": 1}', match => 'other') is null;
select ujobs.publish_event('claim_go', '{"go": 2}', match => 'k4') is null;
select * from claim_one() \gset
\echo :says
select ujobs.step_await(:id, :lease, 'go', 'claim_go', match => 'k4');
select ujobs.step_await(:id, :lease, 'go', 'claim_go', match => 'k4');
select ujobs.step_await(:id, :lease, 'never', 'claim_never', timeout => '50 ms') ->> 'state';
select * from claim_one() \gset
\echo :says
select ujobs.step_await(:id, :lease, 'never', 'claim_never');
select ujobs.step_await(:id, :lease, 'at once', 'claim_never', timeout => '0');
select ujobs.step_put(:id, :lease, 'go', '1');
select ujobs.step_suspend(:id, :lease, 'one', '1 hour');
select ujobs.step_await(:id, :lease, 'nap', 'x');
select ujobs.step_get(:id, :lease, null);
select ujobs.step_put(:id, :lease, '', '1');
select ujobs.ack(:id, :lease);
select seq, name, status, output, event, match from ujobs.steps where job_id = :id order by seq;
select count(*) from ujobs_internal.job_step where job_id = :id;

-- ---- who may ----
select id as a from ujobs.enqueue('claim_a', '{"k": 5, "t": ""}') \gset
grant execute on function ujobs.claim, ujobs.ack, ujobs.nack, ujobs.heartbeat to claim_worker, claim_stranger;
set role claim_stranger;
select count(*) from ujobs.claim('w', '{claim}');
set role claim_worker;
select count(*) from ujobs.claim('w', '{claim}');
reset role;
select ujobs.grant_work('claim_a', 'claim_worker');
set role claim_worker;
select c.lease as lease, c.id as id from ujobs.claim('w', '{claim}', wait => '20 seconds') c \gset
select :id = :a;
set role claim_stranger;
\set VERBOSITY sqlstate
select ujobs.ack(:id, :lease);
select ujobs.heartbeat(:id, :lease);
\set VERBOSITY terse
set role claim_worker;
select ujobs.heartbeat(:id, :lease), ujobs.ack(:id, :lease);
select ujobs.step_get(:id, :lease, 'x');
reset role;

-- ---- what is refused ----
select * from ujobs.claim(null);
select * from ujobs.claim('');
select * from ujobs.claim('w', null);
select * from ujobs.claim('w', '{}');
select * from ujobs.claim('w', array[null]);
select * from ujobs.claim('w', array['']);
select * from ujobs.claim('w', max_jobs => 0);
select * from ujobs.claim('w', max_jobs => 1001);
select * from ujobs.claim('w', max_jobs => null);
select * from ujobs.claim('w', visibility_timeout => '0');
select * from ujobs.claim('w', visibility_timeout => '-1 s');
select * from ujobs.claim('w', visibility_timeout => '1000000 years');
select * from ujobs.claim('w', wait => '61 s');
select * from ujobs.claim('w', wait => null);
begin read only;
select * from ujobs.claim('w');
rollback;
select ujobs.ack(null, 1);
select ujobs.ack(1, null);
select ujobs.heartbeat(1, 1, '0');
select ujobs.nack(1, 1, delay => '-1 s');
select ujobs.nack(1, 1, delay => '1 s', dead_letter => true);
select ujobs.nack(1, 1, park => null);
select ujobs.step_suspend(1, 1, 'x', null);
select ujobs.step_suspend(1, 1, 'x', '-1 s');
select ujobs.step_await(1, 1, 'x', '');
call ujobs.wait_for_work(null);
call ujobs.wait_for_work('{claim}', '-1 s');
call ujobs.wait_for_work('{claim}', '10 ms');
begin;
call ujobs.wait_for_work('{claim}', '10 ms');
rollback;
do $$ declare found boolean; begin call ujobs.wait_for_work('{claim}', '10 ms', found); raise notice 'found %', found; end $$;

select ujobs.stop_workers();
select * from ujobs.check();
select ujobs.drop_job(n, force => true) from unnest('{claim_a,claim_dropped,claim_unkept}'::text[]) n;
select sum(ujobs.purge('0', q)) > 0 from unnest('{claim,claim dropped,claim unkept}'::text[]) q;
drop function claim_one, claim_job, claim_due;
revoke execute on function ujobs.claim, ujobs.ack, ujobs.nack, ujobs.heartbeat from claim_worker, claim_stranger;
revoke execute on function ujobs.define_external_job from claim_owner;
drop role claim_worker, claim_stranger, claim_owner;
