-- The loops of peers-backlog: part of a deep queue, and jobs that sleep.

create procedure bench.sleeper(input jsonb)
language plpgsql as $$ begin call ujobs.step_sleep('1 day'); end $$;

set role app;
do $$ begin perform ujobs.define_job('sleeper', 'bench.sleeper', 'sleeper:{userId}', queue => 'sleeper'); end $$;
reset role;

-- More jobs for a paused queue, 100 000 in a transaction.
create procedure bench.fill_deep(name text, jobs int)
language plpgsql as $$
declare
    first int;
    n int;
begin
    perform ujobs.pause_queue(name);
    commit;
    while jobs > 0 loop
        n := least(jobs, 100000);
        first := bench.first_number(n);
        perform count(*) from ujobs.enqueue_many(name, (select array_agg(bench.input(first + i)) from generate_series(1, n) i));
        commit;
        jobs := jobs - n;
    end loop;
end
$$;

-- Lets the queue go until so many jobs of it are done.  Figures: seconds from
-- the first start to the end of that job, ms from the resume to the first start.
create procedure bench.drain_part(name text, jobs int, inout figures text default null)
language plpgsql as $$
declare
    give_up constant timestamptz := clock_timestamp() + interval '5 minutes';
    resumed timestamptz;
begin
    truncate ujobs_internal.job_history;
    perform ujobs.resume_queue(name);
    resumed := clock_timestamp();
    commit;
    while (select count(*) from (select from ujobs_internal.job_history limit jobs) h) < jobs loop
        commit;
        perform pg_sleep(0.01);
        if clock_timestamp() > give_up then
            raise exception '% jobs do not end', jobs;
        end if;
    end loop;
    perform ujobs.pause_queue(name);
    commit;
    while exists (select from ujobs.workers w where w.job_id is not null) loop
        commit;
        perform pg_sleep(0.01);
    end loop;
    select concat_ws(' ', extract(epoch from h.finished_at - f.first),
                     round(extract(epoch from f.first - resumed) * 1000, 1)) into figures
      from ujobs_internal.job_history h
     cross join (select min(started_at) as first from ujobs_internal.job_history) f
     where h.state = 'd'
     order by h.finished_at
    offset jobs - 1 limit 1;
end
$$;

-- So many jobs that sleep until tomorrow.
create procedure bench.put_to_sleep(jobs int)
language plpgsql as $$
declare
    give_up constant timestamptz := clock_timestamp() + interval '20 minutes';
begin
    call bench.fill_deep('sleeper', jobs);
    perform ujobs.resume_queue('sleeper');
    commit;
    while exists (select from ujobs_internal.job j join ujobs_internal.definition d on d.id = j.definition_id
                   where d.name = 'sleeper' and j.queue = 'sleeper' and j.due_at <= clock_timestamp()) loop
        commit;
        perform pg_sleep(0.1);
        if clock_timestamp() > give_up then
            raise exception 'the jobs do not fall asleep';
        end if;
    end loop;
end
$$;
