-- Defining jobs: kinds, handlers, options, redefinition, owners, grants, drop.
create schema define;
create role define_alice login;
create role define_bob login;
create role define_team login;
create role define_nologin;
grant define_team to define_alice;
grant usage, create on schema define to define_alice, define_bob, define_team, define_nologin;
grant execute on function ujobs.define_job, ujobs.define_external_job, ujobs.define_command, ujobs.drop_job,
                          ujobs.set_job_owner, ujobs.grant_enqueue, ujobs.revoke_enqueue, ujobs.grant_work, ujobs.revoke_work
   to define_alice, define_bob, define_team, define_nologin;

-- What an error says, in full.
create function define.try(command text) returns table (shows text)
language plpgsql as $$
declare
    d text;
    h text;
begin
    return query execute command;
exception when others then
    get stacked diagnostics d = pg_exception_detail, h = pg_exception_hint;
    return query values (sqlstate || ': ' || sqlerrm), ('  detail: ' || d), ('  hint: ' || h);
end
$$;

create function define.plain(input jsonb) returns int language sql as 'select 1';
create function define.nothing(input jsonb) returns void language plpgsql as 'begin end';
create function define.record(input jsonb, out a int, out b text) language sql as 'select 1, ''x''';
create procedure define.steps(input jsonb) language plpgsql as 'begin end';
create procedure define.steps_result(input jsonb, inout result jsonb) language plpgsql as 'begin end';
create function define."Odd.Name"(jsonb) returns jsonb language sql as 'select $1';
\pset tuples_only on
\pset format unaligned

-- Kinds.
select define.try($$ select ujobs.define_job('define.plain', 'define.plain', 'k:{id}')::text $$);
-- The same again, whatever the session's settings.
begin;
set local quote_all_identifiers = on;
set local transform_null_equals = on;
set local intervalstyle = 'sql_standard';
set local datestyle = 'german';
set local bytea_output = 'escape';
select define.try($$ select ujobs.define_job('define.plain', 'define.plain', 'k:{id}')::text $$);
rollback;
select define.try($$ select ujobs.define_job('define.nothing', 'define.nothing', '{id}')::text $$);
select define.try($$ select ujobs.define_job('define.record', 'define.record', '{id}')::text $$);
select define.try($$ select ujobs.define_job('define.steps', 'define.steps', '{id}', retry => '{"attempts": 7, "backoff": "fixed"}')::text $$);
select define.try($$ select ujobs.define_job('define.steps_result', 'define.steps_result', '{id}')::text $$);
select define.try($$ select ujobs.define_external_job('define.external', '{id}', queue => 'outside')::text $$);
select define.try($$ select ujobs.define_command('define.command', 'vacuum pg_class; ', 'all')::text $$);
-- The same descriptor again.
select define.try($$ select ujobs.describe_job('define.external')::text $$);

-- The handler is found with the caller's search_path and kept with its schema, quoted.
set search_path = define, public;
select define.try($$ select ujobs.define_job('define.path', 'plain', '{id}')->>'kind' $$);
select define.try($$ select ujobs.define_job('define.quoted', '"Odd.Name"', '{id}')->>'kind' $$);
reset search_path;
select name, kind, handler, owner_name, idempotency_key, tenant, retry, queue, priority, concurrency,
       timeout, step_timeout, batch, retention, description
  from test_store.definition
 where name like 'define.%' and dropped_at is null
 order by name;

