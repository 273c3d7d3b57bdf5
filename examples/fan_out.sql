-- Fan-out and join: one job cuts the work into many, waits for all of them
-- without holding anything, and puts their results together.
--
--     psql -f examples/fan_out.sql YOUR_DATABASE_WITH_UJOBS

create schema fan_out;
create table fan_out.sale (region text not null, amount int not null);
create table fan_out.report (month text primary key, total bigint not null, missing text[] not null);

-- The part: any number of them run at the same time.
create function fan_out.sum_region(input jsonb) returns bigint
language sql as $$ select coalesce(sum(amount), 0) from fan_out.sale where region = input ->> 'region' $$;

create procedure fan_out.month_report(input jsonb)
language plpgsql as $$
declare
    children jsonb;
    outcome jsonb;
    total bigint := 0;
    missing text[] := '{}';
begin
    -- Enqueued in a step: a replay finds the same children.
    call ujobs.step_run('parts', $step$
        select jsonb_agg(jsonb_build_object('region', r.region, 'id', e.id) order by r.region)
          from (select distinct region from fan_out.sale) as r,
               lateral ujobs.enqueue('fan_out.sum_region', jsonb_build_object('region', r.region, 'month', $1 ->> 'month')) as e
        $step$, input, children);
    for i in 0 .. jsonb_array_length(children) - 1 loop
        call ujobs.step_wait_for_job('part ' || (children -> i ->> 'region'), (children -> i ->> 'id')::bigint);
        outcome := ujobs.step_result('part ' || (children -> i ->> 'region'));
        if outcome ->> 'state' = 'done' then
            total := total + (outcome ->> 'result')::bigint;
        else
            missing := missing || (children -> i ->> 'region');
        end if;
    end loop;
    call ujobs.step_run('report', 'insert into fan_out.report select $1 ->> ''month'', ($1 ->> ''total'')::bigint, array(select jsonb_array_elements_text($1 -> ''missing''))',
        jsonb_build_object('month', input ->> 'month', 'total', total, 'missing', to_jsonb(missing)));
end
$$;

select ujobs.define_job('fan_out.sum_region', 'fan_out.sum_region', '{month}/{region}') ->> 'kind' as kind;
select ujobs.define_job('fan_out.month_report', 'fan_out.month_report', '{month}') ->> 'kind' as kind;

-- A try: all of it in this transaction.
begin;
insert into fan_out.sale select (array['north', 'south', 'west'])[1 + n % 3], n from generate_series(1, 99) as n;
select deduped from ujobs.enqueue('fan_out.month_report', '{"month": "2026-03"}');
select name, outcome, count(*) from ujobs.drain() group by 1, 2 order by 1, 2;
select * from fan_out.report;
rollback;
