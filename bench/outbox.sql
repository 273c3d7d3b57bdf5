-- What the figure "outbox" needs, in the publishing database and in the one
-- that takes the queue in.  Needs loops.sql.

create table bench.business (id bigint generated always as identity primary key, customer int not null, at timestamptz not null default now());
create table bench.plain_outbox (like ujobs_internal.outbox including all);

-- The key of the n-th message: none, one of so many, or always the same.
create function bench.key_of(n int, keys int) returns text
language sql immutable return case when keys > 0 then 'k' || n % keys end;

-- Messages in transactions of 1000.  Figure: the clock after the first commit, in seconds.
create procedure bench.publish(sink text, messages int, keys int, inout figures text default null)
language plpgsql as $$
begin
    for n in 1 .. messages loop
        perform ujobs.publish(sink, 'bench.made', bench.input(n), key => bench.key_of(n, keys));
        if n % 1000 = 0 or n = messages then
            commit;
            figures := coalesce(figures, extract(epoch from clock_timestamp())::text);
        end if;
    end loop;
end
$$;

-- The same rows by plain INSERTs.
create procedure bench.publish_plain(messages int, keys int)
language plpgsql as $$
begin
    for n in 1 .. messages loop
        insert into bench.plain_outbox (created_at, due_at, sink_id, publisher, is_job, message_id, topic, key, headers, payload)
        values (now(), now(), 1, 10, false, gen_random_uuid(), 'bench.made', bench.key_of(n, keys), '{}', bench.input(n));
        if n % 1000 = 0 or n = messages then
            commit;
        end if;
    end loop;
end
$$;

-- Until nothing is left to deliver; raises when a message is parked or missing.
create procedure bench.await_delivered(messages int)
language plpgsql as $$
declare
    give_up constant timestamptz := clock_timestamp() + interval '10 minutes';
    delivered bigint;
begin
    while exists (select from ujobs_internal.outbox where not parked) loop
        commit;
        perform pg_sleep(0.005);
        if clock_timestamp() > give_up then
            raise exception 'the outbox does not become empty';
        end if;
    end loop;
    select count(*) into delivered from ujobs_internal.outbox_published;
    if delivered <> messages then
        raise exception '% of % messages are delivered', delivered, messages;
    end if;
end
$$;

-- Figures: messages a second from the first commit until all receipts are recorded.
create procedure bench.deliver(sink text, messages int, keys int, inout figures text default null)
language plpgsql as $$
declare
    first text;
    empty float8;
begin
    call bench.publish(sink, messages, keys, first);
    call bench.await_delivered(messages);
    select extract(epoch from max(published_at)) into empty from ujobs_internal.outbox_published;
    figures := round(messages / (empty - first::float8))::text;
end
$$;

-- One message a transaction, 200 a second.  Figures, in ms: p50 p99 from the
-- clock after the commit until the relay had the receipt.
create procedure bench.publish_latency(sink text, messages int, inout figures text default null)
language plpgsql as $$
declare
    begun constant timestamptz := clock_timestamp();
    message bigint;
    ids bigint[];
    after timestamptz[];
begin
    for n in 1 .. messages loop
        perform pg_sleep(extract(epoch from begun + n * interval '5 ms' - clock_timestamp()));
        message := ujobs.publish(sink, 'bench.made', bench.input(n));
        ids := ids || message;
        commit;
        after := after || clock_timestamp();
    end loop;
    call bench.await_delivered(messages);
    select concat_ws(' ', p[1]::numeric(12, 3), p[2]::numeric(12, 3)) into figures
      from (select percentile_disc(array[0.5, 0.99]) within group (order by extract(epoch from o.published_at - t.after) * 1000) as p
              from unnest(ids, after) t (id, after)
              join ujobs_internal.outbox_published o on o.id = t.id) x;
end
$$;

-- Jobs into a queue on a broker, 1000 a transaction.  Figure: the clock after the first commit, in seconds.
create procedure bench.send_jobs(jobs int, inout figures text default null)
language plpgsql as $$
declare
    first constant int := bench.first_number(jobs);
begin
    for n in 0 .. (jobs - 1) / 1000 loop
        perform count(*) from ujobs.enqueue_many('bridged',
            (select array_agg(bench.input(first + i)) from generate_series(n * 1000 + 1, least(n * 1000 + 1000, jobs)) i));
        commit;
        figures := coalesce(figures, extract(epoch from clock_timestamp())::text);
    end loop;
end
$$;

-- Where they run.  Figure: the clock of the last finish, in seconds.
create procedure bench.await_jobs(jobs int, inout figures text default null)
language plpgsql as $$
declare
    give_up constant timestamptz := clock_timestamp() + interval '10 minutes';
    done bigint;
begin
    loop
        select count(*), extract(epoch from max(finished_at))::text into done, figures
          from ujobs_internal.job_history where state = 'd';
        commit;
        exit when done >= jobs;
        perform pg_sleep(0.05);
        if clock_timestamp() > give_up then
            raise exception '% of % jobs are done', done, jobs;
        end if;
    end loop;
    if done <> jobs then
        raise exception '% jobs are done, of %', done, jobs;
    end if;
end
$$;