-- Handlers that are refused.
create function define.twice(jsonb) returns int language sql as 'select 1';
create procedure define.both(jsonb) language plpgsql as 'begin end';
create procedure define.both(jsonb, inout r jsonb) language plpgsql as 'begin end';
create function define.text(text) returns int language sql as 'select 1';
create function define.two(jsonb, jsonb) returns int language sql as 'select 1';
create function define.many(jsonb) returns setof int language sql as 'select 1';
create function define.any(anyelement) returns int language sql as 'select 1';
create function define.variadic(variadic jsonb[]) returns int language sql as 'select 1';
create procedure define.only_inout(inout r jsonb) language plpgsql as 'begin end';
create procedure define.in_sql(jsonb) language sql as 'select 1';
create procedure define.definer(jsonb) language plpgsql security definer as 'begin end';
create procedure define.with_set(jsonb) language plpgsql set work_mem = '1MB' as 'begin end';
create aggregate define.agg(jsonb) (sfunc = jsonb_concat, stype = jsonb);
create function define.private(jsonb) returns int language sql as 'select 1';
revoke execute on function define.private from public;
create function pg_temp.define_gone(jsonb) returns int language sql as 'select 1';
-- One overload that fits is not ambiguous.
create function define.plain(text) returns int language sql as 'select 1';
select define.try($$ select ujobs.define_job('define.bad', 'define.both', '{id}')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.absent', '{id}')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'absent.absent', '{id}')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.text', '{id}')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.two', '{id}')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.many', '{id}')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.any', '{id}')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.variadic', '{id}')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.only_inout', '{id}')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.agg', '{id}')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'pg_temp.define_gone', '{id}')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.in_sql', '{id}')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.definer', '{id}')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.with_set', '{id}')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain(jsonb)', '{id}')::text $$);
select define.try($$ select ujobs.define_job('define.bad', '', '{id}')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'a.b.c', '{id}')::text $$);
select define.try($$ select ujobs.define_job('define.plain', 'define.plain', 'k:{id}')->>'kind' $$);
set role define_alice;
select define.try($$ select ujobs.define_job('define.bad', 'define.private', '{id}')::text $$);
reset role;

-- Commands that are refused.
select define.try($$ select ujobs.define_command('define.bad', '', 'k')::text $$);
select define.try($$ select ujobs.define_command('define.bad', ' -- nothing', 'k')::text $$);
select define.try($$ select ujobs.define_command('define.bad', 'select 1; select 2', 'k')::text $$);
select define.try($$ select ujobs.define_command('define.bad', 'commit', 'k')::text $$);
select define.try($$ select ujobs.define_command('define.bad', 'prepare transaction ''x''', 'k')::text $$);
select define.try($$ select ujobs.define_command('define.bad', 'select $1', 'k')::text $$);
select define.try($$ select ujobs.define_command('define.bad', 'copy (select ''forged'') to stdout', 'k')::text $$);
select define.try($$ select ujobs.define_command('define.bad', 'copy t from stdin', 'k')::text $$);
select define.try($$ select ujobs.define_command('define.bad', 'call p(1, $2)', 'k')::text $$);
select define.try($$ select ujobs.define_command('define.bad', 'selec 1', 'k')::text $$);
-- The position is one in the command.
select ujobs.define_command('define.bad', 'select 1 from from', 'k');
select ujobs.define_command('define.bad', 'select ''open', 'k');
-- A parameter in a string or a comment is none.
select define.try($$ select ujobs.define_command('define.dollars', 'select ''$1'' /* $2 */', 'k')->>'kind' $$);

-- Arguments that must not be NULL.
select define.try($$ select ujobs.define_job(null, 'define.plain', 'k')::text $$);
select define.try($$ select ujobs.define_job('define.bad', null, 'k')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', null)::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', '')::text $$);
select define.try($$ select ujobs.define_external_job('define.bad', null)::text $$);
select define.try($$ select ujobs.define_command('define.bad', null, 'k')::text $$);
select define.try($$ select ujobs.drop_job(null)::text $$);
select define.try($$ select ujobs.describe_job(null)::text $$);
select define.try($$ select ujobs.set_job_owner('define.plain', null)::text $$);
select define.try($$ select ujobs.grant_enqueue(null, 'define_bob')::text $$);
select define.try($$ select ujobs.revoke_work('define.plain', null)::text $$);

-- Names.
select define.try($$ select ujobs.define_job('', 'define.plain', 'k')::text $$);
select define.try($$ select ujobs.define_job(repeat('n', 64), 'define.plain', 'k')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', 'k', queue => '')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', 'k', queue => repeat('q', 64))::text $$);
select define.try($$ select ujobs.define_job('define.' || repeat('n', 56), 'define.plain', 'k', queue => repeat('q', 63))->>'name' $$);

