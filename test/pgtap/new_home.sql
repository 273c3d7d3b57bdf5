-- A store that came by logical replication: rows are there, and sequences begin at 1.
begin;
select plan(3);

create function public.new_home(input jsonb) returns void language sql as 'select';
do 'begin perform ujobs.define_job(''new_home'', ''public.new_home'', ''{n}'', queue => ''new_home''); end';
create temp table former as
    select max(id) as id from ujobs.enqueue_many('new_home', array(select jsonb_build_object('n', n) from generate_series(1, 5) as n));
do 'begin perform ujobs.drain(''new_home''); end';
select is((select count(*) from ujobs.jobs where name = 'new_home' and state = 'done'), 5::bigint, 'finished jobs');
update test_store.origin set database = 1;
do $$
begin
    perform setval(pg_get_serial_sequence(format('%I.job', n.nspname), 'id'), 1, false)
       from pg_namespace n where n.nspname = 'ujobs_internal';
    set local client_min_messages = error;
    perform ujobs.start_workers();
    reset client_min_messages;
end
$$;
select is((select e.id > f.id from former f, ujobs.enqueue('new_home', '{"n": 6}') e), true, 'a new job gets an id that none had');
select is_empty('select * from ujobs.check()', 'the store is sound');

select * from finish();
rollback;
