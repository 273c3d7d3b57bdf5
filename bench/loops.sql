-- The loops of the bench, run inside the server so that no client's round trip
-- is measured.  Procedures return their figures as one text, columns separated
-- by blanks, and raise when a job is missing: a figure about jobs that did not
-- run would be a lie.

create schema bench;
grant usage on schema bench to app;

-- The handler that returns at once.
create function bench.noop(input jsonb) returns jsonb
language plpgsql as $$ begin return null; end $$;

-- Three steps that do nothing.
create procedure bench.three_steps(input jsonb)
language plpgsql as $$
begin
    call ujobs.step_run('one', 'select 1');
    call ujobs.step_run('two', 'select 2');
    call ujobs.step_run('three', 'select 3');
end
$$;

create procedure bench.one_wait(input jsonb)
language plpgsql as $$ begin call ujobs.step_wait_for_event('wait', 'bench', input ->> 'userId'); end $$;

-- An input of 20 bytes.
create function bench.input(n int) returns jsonb
language sql immutable return jsonb_build_object('userId', 10000000 + n);

-- Numbers are handed out once: keys of real jobs grow too, and an index treats
-- a key that was there before otherwise.
create table bench.number (next int not null);
insert into bench.number values (1);
create function bench.first_number(jobs int) returns int
language sql
begin atomic
    update bench.number set next = next + jobs returning next - jobs;
end;

-- Until no job is live.  last is the youngest, a look at its primary key is
-- cheap; a transaction for each look, so that no old snapshot is held.
create procedure bench.await_empty(last bigint)
language plpgsql as $$
declare
    give_up constant timestamptz := clock_timestamp() + interval '5 minutes';
begin
    while exists (select from ujobs_internal.job where id = last) loop
        commit;
        perform pg_sleep(0.01);
        if clock_timestamp() > give_up then
            raise exception 'job % does not end', last;
        end if;
    end loop;
    while exists (select from ujobs_internal.job where definition_id <> 0) loop
        commit;
        perform pg_sleep(0.002);
        if clock_timestamp() > give_up then
            raise exception 'jobs stay behind after job %', last;
        end if;
    end loop;
    commit;
end
$$;

-- Commit of an enqueue to the start of its handler, at random gaps on an idle
-- server.  The instant of a commit lies between the two clocks read around it;
-- every other job is enqueued with synchronous_commit off, where the two are
-- close together.  Figures, in ms: p50 p95 p99 from the clock after a
-- synchronous commit; from the clock after an asynchronous one; from the clock
-- before an asynchronous one.
create procedure bench.latency(jobs int, inout figures text default null)
language plpgsql as $$
declare
    job bigint;
    at timestamptz;
    ids bigint[];
    before timestamptz[];
    after timestamptz[];
    done bigint;
begin
    for n in 1 .. jobs loop
        perform pg_sleep(0.002 + random() * 0.018);
        if n % 2 = 0 then
            set local synchronous_commit = off;
        end if;
        select e.id into job from ujobs.enqueue('latency', bench.input(n)) e;
        ids := ids || job;
        before := before || clock_timestamp();
        commit;
        at := clock_timestamp();
        after := after || at;
    end loop;
    call bench.await_empty(job);

    select sum(x.n), string_agg(concat_ws(' ', p[1]::numeric(12, 3), p[2]::numeric(12, 3), p[3]::numeric(12, 3)), ' ' order by kind)
      into done, figures
      from (select v.kind, count(*) filter (where v.kind < 3) as n,
                   percentile_disc(array[0.5, 0.95, 0.99]) within group (order by extract(epoch from h.started_at - v.since) * 1000) as p
              from unnest(ids, before, after) with ordinality t (id, before, after, n)
              join ujobs_internal.job_history h on h.id = t.id and h.state = 'd'
             cross join lateral (values (1 + (1 - t.n % 2), t.after), (3, t.before)) v (kind, since)
             where v.kind < 3 or t.n % 2 = 0
             group by v.kind) x;
    if done is distinct from jobs then
        raise exception '% of % jobs are done', done, jobs;
    end if;
end
$$;

-- A paused queue full of jobs.
create procedure bench.fill(name text, jobs int)
language plpgsql as $$
declare
    first int;
begin
    perform ujobs.pause_queue(name);
    commit;
    first := bench.first_number(jobs);
    perform count(*) from ujobs.enqueue_many(name, (select array_agg(bench.input(first + n)) from generate_series(1, jobs) n));
    commit;
end
$$;

-- Let the queue go and wait for its end.  Figures, in jobs a second: from the
-- first start to the last finish in the history, and from the commit of the
-- resume until no job is live; then ms from the resume to the first start.
create procedure bench.drain(name text, inout figures text default null)
language plpgsql as $$
declare
    jobs bigint;
    last bigint;
    resumed timestamptz;
    empty timestamptz;
    done bigint;
    span float8;
    first_start timestamptz;
begin
    select count(*), max(id) into jobs, last from ujobs_internal.job;
    perform ujobs.resume_queue(name);
    resumed := clock_timestamp();
    commit;
    call bench.await_empty(last);
    empty := clock_timestamp();

    select count(*), extract(epoch from max(finished_at) - min(started_at)), min(started_at) into done, span, first_start
      from ujobs_internal.job_history where state = 'd';
    if done <> jobs then
        raise exception '% of % jobs are done', done, jobs;
    end if;
    figures := concat_ws(' ', (jobs / span)::bigint, (jobs / extract(epoch from empty - resumed))::bigint,
                         round(extract(epoch from first_start - resumed) * 1000, 1));
