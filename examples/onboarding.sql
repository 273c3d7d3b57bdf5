-- Onboarding: provision, welcome, three quiet days, and a nudge for those who
-- did nothing.  One procedure reads like the business rule; what is done
-- stays done, whatever crashes, and the three days hold nothing.
--
--     psql -f examples/onboarding.sql YOUR_DATABASE_WITH_UJOBS

create schema onboarding;
create table onboarding.account (id bigint primary key, provisioned boolean not null default false);
create table onboarding.purchase (account_id bigint not null);
create table onboarding.mail (account_id bigint not null, template text not null);

create procedure onboarding.welcome(input jsonb)
language plpgsql as $$
begin
    call ujobs.step_run('provision',
        'update onboarding.account set provisioned = true where id = ($1 ->> ''accountId'')::bigint', input);
    call ujobs.step_run('welcome mail',
        'insert into onboarding.mail values (($1 ->> ''accountId'')::bigint, ''welcome'')', input);
    call ujobs.step_sleep('quiet days', coalesce(input ->> 'quiet', '3 days')::interval);
    if not exists (select from onboarding.purchase where account_id = (input ->> 'accountId')::bigint) then
        call ujobs.step_run('nudge',
            'insert into onboarding.mail values (($1 ->> ''accountId'')::bigint, ''nudge'')', input);
    end if;
end
$$;

select ujobs.define_job('onboarding.welcome', 'onboarding.welcome', 'account:{accountId}') ->> 'kind' as kind;

-- A try in virtual time: three days pass in this transaction, and its end
-- takes all of it back.
begin;
set local time zone 'UTC';
set local ujobs.clock = '2026-03-02 09:00Z';
insert into onboarding.account values (1), (2);
select deduped from ujobs.enqueue('onboarding.welcome', '{"accountId": 1}');
select deduped from ujobs.enqueue('onboarding.welcome', '{"accountId": 2}');
select name, outcome from ujobs.drain();
select account_id, template from onboarding.mail order by 1, 2;
select step.name, step.status, to_char(step.wake_at, 'Dy DD HH24:MI') as wakes
  from ujobs.steps as step join ujobs.jobs as job on job.id = step.job_id
 where job.idempotency_key = 'account:1' order by step.seq;

-- Nobody is asked before the three days are over.
set local ujobs.clock = '2026-03-05 08:59Z';
insert into onboarding.purchase values (2);
select name, outcome from ujobs.drain();
set local ujobs.clock = '2026-03-05 09:00Z';
select name, outcome from ujobs.drain();
select account_id, template from onboarding.mail order by 1, 2;
rollback;
