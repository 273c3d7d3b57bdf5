# Every function of schema ujobs, with NULL, empty, huge, extreme and odd values, as a plain role that may call all,
# inside and outside jobs: each answers or refuses with an error of its own, and nothing is left behind.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('every', conf => "fsync = off\nujobs.max_workers = 2\nlog_statement = 'none'\n");
my $sql = sub { return $node->safe_psql('postgres', @_); };

$sql->(<<'SQL');
create role anyone login;
grant create on schema public to anyone;
grant execute on all functions in schema ujobs to anyone;
grant execute on all procedures in schema ujobs to anyone;

create table odd (type regtype, value text);
insert into odd
select 'text'::regtype, v from unnest(array[null, '', ' ', 'default', 'every_job', '{n}', '{', '}}', '{a.b.c}', E'\\x', e'a\nb', repeat('x', 64),
        repeat('y', 1001), repeat('z', 300000), 'Robert''); drop table odd; --', U&'\FFFD\0301', '* * * * *', '61 * * * *', 'Europe/Berlin', '$1',
        'pg_catalog.pg_sleep', 'public.every_job', 'dedupe', 'replace', 'skip', 'nats', 'http', 'redis']) as v
union all select 'jsonb', v from unnest(array[null, 'null', '{}', '[]', '""', '0', '1e400', '{"n": 1}', '{"n": null}', '[["every_job", {"n": 1}]]', '[[]]',
        '{"url": "http://127.0.0.1:1"}', '{"attempts": -1}', '{"a": {"a": {"a": 1}}}', '"' || repeat('q', 100000) || '"', repeat('[', 3000) || repeat(']', 3000)]) as v
union all select 'jsonb[]', v from unnest(array[null, '{}', '{NULL}', '{"{}", NULL}', '{{"1"},{"2"}}', '{"{\"n\": 1}"}']) as v
union all select 'text[]', v from unnest(array[null, '{}', '{NULL}', '{default}', '{"", default}', '{{a},{b}}']) as v
union all select 'bigint', v from unnest(array[null, '0', '1', '-1', '9223372036854775807', '-9223372036854775808']) as v
union all select 'integer', v from unnest(array[null, '0', '1', '-1', '2147483647', '-2147483648']) as v
union all select 'interval', v from unnest(array[null, '0', '1 ms', '-1 s', '1 second', '100 years', '178000000 years', '-178000000 years', '1 month -30 days']) as v
union all select 'timestamptz', v from unnest(array[null, 'infinity', '-infinity', '294276-12-31 UTC', '4713-01-01 00:00:00+00 BC', '2026-03-29 02:30 UTC', 'now']) as v
union all select 'boolean', v from unnest(array[null, 'true', 'false']) as v
union all select 'name', v from unnest(array[null, 'anyone', 'public', 'nobody_here', '']) as v
union all select 'uuid', v from unnest(array[null, '00000000-0000-0000-0000-000000000000']) as v
union all select 'float8', v from unnest(array[null, '0', 'NaN', 'Infinity', '-1']) as v
union all select 'numeric', v from unnest(array[null, '0', 'NaN', '-1', '1e1000']) as v;
grant select on odd to anyone;

-- One call: its SQLSTATE, '' when it was fine.
create function call_it(command text) returns text language plpgsql as $$
begin
    execute command;
    return '';
exception when others then
    if sqlstate like 'XX%' or sqlstate = '0A000' and sqlerrm ~ 'not implemented' then
        raise log 'strange answer to %: % %', left(command, 300), sqlstate, sqlerrm;
    end if;
    return sqlstate;
end $$;

-- For each argument each odd value, the others at their default or at a usual value.
create view calls as
with f as (
    select p.oid, p.proname, p.prokind, p.pronargs, p.pronargdefaults, a.n, a.type::regtype as type
      from pg_proc p
     cross join lateral unnest(p.proargtypes::oid[]) with ordinality as a (type, n)
     where p.pronamespace = 'ujobs'::regnamespace
       and p.proname not in ('stop_workers', 'wait_for_work', 'purge')
), usual (type, value) as (
    values ('text'::regtype, 'every_job'), ('jsonb', '{}'), ('jsonb[]', '{}'), ('text[]', '{default}'), ('bigint', '1'), ('integer', '1'),
           ('interval', '0'), ('timestamptz', 'now'), ('boolean', 'false'), ('name', 'anyone')
)
select x.oid, x.n, o.value is null as is_null,
       case when x.prokind = 'p' then 'call ' else 'select ' end || 'ujobs.' || quote_ident(x.proname) || '(' ||
       (select string_agg(case when y.n = x.n then coalesce(quote_literal(o.value), 'null') || '::' || y.type
                               else coalesce(quote_literal(u.value), 'null') || '::' || y.type end, ', ' order by y.n)
          from f y
          left join usual u on u.type = y.type
         where y.oid = x.oid
           and y.n <= greatest(x.n, x.pronargs - x.pronargdefaults)) || ')' as command
  from f x
  join odd o on o.type = x.type;
grant select on calls to anyone;
SQL
$sql->(handler_sql('every_job', 'begin return null; end'), extra_params => [ '-U', 'anyone' ]);
$sql->(<<'SQL', extra_params => [ '-U', 'anyone' ]);
create function every_call(input jsonb) returns jsonb language plpgsql as $$
declare
    answers jsonb;
begin
    perform set_config('statement_timeout', '60s', true);
    select jsonb_object_agg(state, n) into answers
      from (select public.call_it(command) as state, count(*) as n from public.calls where oid::bigint % 8 = (input ->> 'part')::int group by 1) as a;
    return answers;
end $$;
select ujobs.define_job('every_call', 'public.every_call', '{part}', retry => '{"attempts": 1}', queue => 'every_call');
SQL

my $count = $sql->('select count(*) from calls');
cmp_ok($count, '>', 2000, "there are many calls: $count");
my $answers = $sql->(q{set statement_timeout = '300s'; select jsonb_object_agg(state, n)
	from (select public.call_it(command) as state, count(*) as n from calls group by 1) as a}, extra_params => [ '-U', 'anyone' ]);
like($answers, qr/"UJ003"/, 'outside jobs each call answers');
note($answers);
unlike($answers, qr/"XX/, 'none with an internal error');
my @jobs = map { $sql->(qq{select id from ujobs.enqueue('every_call', '{"part": $_}')}, extra_params => [ '-U', 'anyone' ]) } 0 .. 7;
foreach my $id (@jobs)
{
	is(job_end($node, $id), 'done 1', 'inside a job, too');
	unlike($sql->("select result from ujobs.jobs where id = $id"), qr/"XX/, 'none with an internal error');
}
$sql->('select ujobs.start_workers()');
is(run_job($node, 'every_job'), 'done 1', 'the engine works');
is($sql->('select count(*) from ujobs.check()'), '0', 'the store is sound');
my $log = slurp_file($node->logfile);
unlike($log, qr/(PANIC|TRAP|terminated by signal|strange answer)/, 'nothing strange in the log')
  or diag(join "\n", grep { /PANIC|TRAP|signal|strange/ } split /\n/, $log);

$node->stop('fast');
done_testing();
