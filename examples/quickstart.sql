-- The first five minutes with ujobs, without any worker: three days pass in
-- this one transaction, and its end takes all of it back.
--
--     psql -f examples/quickstart.sql YOUR_DATABASE_WITH_UJOBS

begin;
create schema quickstart;

-- 1. The business: orders, and a payment service that is down at first.
create table quickstart.orders (id bigint primary key, amount int not null, paid boolean not null default false);
create table quickstart.service (up boolean not null);
insert into quickstart.service values (false);

-- 2. A job is a function of one jsonb.  Its changes, its result and its
--    completion are one transaction; an error undoes the attempt.
create function quickstart.charge(input jsonb) returns jsonb
language plpgsql as $$
begin
    update quickstart.orders set paid = true where id = (input ->> 'orderId')::bigint;
    if not (select up from quickstart.service) then
        raise exception 'the payment service is down';
    end if;
    return jsonb_build_object('charged', true);
end
$$;

-- 3. Its definition: one live job for each order; after a failed attempt it
--    waits one day, then two.
select ujobs.define_job('quickstart.charge', 'quickstart.charge', 'charge:{orderId}', queue => 'quickstart',
                        retry => '{"attempts": 5, "delay": "1 day", "maxDelay": "7 days", "jitter": false}') ->> 'kind' as kind;

-- 4. Time stands where we put it: in this transaction, for this session.
set local time zone 'UTC';
set local ujobs.clock = '2026-03-06 09:00Z';

-- 5. The order and the job that it causes are one transaction.  Asking twice
--    gives the same job.
insert into quickstart.orders values (7, 1200);
select deduped from ujobs.enqueue('quickstart.charge', '{"orderId": 7}');
select deduped from ujobs.enqueue('quickstart.charge', '{"orderId": 7}');

-- 6. Run what is due.  The service is down: the order is not paid, and the
--    job waits for its next attempt.
select name, outcome, error from ujobs.drain('quickstart');
select id, paid from quickstart.orders;
select state, attempt, to_char(run_at, 'Dy DD HH24:MI') as next from ujobs.jobs where queue = 'quickstart';

-- 7. A day later it is still down, so the next wait is two days.
set local ujobs.clock = '2026-03-07 09:00Z';
select name, outcome, error from ujobs.drain('quickstart');
select state, attempt, to_char(run_at, 'Dy DD HH24:MI') as next from ujobs.jobs where queue = 'quickstart';

-- 8. On Monday it is up.
update quickstart.service set up = true;
set local ujobs.clock = '2026-03-09 09:00Z';
select name, outcome, error from ujobs.drain('quickstart');
select id, paid from quickstart.orders;
select state, attempt, result, to_char(finished_at, 'Dy DD HH24:MI') as finished from ujobs.jobs where queue = 'quickstart';

-- 9. It was a try: nothing of it happened.
rollback;
select count(*) from ujobs.jobs where queue = 'quickstart';
