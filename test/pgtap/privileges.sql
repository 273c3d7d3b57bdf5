-- Who sees what of a job: members of its owner, whoever enqueued it, members
-- of pg_monitor, and everybody else.
begin;
select no_plan();

select is(e.extnamespace::regnamespace::text, 'pg_catalog',
          'the extension is of no schema that somebody might drop, or might plant operators in before it is installed')
  from pg_extension e where e.extname = 'ujobs';

create role privileges_owner;
create role privileges_member in role privileges_owner;
create role privileges_enqueuer;
create role privileges_monitor in role pg_monitor;
create role privileges_plain;

insert into test_store.definition (id, name, kind, handler, owner, owner_name, idempotency_key, retry, queue,
                                       priority, batch, created_at)
select -1, 'privileges_job', 'atomic', 'f', oid, rolname, '{id}',
       '{"attempts": 3, "backoff": "fixed", "delay": 1000, "maxDelay": 1000, "jitter": true, "deadLetter": true, "terminal": []}',
       'privileges', 0, 1, now()
  from pg_roles where rolname = 'privileges_owner';
insert into test_store.job (id, due_at, run_at, created_at, definition_id, enqueued_role, priority, max_attempts, run_id,
                                queue, key, input, attempt, last_error)
select -n, now() + interval '1 hour', now(), now(), -1, e.oid, 0, 3, gen_random_uuid(), 'privileges', 'secret' || n, '{"secret": 1}', 1,
       '{"sqlstate": "P0001", "message": "secret"}'
  from pg_roles e, generate_series(1, 1) n where e.rolname = 'privileges_enqueuer';
insert into test_store.job (id, due_at, run_at, created_at, definition_id, enqueued_role, priority, max_attempts, run_id,
                                queue, key, input)
select -2, now(), now(), now(), -1, o.oid, 0, 3, gen_random_uuid(), 'privileges', 'secret2', '{"secret": 2}'
  from pg_roles o where o.rolname = 'privileges_owner';
insert into test_store.job_history (id, slot, run_at, created_at, started_at, finished_at, expires_at, definition_id, enqueued_role,
                                        attempt, max_attempts, priority, state, run_id, queue, tenant, key, input, last_error)
select -3, 0, now(), now(), now(), now(), now() + interval '1 day', -1, oid, 3, 3, 0, 'x', gen_random_uuid(), 'privileges', '',
       'secret3', '{"secret": 3}', '{"sqlstate": "P0001", "message": "secret"}'
  from pg_roles where rolname = 'privileges_enqueuer';

insert into test_store.job_step (job_id, seq, name, status, attempts, started_at, completed_at, output, error, wake_at, since, event, match)
select -1, 1, 'bill', 'c'::"char", 1, now(), now(), '{"secret": 4}'::jsonb, '{"message": "secret"}'::jsonb, null::timestamptz, null::timestamptz, null, null
union all
select -1, 2, 'reply', 'w', 1, now(), null, null, null, 'infinity', now(), 'replied', 'secret5';
update test_store.job_history set steps = '[{"seq": 1, "name": "bill", "status": "c", "attempts": 1, "started_at": "2026-03-08T07:00:00Z",
    "output": {"secret": 6}, "error": {"message": "secret"}}]' where id = -3;
insert into test_store.event (id, published_at, expires_at, publisher, name, match, payload)
select -n, now(), now(), oid, 'privileges', 'secret', '{"secret": 7}'
  from pg_roles
  join (values (1, 'privileges_owner'), (2, 'privileges_enqueuer')) v (n, name) on rolname = name;

-- The one value of a query run as a role, or the SQLSTATE of its error.
create function pg_temp.run_as(role text, query text) returns text
language plpgsql as $$
declare
    value text;
begin
    execute format('set local role %I', role);
    execute query into value;
    execute 'reset role';
    return value;
exception when others then
    return sqlstate;
end
$$;

-- In every way of looking: the jobs, how many of them with payload, traces,
-- dead letters, definitions, reasons.
create function pg_temp.sees(role text) returns text
language sql as $$
select pg_temp.run_as(role, $q$
    select concat_ws(' | ',
        (select coalesce(string_agg(j.id::text, ' ' order by j.id desc), 'none') from ujobs.jobs j where j.queue = 'privileges'),
        (select count(*) from ujobs.jobs j
          where j.queue = 'privileges' and num_nonnulls(j.input, j.idempotency_key, case j.id when -2 then '{}' else j.last_error end) = 3),
        (select count(ujobs.inspect_job(id)) from generate_series(-3, -1) id),
        (select count(*) from ujobs.dead_letters where queue = 'privileges'),
        (select count(*) from ujobs.definitions where name = 'privileges_job'),
        (select count(ujobs.why(id)) from generate_series(-3, -1) id))$q$)
