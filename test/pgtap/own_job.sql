-- What a handler may not do to its own job: the attempt would take its own completion away.
begin;
select plan(4);

create schema own_job;
create function own_job.drops(input jsonb) returns void language plpgsql as
$$begin perform ujobs.drop_job('own_job.drops', force => true); end$$;
create function own_job.cancels(input jsonb) returns void language plpgsql as
$$begin perform ujobs.cancel((ujobs.current_job() ->> 'id')::bigint); end$$;
create function own_job.retries(input jsonb) returns void language plpgsql as
$$begin perform ujobs.retry((ujobs.current_job() ->> 'id')::bigint); end$$;
create function own_job.replaces(input jsonb) returns void language plpgsql as
$$begin perform ujobs.enqueue('own_job.replaces', input, on_conflict => 'replace'); end$$;
do $$
begin
    for n in 1 .. 4 loop
        perform ujobs.define_job(f, f, 'k', queue => 'own_job', retry => '{"attempts": 1}'), ujobs.enqueue(f)
           from (select (array['own_job.drops', 'own_job.cancels', 'own_job.retries', 'own_job.replaces'])[n] as f) as x;
    end loop;
end
$$;
do 'begin perform ujobs.drain(''own_job''); end';
select is(last_error -> 'cause' ->> 'sqlstate', code, name)
  from ujobs.jobs
  join (values ('own_job.drops', 'UJ006'), ('own_job.cancels', 'UJ017'), ('own_job.retries', 'UJ017'),
               ('own_job.replaces', 'UJ009')) as t (name, code) using (name)
 order by name;

select * from finish();
rollback;
