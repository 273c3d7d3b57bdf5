-- What all sides share: the table of accounts that a job updates one row of,
-- the same as the handler of ujobs, and the sender of the latency figure.

create table bench.account (id int primary key, balance bigint not null default 0) with (fillfactor = 50);
insert into bench.account select generate_series(1, 1000);
grant select, update on bench.account to app;

create function bench.account_add(input jsonb) returns jsonb
language plpgsql as $$
begin
    update bench.account set balance = balance + 1 where id = (1 + (input ->> 'userId')::bigint % 1000)::int;
    return null;
end
$$;

create procedure bench.reset_accounts()
language sql
begin atomic
    update bench.account set balance = 0 where balance <> 0;
end;

create procedure bench.check_accounts(jobs bigint)
language plpgsql as $$
begin
    if (select sum(balance) from bench.account) is distinct from jobs then
        raise exception '% jobs updated % rows', jobs, (select sum(balance) from bench.account);
    end if;
end
$$;

-- Runs statement for one number after the other, each in a transaction of its
-- own, and notes the clock after each commit.  per_second 0 means an idle
-- server: random gaps of 2 to 20 ms; otherwise the jobs keep to a timetable.
create unlogged table bench.sent (n bigint primary key, at timestamptz not null);
create procedure bench.send(statement text, jobs int, per_second int)
language plpgsql as $$
declare
    first bigint := 10000000 + bench.first_number(jobs);
    began timestamptz := clock_timestamp();
    at timestamptz;
    committed timestamptz[];
begin
    for n in 1 .. jobs loop
        if per_second = 0 then
            perform pg_sleep(0.002 + random() * 0.018);
        else
            perform pg_sleep(greatest(0, n / per_second::float8 - extract(epoch from clock_timestamp() - began)));
        end if;
        execute statement using first + n;
        commit;
        at := clock_timestamp();
        committed := committed || at;
    end loop;
    truncate bench.sent;
    insert into bench.sent select first + t.n, t.at from unnest(committed) with ordinality t (at, n);
    commit;
end
$$;

-- Rows a second of a statement that writes $1 of them, its commit included.
create procedure bench.bulk(statement text, jobs int, inout figures text default null)
language plpgsql as $$
declare
    began timestamptz := clock_timestamp();
begin
    execute statement using jobs;
    commit;
    figures := (jobs / extract(epoch from clock_timestamp() - began))::bigint;
end
$$;

-- In ms, of the jobs sent last.
create view bench.ujobs_wait as
select (extract(epoch from h.started_at - s.at) * 1000)::numeric(12, 4) as wait
  from bench.sent s
  join ujobs_internal.job_history h on h.state = 'd' and (h.input ->> 'userId')::bigint = s.n;

-- The same figure for ujobs: p50 p95 p99 in ms.
create procedure bench.latency_as_peers(jobs int, per_second int, inout figures text default null)
language plpgsql as $$
declare
    give_up constant timestamptz := clock_timestamp() + interval '10 minutes';
    done bigint;
begin
    call bench.send('select from ujobs.enqueue(''latency'', jsonb_build_object(''userId'', $1::bigint))', jobs, per_second);
    while exists (select from ujobs_internal.job
                   where definition_id = (select id from ujobs_internal.definition where name = 'latency')) loop
        commit;
        perform pg_sleep(0.002);
        if clock_timestamp() > give_up then
            raise exception 'the jobs do not end';
        end if;
    end loop;
    select n, concat_ws(' ', p[1]::numeric(12, 3), p[2]::numeric(12, 3), p[3]::numeric(12, 3)) into done, figures
      from (select percentile_disc(array[0.5, 0.95, 0.99]) within group (order by wait) as p, count(*) as n
              from bench.ujobs_wait) x;
    if done is distinct from jobs then
        raise exception '% of % jobs are done', done, jobs;
    end if;
end
$$;

-- The jobs of ujobs beside those of jobs.sql.
set role app;
do $$
begin
    perform ujobs.define_job('account_1', 'bench.account_add', 'account:{userId}', queue => 'account_1');
    perform ujobs.define_job('account_64', 'bench.account_add', 'account:{userId}', queue => 'account_64', batch => 64);
end
$$;
reset role;
do $$ begin perform ujobs.define_external_job('peers', 'peers:{userId}'); end $$;