$$;

select is(pg_temp.sees('privileges_plain'), 'none | 0 | 0 | 0 | 0 | 0', 'a plain role sees nothing');
select is(pg_temp.sees('privileges_owner'), '-1 -2 -3 | 3 | 3 | 1 | 1 | 3', 'the owner sees everything');
select is(pg_temp.sees('privileges_member'), '-1 -2 -3 | 3 | 3 | 1 | 1 | 3', 'a member of the owner sees everything');
select is(pg_temp.sees('privileges_enqueuer'), '-1 -3 | 2 | 2 | 1 | 0 | 2', 'who enqueued sees its own jobs');
select is(pg_temp.sees('privileges_monitor'), '-1 -2 -3 | 0 | 3 | 1 | 1 | 3', 'pg_monitor sees all rows and no payload');
select is(pg_temp.sees(current_user), '-1 -2 -3 | 3 | 3 | 1 | 1 | 3', 'a superuser sees everything');

-- Steps: rows, and those with payload, in the view and in traces.  Events: rows, and those with payload.
create function pg_temp.sees_of_steps(role text) returns text
language sql as $$
select pg_temp.run_as(role, $q$
    select concat_ws(' | ',
        (select concat_ws(' ', count(*), count(output), count(error), count(match)) from ujobs.steps where job_id between -3 and -1),
        (select concat_ws(' ', count(s), count(nullif(s -> 'output', 'null')), count(nullif(s -> 'error', 'null')))
           from generate_series(-3, -1) id, jsonb_array_elements(ujobs.inspect_job(id) -> 'steps') s),
        (select concat_ws(' ', count(*), count(match), count(payload)) from ujobs.events where name = 'privileges'))$q$)
$$;
select is(pg_temp.sees_of_steps('privileges_plain'), '0 0 0 0 | 0 0 0 | 0 0 0', 'a plain role sees no steps and events');
select is(pg_temp.sees_of_steps('privileges_owner'), '3 2 2 1 | 3 2 2 | 1 1 1', 'the owner sees its jobs'' steps and its events');
select is(pg_temp.sees_of_steps('privileges_member'), '3 2 2 1 | 3 2 2 | 1 1 1', 'and so does a member of it');
select is(pg_temp.sees_of_steps('privileges_enqueuer'), '3 2 2 1 | 3 2 2 | 1 1 1', 'who enqueued sees its jobs'' steps');
select is(pg_temp.sees_of_steps('privileges_monitor'), '3 0 0 0 | 3 0 0 | 2 0 0', 'pg_monitor sees rows of steps and events without payload');
select is(pg_temp.sees_of_steps(current_user), '3 2 2 1 | 3 2 2 | 2 2 2', 'a superuser sees all steps and events');

-- pg_monitor reads no payload anywhere.
select is(pg_temp.run_as('privileges_monitor', format($$
        select count(*) from (%s) x (t) where t like '%%secret%%'$$, q)), '0', 'no payload for pg_monitor: ' || q)
  from unnest(array['select j::text from ujobs.jobs j', 'select d::text from ujobs.dead_letters d',
                    'select ujobs.inspect_job(id)::text from generate_series(-3, -1) id',
                    'select ujobs.why(id)::text from generate_series(-3, -1) id',
                    'select ujobs.inspect_dead_letters()::text',
                    'select s::text from ujobs.steps s', 'select e::text from ujobs.events e']) q;
select is(pg_temp.run_as('privileges_member', $$select count(*) from generate_series(-3, -1) id where ujobs.why(id)::text like '%secret%'$$),
          '2', 'the owner reads the errors in the reasons');
select is(pg_temp.run_as('privileges_monitor', $$select jsonb_object_agg(k, v) from jsonb_each(ujobs.inspect_job(-1)) e (k, v)
                                                 where k in ('lastError', 'result', 'idempotencyKey')$$)::jsonb,
          '{"lastError": null, "result": null, "idempotencyKey": null}', 'hidden values are null in a trace');

-- Counts, and what is about no job, are for everybody.
select is(pg_temp.run_as('privileges_plain', q), expected, q)
  from (values ($$select concat_ws(' ', ready, delayed, dead) from ujobs.stats() where queue = 'privileges'$$, '1 1 1'),
               ($$select concat_ws(' ', ready, delayed, dead) from ujobs.queues where queue = 'privileges'$$, '1 1 1'),
               ($$select value from ujobs.metrics() where name = 'ujobs_queue_depth' and labels ->> 'queue' = 'privileges'$$, '1'),
               ($$select ujobs.prometheus() like '%ujobs_queue_depth{queue="privileges"} 1%'$$, 'true'),
               ($$select jsonb_array_length(jsonb_path_query_array(ujobs.inspect_queues(), '$.queues ? (@.queue == "privileges")'))$$, '1'),
               ($$select ujobs.inspect_manifest()::text like '%privileges_job%'$$, 'false'),
               ($$select count(*) from ujobs.error_codes where sqlstate = 'UJ011'$$, '1'),
               ($$select count(*) from ujobs.statements() where name = 'history_find'$$, '1'),
               ($$select count(*) >= 0 from ujobs.workers$$, 'true'),
               ($$select count(*) >= 0 from ujobs.check()$$, '42501'),
               ($$select count(*) from ujobs.steps$$, '0')) v (q, expected);

