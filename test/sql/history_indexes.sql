-- Indexes that an administrator added to the history: what a session knows of a
-- table's indexes follows them, and each has an entry of every row it should.
\pset format unaligned
\set VERBOSITY terse
create schema index_test;
set search_path = index_test, public;
create extension if not exists amcheck;
create function noop(input jsonb) returns void language plpgsql as $$ begin end $$;
select ujobs.define_job('indexed', 'index_test.noop', '{id}', queue => 'indexed', batch => 20) ->> 'name' as name;

-- So many jobs are run, in transactions of up to 20, and then one alone.
create function run(first int, last int) returns text language plpgsql as $$
begin
    perform ujobs.enqueue_many('indexed', (select array_agg(jsonb_build_object('id', n)) from generate_series(first, last) n));
    perform ujobs.drain('indexed');
    perform ujobs.enqueue('indexed', jsonb_build_object('id', last + 1));
    perform ujobs.drain('indexed');
    return (select format('%s done', count(*)) from ujobs_internal.job_history where queue = 'indexed');
end
$$;
select run(1, 50);
select tableoid::regclass as history, definition_id as definition from ujobs_internal.job_history where queue = 'indexed' limit 1 \gset

-- How many rows each way finds; the plan is the index's when nothing else may be used.
create function by_index(condition text) returns text language plpgsql
set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    line text;
    used text;
    found bigint;
begin
    for line in execute format('explain (costs off) select count(*) from %s where %s', current_setting('index_test.history'), condition) loop
        used := coalesce(used, substring(line from 'using (\w+)'));
    end loop;
    execute format('select count(*) from %s where %s', current_setting('index_test.history'), condition) into found;
    return format('%s: %s', used, found);
end
$$;
select set_config('index_test.history', :'history', false) = :'history' as known;

create index added_plain on :history (idempotency_key) where queue = 'indexed';
create index added_int on :history (definition_id, id) where attempt = 1;
select run(101, 150);
select by_index('idempotency_key > '''' and queue = ''indexed''');
select by_index(format('attempt = 1 and definition_id = %s', :definition));
drop index ujobs_internal.added_plain;
select run(201, 250);
select by_index(format('attempt = 1 and definition_id = %s', :definition));

create index added_expression on :history (upper(queue), id);
select run(301, 350);
select by_index('upper(queue) = ''INDEXED''');
reindex table :history;
drop index ujobs_internal.added_expression, ujobs_internal.added_int;
create unique index added_unique on :history (run_id);
select run(401, 450);
select by_index('run_id >= ''00000000-0000-0000-0000-000000000000'' and queue = ''indexed''');

select bool_and(bt_index_check(indexrelid, true) is not null) as entries_of_all_rows
  from pg_index where indrelid = :'history'::regclass;
drop index ujobs_internal.added_unique;
do $$ begin perform ujobs.drop_job('indexed', force => true); end $$;
drop extension amcheck;
drop schema index_test cascade;