end
$$;

-- Jobs that wait, each for an event of its own; published one by one, at random
-- gaps.  Figures, in ms: p50 p95 p99 from the clock after the commit of the
-- event to when the waiting step was completed.
create procedure bench.resume(jobs int, inout figures text default null)
language plpgsql as $$
declare
    first int := bench.first_number(jobs);
    job bigint;
    ids bigint[];
    published timestamptz[];
begin
    for n in 1 .. jobs loop
        select e.id into job from ujobs.enqueue('one_wait', bench.input(first + n)) e;
        ids := ids || job;
    end loop;
    commit;
    while exists (select from ujobs_internal.job where state <> 's') loop
        commit;
        perform pg_sleep(0.01);
    end loop;
    for n in 1 .. jobs loop
        commit;
        perform pg_sleep(0.002 + random() * 0.018);
        perform ujobs.publish_event('bench', '{}', bench.input(first + n) ->> 'userId');
        commit;
        published := published || clock_timestamp();
    end loop;
    call bench.await_empty(job);
    select concat_ws(' ', p[1]::numeric(12, 3), p[2]::numeric(12, 3), p[3]::numeric(12, 3)) into figures
      from (select percentile_disc(array[0.5, 0.95, 0.99]) within group
                       (order by extract(epoch from (h.steps -> 0 ->> 'completed_at')::timestamptz - t.published) * 1000) as p
              from unnest(ids, published) t (id, published)
              join ujobs_internal.job_history h on h.id = t.id and h.state = 'd') x;
end
$$;

-- WAL of jobs enqueued one a transaction and then run.  Figures, in bytes a
-- job: the enqueues, the runs, both.
create procedure bench.wal(name text, jobs int, inout figures text default null)
language plpgsql as $$
declare
    first int := bench.first_number(jobs);
    job bigint;
    at_start pg_lsn;
    at_enqueued pg_lsn;
    at_end pg_lsn;
begin
    perform ujobs.pause_queue(name);
    commit;
    at_start := pg_current_wal_insert_lsn();
    for n in 1 .. jobs loop
        select e.id into job from ujobs.enqueue(name, bench.input(first + n)) e;
        commit;
    end loop;
    at_enqueued := pg_current_wal_insert_lsn();
    perform ujobs.resume_queue(name);
    commit;
    call bench.await_empty(job);
    at_end := pg_current_wal_insert_lsn();
    figures := concat_ws(' ', ((at_enqueued - at_start) / jobs)::int, ((at_end - at_enqueued) / jobs)::int,
                              ((at_end - at_start) / jobs)::int);
end
$$;

-- The floor: tables of the same shape and number of indexes, without ujobs.
create table bench.plain (like ujobs_internal.job including defaults including identity) with (fillfactor = 90);
alter table bench.plain add primary key (id);
create unique index on bench.plain (definition_id, tenant_id, idempotency_key);
create index on bench.plain (definition_id, queue, priority, due_at, id);
create table bench.plain_history (like ujobs_internal.job_history including defaults);
alter table bench.plain_history add primary key (id);
create index on bench.plain_history (finished_at) where state = 'x';

create table bench.bare (id bigint generated always as identity primary key, run_at timestamptz not null, payload jsonb not null);

create procedure bench.fill_plain(n_rows int)
language plpgsql as $$
begin
    truncate bench.plain, bench.plain_history;
    alter sequence bench.plain_id_seq restart;
    insert into bench.plain (due_at, run_at, created_at, definition_id, enqueued_role, priority, max_attempts, run_id,
                             queue, tenant_id, idempotency_key, input)
    select now(), now(), now(), 1, 10, 0, 3, gen_random_uuid(), 'default', '', 'bench:' || n, bench.input(n)
      from generate_series(1, n_rows) n;
end
$$;

-- Rows a second of deletes by primary key, so many in a transaction.
create procedure bench.delete_plain(n_rows int, together int, inout figures text default null)
language plpgsql as $$
declare
    began timestamptz := clock_timestamp();
begin
    for n in 1 .. n_rows loop
        delete from bench.plain where id = n;
        if n % together = 0 then
            commit;
        end if;
    end loop;
    commit;
    figures := (n_rows / extract(epoch from clock_timestamp() - began))::bigint;
end
$$;

-- What completing a job must write at least: the row out, a history row in.
create procedure bench.move_plain(n_rows int, together int, inout figures text default null)
language plpgsql as $$
declare
    began timestamptz := clock_timestamp();
    r bench.plain;
begin
    for n in 1 .. n_rows loop
        delete from bench.plain where id = n returning * into r;
        insert into bench.plain_history (id, slot, run_at, created_at, started_at, finished_at, expires_at, definition_id,
                                         enqueued_role, attempt, max_attempts, priority, state, run_id, queue, tenant_id, idempotency_key, input)
        values (r.id, 0, r.run_at, r.created_at, now(), now(), now(), r.definition_id,
                r.enqueued_role, 1, r.max_attempts, r.priority, 'd', r.run_id, r.queue, r.tenant_id, r.idempotency_key, r.input);
        if n % together = 0 then
            commit;
        end if;
    end loop;
    commit;
    figures := (n_rows / extract(epoch from clock_timestamp() - began))::bigint;
end
$$;