-- Templates.
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', 'k:{id')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', 'k:{}')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', '{a..b}')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', 'k', tenant => '{a.}')::text $$);
select define.try($$ select ujobs.define_job('define.templates', 'define.plain', '{{x}}{a.b}}', tenant => '')->>'name' $$);

-- Option values.
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', 'k', priority => 32768)::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', 'k', priority => -32769)::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', 'k', concurrency => 0)::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', 'k', concurrency => -1)::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', 'k', timeout => '0')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', 'k', timeout => '-1 s')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', 'k', timeout => '1 us')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', 'k', timeout => '1 month')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.steps', 'k', step_timeout => '0')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', 'k', batch => 0)::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', 'k', batch => 1001)::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', 'k', retention => '-1 s')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', 'k', retention => '110 years')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', 'k', retry => '{"attempts": 0}')::text $$);
select define.try($$ select ujobs.define_job('define.bad', 'define.plain', 'k', input_schema => '[]')::text $$);

-- Options that do not fit the kind.
select define.try($$ select ujobs.define_job('define.bad', 'define.steps', 'k', batch => 2)::text $$);
select define.try($$ select ujobs.define_command('define.bad', 'vacuum', 'k', batch => 2)::text $$);
select define.try($$ select ujobs.define_external_job('define.bad', 'k', batch => 2)::text $$);
select define.try($$ select ujobs.define_external_job('define.bad', 'k', timeout => '1 s')::text $$);
select define.try($$ select ujobs.define_external_job('define.bad', 'k', step_timeout => '1 s')::text $$);

-- None of these left anything behind.
select count(*) from test_store.definition where name = 'define.bad';

-- Every option at its edge; NULL is the default.
select define.try($$ select ujobs.define_job('define.edges', 'define.plain', '{id}', tenant => '{org}', retry => '{"attempts": 1}',
    queue => 'q', priority => -32768, concurrency => 1, timeout => '2147483647 ms', step_timeout => '1 ms', batch => 1000,
    retention => '0', description => 'all of them')->>'name' $$);
select define.try($$ select ujobs.define_job('define.nulls', 'define.plain', '{id}', null, null, null, null, null, null, null, null,
    null, null, null, null)->>'queue' $$);
select tenant, retry->>'attempts', queue, priority, concurrency, timeout, step_timeout, batch, retention, description
  from test_store.definition where name in ('define.edges', 'define.nulls') and dropped_at is null order by name;

-- Defining again: the same is no change, whatever its notation.
select define.try($$ select ujobs.define_job('define.edges', 'define.plain', '{id}', tenant => '{org}', retry => '{"attempts": 1, "delay": 1000}',
    queue => 'q', priority => -32768, concurrency => 1, timeout => '2147483.647 s', step_timeout => '1 ms', batch => 1000,
    retention => '0 days', description => 'all of them')->>'name' $$);
select description = 'all of them' as same from test_store.definition where name = 'define.edges';
-- Each difference is named.
select define.try($$ select ujobs.define_job('define.edges', 'define.steps', '{id2}', tenant => '{o}', retry => '{"attempts": 2}',
    queue => 'q2', priority => 1, concurrency => 2, timeout => '1 s', step_timeout => '2 ms',
    retention => '1 day', description => 'new')::text $$);
select define.try($$ select ujobs.define_job('define.nulls', 'define.plain', '{id}', batch => 2, tenant => '{t}')::text $$);
select define.try($$ select ujobs.define_command('define.command', 'vacuum pg_proc', 'all')::text $$);
-- replace takes them, keeps id, owner and grants.
select ujobs.grant_enqueue('define.edges', 'define_bob');
select id as edges from test_store.definition where name = 'define.edges' \gset
select define.try($$ select ujobs.define_job('define.edges', 'define.steps', '{id2}', queue => 'q2', description => 'new', replace => true)::text $$);
select id = :edges as same_id, kind, handler, idempotency_key, tenant, retry->>'attempts', queue, priority, concurrency,
       timeout, step_timeout, batch, retention, description,
       (select count(*) from test_store.definition_grant g where g.definition_id = d.id) as grants
  from test_store.definition d where name = 'define.edges';
