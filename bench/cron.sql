-- The tasks of cron.sh.

create table bench.fired (n int not null, at timestamptz not null);
grant insert on bench.fired to app;
create function bench.fire(input jsonb) returns jsonb
language plpgsql as $$
begin
    insert into bench.fired values ((input ->> 'n')::int, clock_timestamp());
    return null;
end
$$;
grant execute on function ujobs.define_task to app;
set role app;
do $$ begin perform ujobs.define_job('fire', 'bench.fire', 'fire:{n}', queue => 'cron'); end $$;
reset role;

create procedure bench.cron_ujobs(tasks int)
language plpgsql as $$
begin
    set local role app;
    perform ujobs.define_task('every_minute_' || n, '* * * * *', 'UTC', jsonb_build_array(jsonb_build_array('fire', jsonb_build_object('n', n))))
       from generate_series(1, tasks) n;
end
$$;

create procedure bench.cron_pg_cron(tasks int)
language plpgsql as $$
begin
    perform cron.schedule('every_minute_' || n, '* * * * *', format('insert into bench.fired values (%s, clock_timestamp())', n))
       from generate_series(1, tasks) n;
end
$$;

create procedure bench.cron_stop()
language plpgsql as $$
begin
    perform ujobs.drop_task(t.name) from ujobs.tasks t;
    perform cron.unschedule(j.jobid) from cron.job j;
end
$$;

-- A line a minute: ms after it of the first, the middle and the last run; runs a second.
create procedure bench.cron_figures(inout figures text default null)
language sql
begin atomic
    select string_agg(concat_ws(' ', f.first, f.middle, f.last, f.rate), E'\n')
      from (select min(wait) as first, percentile_disc(0.5) within group (order by wait) as middle, max(wait) as last,
                   round(1000 * (count(*) - 1) / (max(wait) - min(wait)), 1) as rate
              from (select date_trunc('minute', at) as minute, (1000 * extract(epoch from at - date_trunc('minute', at)))::numeric(12, 2) as wait
                      from bench.fired) w
             group by minute) f;
end;
