-- The bank: pgbench's own tables, a ledger, and settlement as a job.
--
-- Run as role bank, which owns pgbench's tables, in a database that has the
-- extension.  bank is an ordinary role that may define jobs.

create schema demo;

-- Drawn at the start of each transfer; a transfer that rolls back leaves a gap.
create sequence demo.transfer_id;

-- One row per committed transfer, written by the transfer's own transaction.
create table demo.ledger (
    transfer bigint primary key,
    aid int not null,
    bid int not null,
    delta int not null
);

-- One row per settlement, written by the handler.  There is no unique key on
-- purpose: had a job run twice, two rows would say so.
create table demo.settled (
    transfer bigint not null,
    fee int not null,
    attempt int not null
);

-- How settling a transfer will go, decided by its number alone, so that the
-- proof afterwards knows what must have happened.  About 1 in 20 stumbles on
-- its first attempt, 1 in 100 on two; 1 in 200 is hopeless.
create function demo.dice(transfer bigint) returns int
language sql immutable parallel safe
return abs(hashint8(transfer)::bigint % 1000)::int;

create function demo.stumbles(transfer bigint) returns int
language sql immutable parallel safe
return case when demo.dice(transfer) < 5 then 1000000
            when demo.dice(transfer) < 15 then 2
            when demo.dice(transfer) < 65 then 1
            else 0 end;

create function demo.is_hopeless(transfer bigint) returns boolean
language sql immutable parallel safe
return demo.dice(transfer) < 5;

-- The handler: one settlement in one transaction.  A fee of 1 % of the amount,
-- at least 1, moves from the account to its branch.
create function demo.settle(input jsonb) returns jsonb
language plpgsql
as $$
declare
    entry demo.ledger;
    fee int;
    attempt int := (ujobs.current_job() ->> 'attempt')::int;
begin
    select * into strict entry from demo.ledger where transfer = (input ->> 'transfer')::bigint;
    fee := greatest(1, abs(entry.delta) / 100);

    update public.pgbench_accounts set abalance = abalance - fee where aid = entry.aid;
    insert into demo.settled values (entry.transfer, fee, attempt);

    -- Fails with the money half moved: the transaction takes it back.
    if demo.is_hopeless(entry.transfer) then
        raise exception 'account % is frozen', entry.aid using errcode = 'BK001';
    elsif attempt <= demo.stumbles(entry.transfer) then
        raise exception 'the clearing house does not answer' using errcode = '08006';
    end if;

    update public.pgbench_branches set bbalance = bbalance + fee where bid = entry.bid;
    return jsonb_build_object('fee', fee);
end
$$;

select ujobs.define_job(
    name => 'settle',
    handler => 'demo.settle',
    idempotency_key => 'settle:{transfer}',
    retry => '{"attempts": 4, "backoff": "exponential", "delay": "500ms", "jitter": false}',
    description => 'move the fee of a transfer from its account to its branch');

-- What the progress display saw, once a second.
create table demo.sample (
    at timestamptz not null default clock_timestamp(),
    depth bigint not null,
    settled bigint not null
);