-- The cache of this session follows, a rollback too.
begin;
select ujobs.define_job('define.edges', 'define.plain', '{id}', replace => true)->>'kind';
rollback;
select ujobs.describe_job('define.edges')->>'kind';
begin;
savepoint s;
select ujobs.define_job('define.undone', 'define.plain', '{id}')->>'kind';
rollback to s;
select define.try($$ select ujobs.describe_job('define.undone')::text $$);
commit;

-- Only the owner may replace, drop, give away and grant.
set role define_alice;
select define.try($$ select ujobs.define_job('define.alice', 'define.plain', '{id}')->>'name' $$);
select define.try($$ select ujobs.define_job('define.plain', 'define.plain', 'k:{id}')::text $$);
reset role;
set role define_bob;
select define.try($$ select ujobs.define_job('define.alice', 'define.plain', '{id}')::text $$);
select define.try($$ select ujobs.define_job('define.alice', 'define.plain', '{id2}')::text $$);
select define.try($$ select ujobs.define_job('define.alice', 'define.plain', '{id2}', replace => true)::text $$);
select define.try($$ select ujobs.define_job('define.alice', 'define.plain', '{id}', replace => true)::text $$);
select define.try($$ select ujobs.drop_job('define.alice')::text $$);
select define.try($$ select ujobs.set_job_owner('define.alice', 'define_bob')::text $$);
select define.try($$ select ujobs.grant_enqueue('define.alice', 'define_bob')::text $$);
select define.try($$ select ujobs.revoke_work('define.alice', 'define_bob')::text $$);
select define.try($$ select ujobs.describe_job('define.alice')->>'name' $$);
reset role;
-- A superuser may, and the owner stays.
select define.try($$ select ujobs.define_job('define.alice', 'define.plain', '{id2}', replace => true)->>'name' $$);
select owner_name, owner = 'define_alice'::regrole as by_oid from test_store.definition where name = 'define.alice';

-- set_job_owner: a member of both roles.
set role define_alice;
select define.try($$ select ujobs.set_job_owner('define.alice', 'define_bob')::text $$);
select define.try($$ select ujobs.set_job_owner('define.alice', 'define_absent')::text $$);
select define.try($$ select ujobs.set_job_owner('define.absent', 'define_team')::text $$);
select define.try($$ select ujobs.set_job_owner('define.alice', 'define_team')::text $$);
select define.try($$ select ujobs.define_job('define.alice', 'define.plain', '{id3}', replace => true)->>'name' $$);
reset role;
select owner_name from test_store.definition where name = 'define.alice';
select define.try($$ select ujobs.set_job_owner('define.alice', 'define_alice')::text $$);
-- The owner must be able to log in; only then can a process run as it.
select current_setting('server_version_num')::int < 170000 as old \gset
\if :old
select define.try($$ select ujobs.set_job_owner('define.alice', 'define_nologin')::text $$);
set role define_nologin;
select define.try($$ select ujobs.define_job('define.nologin', 'define.plain', '{id}')::text $$);
reset role;
\else
select '55000: role "define_nologin" cannot own a job: it cannot log in'
union all select '  detail: On servers before 17 a background process can run only as a role with LOGIN.'
union all select '  hint: Run ALTER ROLE define_nologin LOGIN; a password is not needed.';
select '55000: role "define_nologin" cannot own a job: it cannot log in'
union all select '  detail: On servers before 17 a background process can run only as a role with LOGIN.'
union all select '  hint: Run ALTER ROLE define_nologin LOGIN; a password is not needed.';
\endif
set role define_nologin;
select define.try($$ select ujobs.define_external_job('define.nologin', '{id}')->>'kind' $$);
reset role;

