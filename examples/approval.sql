-- Approval with a timeout: a job waits for somebody's decision for two days,
-- and decides by itself after that.  The event may be published before the
-- job waits for it, at the same moment, or never.
--
--     psql -f examples/approval.sql YOUR_DATABASE_WITH_UJOBS

create schema approval;
create table approval.refund (id bigint primary key, amount int not null, state text not null default 'asked');

create procedure approval.decide(input jsonb, inout result jsonb)
language plpgsql as $$
declare
    decision jsonb;
begin
    call ujobs.step_wait_for_event('decision', 'refund_decided', input ->> 'refundId',
        coalesce(input ->> 'patience', '2 days')::interval, false, decision);
    result := jsonb_build_object('state',
        case when decision is null then 'expired'
             when (decision ->> 'approved')::boolean then 'approved'
             else 'declined' end);
    call ujobs.step_run('book', 'update approval.refund set state = $1 ->> ''state'' where id = ($1 ->> ''refundId'')::bigint',
        input || result);
end
$$;

select ujobs.define_job('approval.decide', 'approval.decide', 'refund:{refundId}') ->> 'kind' as kind;

-- A try in virtual time.
begin;
set local time zone 'UTC';
set local ujobs.clock = '2026-03-02 09:00Z';
insert into approval.refund values (1, 10), (2, 20), (3, 30);
select deduped from ujobs.enqueue('approval.decide', '{"refundId": 1}');
select deduped from ujobs.enqueue('approval.decide', '{"refundId": 2}');
select deduped from ujobs.enqueue('approval.decide', '{"refundId": 3}');

-- Somebody decides about the first before its job looks, about the second while it waits.
select ujobs.publish_event('refund_decided', '{"approved": true}', '1') is not null as published;
select name, outcome from ujobs.drain();
select ujobs.publish_event('refund_decided', '{"approved": false}', '2') is not null as published;
select name, outcome from ujobs.drain();

-- Nobody decides about the third.
set local ujobs.clock = '2026-03-04 09:00Z';
select name, outcome from ujobs.drain();
select id, state from approval.refund order by id;
rollback;
