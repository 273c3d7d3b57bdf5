-- Errors that no test of their area raises: a handler's own wish, a server that is not there, a corrupt row.
begin;
select plan(6);

create schema errors_test;
create function errors_test.busy(input jsonb) returns jsonb language plpgsql as $$
begin
    perform ujobs.retry_after('1 minute', 'the service says 429');
exception when sqlstate 'UJ021' then
    if input ? 'again' then
        raise;
    end if;
    return jsonb_build_object('caught', sqlerrm);
end
$$;
do 'begin perform ujobs.define_job(''errors_busy'', ''errors_test.busy'', ''{id}'', queue => ''errors''); end';
create function errors_test.add(id text, more jsonb default '{}') returns bigint language sql as $$
    select e.id from ujobs.enqueue('errors_busy', jsonb_build_object('id', add.id) || more) e
$$;
create temp table added as
    select 'caught' as what, errors_test.add('caught') as id union all select 'again', errors_test.add('again', '{"again": true}');

select results_eq('select a.what, d.outcome from ujobs.drain(''errors'', 2) d join added a using (id) order by 1',
                  $$values ('again', 'retry'), ('caught', 'done')$$, 'retry_after raises an error that a handler may catch');
select is(j.result, '{"caught": "the service says 429"}', 'UJ021 carries the message')
  from ujobs.jobs j join added using (id) where what = 'caught';
select is(j.last_error ->> 'sqlstate', 'UJ021', 'a job that asked for its retry shows UJ021')
  from ujobs.jobs j join added using (id) where what = 'again';

-- Port 1 is one of the ports that a server without privileges cannot listen on.
select throws_ok($$select ujobs.define_sink('errors_sink', 'nats', '{"url": "nats://127.0.0.1:1", "check": true}')$$,
                 'UJ024', null, 'a sink whose server cannot be reached');
select is_empty($$select from ujobs.sinks where name = 'errors_sink'$$, 'it was not defined');

-- A job of a definition that never was.
update test_store.job set definition_id = -1 where id = (select id from added where what = 'again');
select throws_ok(format('select ujobs.cancel(%s)', id), 'UJ099', format('job %s has no definition', id),
                 'a row that says something impossible') from added where what = 'again';

select * from finish();
rollback;