-- Grants.
set role define_alice;
select define.try($$ select ujobs.grant_enqueue('define.alice', 'define_bob')::text $$);
select define.try($$ select ujobs.grant_enqueue('define.alice', 'define_bob')::text $$);
select define.try($$ select ujobs.grant_work('define.alice', 'public')::text $$);
select define.try($$ select ujobs.grant_work('define.alice', 'define_absent')::text $$);
select define.try($$ select ujobs.grant_work('define.absent', 'define_bob')::text $$);
reset role;
select privilege, role_name, role = 0 as public
  from test_store.definition_grant g join test_store.definition d on d.id = g.definition_id
 where d.name = 'define.alice' order by 1, 2;
set role define_alice;
select define.try($$ select ujobs.revoke_work('define.alice', 'public')::text $$);
select define.try($$ select ujobs.revoke_work('define.alice', 'define_bob')::text $$);
select define.try($$ select ujobs.revoke_enqueue('define.alice', 'define_bob')::text $$);
reset role;
select count(*) from test_store.definition_grant g join test_store.definition d on d.id = g.definition_id
 where d.name = 'define.alice';

-- drop_job.
select define.try($$ select ujobs.drop_job('define.absent')::text $$);
select ujobs.grant_enqueue('define.plain', 'define_bob');
insert into test_store.job (due_at, run_at, created_at, definition_id, enqueued_role, priority, max_attempts, run_id, queue, key, input)
select now() + interval '1 day', now(), now(), d.id, 10, 0, 3, gen_random_uuid(), 'define', 'k' || n, '{}'
  from test_store.definition d, generate_series(1, 2) n
 where d.name = 'define.plain';
select id as plain from test_store.definition where name = 'define.plain' \gset
select define.try($$ select ujobs.drop_job('define.plain')::text $$);
delete from test_store.job where definition_id = :plain and key = 'k2';
select define.try($$ select ujobs.drop_job('define.plain', null)::text $$);
select define.try($$ select ujobs.drop_job('define.plain', force => true)::text $$);
select count(*) from test_store.job where definition_id = :plain;
select state, key, attempt, reason, finished_at is not null, expires_at - finished_at as kept
  from test_store.job_history where definition_id = :plain;
select dropped_at is not null, (select count(*) from test_store.definition_grant where definition_id = :plain)
  from test_store.definition where id = :plain;
select define.try($$ select ujobs.describe_job('define.plain')::text $$);
-- A retention of 0 keeps nothing.
select define.try($$ select ujobs.define_job('define.unkept', 'define.plain', '{id}', retention => '0')->>'name' $$);
select id as unkept from test_store.definition where name = 'define.unkept' \gset
insert into test_store.job (due_at, run_at, created_at, definition_id, enqueued_role, priority, max_attempts, run_id, queue, key, input)
values ('infinity', now(), now(), :unkept, 10, 0, 3, gen_random_uuid(), 'define', 'k', '{}');
select define.try($$ select ujobs.drop_job('define.unkept', true)::text $$);
select (select count(*) from test_store.job where definition_id = :unkept),
       (select count(*) from test_store.job_history where definition_id = :unkept);
-- The name is free again; the tombstone stays.
select define.try($$ select ujobs.define_external_job('define.plain', '{id}')->>'kind' $$);
select count(*) from test_store.definition where name = 'define.plain';

-- Without EXECUTE, and in a read-only transaction.
revoke execute on function ujobs.define_job from define_bob;
set role define_bob;
select define.try($$ select ujobs.define_job('define.bob', 'define.plain', '{id}')::text $$);
reset role;
begin read only;
select define.try($$ select ujobs.define_job('define.readonly', 'define.plain', '{id}')::text $$);
rollback;

delete from test_store.job_history h using test_store.definition d where d.id = h.definition_id and d.name like 'define.%';
select count(ujobs.drop_job(name)) > 0 as dropped from test_store.definition where name like 'define.%' and dropped_at is null;
\set VERBOSITY terse
set client_min_messages = warning;
drop schema define cascade;
drop owned by define_alice, define_bob, define_team, define_nologin;
drop role define_alice, define_bob, define_team, define_nologin;