-- The store itself is out of reach.
select is(pg_temp.run_as('privileges_monitor', q), '42501', q)
  from (select 'select * from ujobs_internal.' || c.relname as q
          from pg_class c
         where c.relnamespace = 'ujobs_internal'::regnamespace
           and c.relkind in ('r', 'p', 'v')
        union all
        values ($$select ujobs_internal.row_access(10, 10, 'x', 10)$$),
               ('select * from ujobs_internal.queue_counts()')) v;

-- A cheap function of the user's own sees no row that the view hides.
create function pg_temp.spy(v text) returns boolean language plpgsql cost 0.0000001 as
$$begin if v ~ 'secret|privileges' then raise exception 'seen: %', v using errcode = 'P0099'; end if; return true; end$$;
select is(pg_temp.run_as('privileges_plain', format('select count(*) from ujobs.%I v where pg_temp.spy(v::text) and pg_temp.spy(name)', v)) ~ '^\d+$',
          true, 'no spying on ' || v)
  from unnest(array['jobs', 'dead_letters', 'definitions', 'steps', 'events']) v;

-- Names of the user's own in front change nothing.
create temp table job (id bigint);
create temp table definition (id bigint);
create function pg_temp.count(int) returns bigint language sql as 'select 99::bigint';
create function pg_temp.now() returns timestamptz language sql as $$select '-infinity'::timestamptz$$;
set local search_path = pg_temp, pg_catalog, public;
select is(pg_temp.run_as('privileges_plain', $$select concat_ws(' ', ready, delayed, dead) from ujobs.stats() where queue = 'privileges'$$),
          '1 1 1', 'shadowed names change no counts');
select is(pg_temp.sees('privileges_enqueuer'), '-1 -3 | 2 | 2 | 1 | 0 | 2', 'nor what a role sees');
reset search_path;

-- The number counts: a role that comes to bear the owner's name gets nothing of it.
delete from test_store.origin;
insert into test_store.origin (one, database, inserted_by, stopped, uuid)
select true, oid, pg_current_xact_id(), false, gen_random_uuid() from pg_database where datname = current_database();
update test_store.definition set owner_name = 'privileges_plain' where id = -1;
select ujobs.revoke_enqueue('privileges_job', 'public');
select is(pg_temp.sees('privileges_plain'), 'none | 0 | 0 | 0 | 0 | 0', 'a role with the owner''s old name sees nothing');
select is(pg_temp.sees('privileges_member'), '-1 -2 -3 | 3 | 3 | 1 | 1 | 3', 'the role with the owner''s number does');

-- In a store that was restored and not accepted yet the owner's number may be another role's: the name counts.
update test_store.origin set database = 1;
update test_store.definition set owner_name = 'privileges_owner' where id = -1;
select ujobs.revoke_enqueue('privileges_job', 'public');
update test_store.definition set owner = (select oid from pg_roles where rolname = 'privileges_plain') where id = -1;
select is(pg_temp.sees('privileges_plain'), 'none | 0 | 0 | 0 | 0 | 0', 'a role with the owner''s old number sees nothing');
select is(pg_temp.sees('privileges_member'), '-1 -2 -3 | 3 | 3 | 1 | 1 | 3', 'the role with the owner''s name does');

-- Everything public says what it does.
select is_empty($$
    select p.oid::regprocedure from pg_proc p
     where p.pronamespace = 'ujobs'::regnamespace and obj_description(p.oid, 'pg_proc') is null$$, 'every function has a comment');
select is_empty($$
    select c.oid::regclass from pg_class c
     where c.relnamespace = 'ujobs'::regnamespace and c.relkind = 'v' and obj_description(c.oid, 'pg_class') is null$$, 'every view has a comment');

-- Programs outside are let in by an administrator.
select is(has_function_privilege('privileges_plain', p.oid, 'execute'), false, p.proname || ' is for an administrator to grant')
  from pg_proc p
 where p.pronamespace = 'ujobs'::regnamespace
   and p.proname in ('claim', 'wait_for_work', 'ack', 'nack', 'heartbeat', 'step_get', 'step_put', 'step_suspend', 'step_await')
 order by p.proname;

select * from finish();
rollback;
