-- The table of the floor's worker: the least that a queue needs, and how a run
-- of the worker is started and measured.

create table bench.floor_job (
    id bigint generated always as identity primary key,
    state text not null default 'ready',
    payload jsonb not null
) with (fillfactor = 90);
create index on bench.floor_job (id) where state = 'ready';
create table bench.floor_span (began timestamptz not null, ended timestamptz not null);

create function bench.floor_worker_start(together boolean, handler regprocedure) returns void
language c strict as 'floor_worker', 'floor_worker_start';

create procedure bench.floor_fill(jobs int)
language plpgsql as $$
begin
    truncate bench.floor_job, bench.floor_span;
    insert into bench.floor_job (payload) select bench.input(n) from generate_series(1, jobs) n;
end
$$;

-- Jobs a second from the first claim to the end of the last worker.
create procedure bench.floor_run(together boolean, handler regprocedure, workers int, jobs int, inout figures text default null)
language plpgsql as $$
declare
    give_up constant timestamptz := clock_timestamp() + interval '5 minutes';
begin
    for n in 1 .. workers loop
        perform bench.floor_worker_start(together, handler);
    end loop;
    while (select count(*) from bench.floor_span) < workers loop
        commit;
        perform pg_sleep(0.005);
        if clock_timestamp() > give_up then
            raise exception 'the workers do not end';
        end if;
    end loop;
    if exists (select from bench.floor_job) then
        raise exception 'jobs were left';
    end if;
    select (jobs / extract(epoch from max(ended) - min(began)))::bigint into figures from bench.floor_span;
end
$$;
