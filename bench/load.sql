-- A load at a fixed rate (load.sh): the jobs of ujobs, a worker for the
-- home-made queue, and what was run when.

create table bench.ran (
    task text not null,
    n bigint not null,
    sent_at timestamptz not null,
    ended_at timestamptz not null
);

create function bench.at_second_attempt(input jsonb) returns jsonb
language plpgsql as $$
begin
    if (ujobs.current_job() ->> 'attempt')::int = 1 then
        raise exception 'not at the first attempt';
    end if;
    return null;
end
$$;

set role app;
do $$
begin
    perform ujobs.define_job('load_noop', 'bench.noop', 'load:{userId}', queue => 'load');
    perform ujobs.define_job('load_account', 'bench.account_add', 'load:{userId}', queue => 'load');
    perform ujobs.define_job('load_later', 'bench.noop', 'load:{userId}', queue => 'load');
    perform ujobs.define_job('load_retry', 'bench.at_second_attempt', 'load:{userId}', queue => 'load',
                             retry => '{"backoff": "fixed", "delay": "1s", "jitter": false}');
    perform ujobs.define_job('load_steps', 'bench.three_steps', 'load:{userId}', queue => 'load');
end
$$;
reset role;

-- When no job is left: those that have ended, into bench.ran.
create procedure bench.take_from_history()
language plpgsql as $$
declare
    give_up constant timestamptz := clock_timestamp() + interval '10 minutes';
begin
    while exists (select from ujobs_internal.job j join ujobs_internal.definition d on d.id = j.definition_id where d.name like 'load%') loop
        commit;
        perform pg_sleep(0.1);
        if clock_timestamp() > give_up then
            raise exception 'the jobs do not end';
        end if;
    end loop;
    insert into bench.ran
    select replace(d.name, 'load_', ''), (h.input ->> 'userId')::bigint, to_timestamp((h.input ->> 'at')::float8), h.finished_at
      from ujobs_internal.job_history h
      join ujobs_internal.definition d on d.id = h.definition_id
     where h.state = 'd' and h.input ? 'at';
end
$$;

-- What ended in each slot of so many seconds, and the wait from sending to end in ms.
create function bench.by_slot(began timestamptz, seconds int, slots int) returns table (ended_per_second numeric, p50 numeric, p99 numeric)
language sql
begin atomic
    select round(count(r.wait) / seconds::numeric, 1),
           coalesce(percentile_disc(0.5) within group (order by r.wait), 0),
           coalesce(percentile_disc(0.99) within group (order by r.wait), 0)
      from generate_series(0, slots - 1) s
      left join lateral (select (1000 * extract(epoch from ended_at - sent_at))::numeric(12, 2) as wait
                           from bench.ran
                          where ended_at >= began + s * seconds * interval '1 second'
                            and ended_at < began + (s + 1) * seconds * interval '1 second') r on true
     group by s
     order by s;
end;

-- A worker of the home-made queue: one job a claim, and a look every 5 ms when
-- there is none.  It ends when bench.sent is not empty any more and no job is left.
create procedure bench.work_by_hand()
language plpgsql as $$
declare
    job bench.queue;
    ns bigint[];
    sent float8[];
    ended timestamptz[];
begin
    loop
        update bench.queue set state = 'running', started_at = now(), attempts = attempts + 1
         where id = (select id from bench.queue where state = 'ready' and run_at <= now() order by run_at, id limit 1 for update skip locked)
        returning * into job;
        if job.id is null then
            commit;
            exit when exists (select from bench.sent) and not exists (select from bench.queue where state = 'ready');
            perform pg_sleep(0.005);
            continue;
        end if;
        commit;
        perform bench.noop(job.payload);
        delete from bench.queue where id = job.id;
        commit;
        ns := ns || (job.payload ->> 'userId')::bigint;
        sent := sent || (job.payload ->> 'at')::float8;
        ended := ended || clock_timestamp();
    end loop;
    insert into bench.ran select 'noop', n, to_timestamp(s), e from unnest(ns, sent, ended) t (n, s, e);
end
$$;
