# What a handler can do to its executor: errors of every kind, timeouts, and
# leftover in its session.  The worker lives on and the next job sees nothing.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('attempts', conf => "ujobs.max_workers = 1\nujobs.worker_idle_timeout = 1h\n");
my $once = q{retry => '{"attempts": 1}'};
my $sql = sub { return $node->safe_psql('postgres', @_); };
my $definitions = '';
my $define = sub { $definitions .= handler_sql(@_); return; };
my $define_all = sub { $sql->($definitions); $definitions = ''; return; };

$define->('whoami', 'begin return to_jsonb(pg_backend_pid()); end');
my $pid = sub { return job_result($node, 'whoami'); };
$define_all->();
my $executor = $pid->();

# ---- errors ----

my %errors = (
	'of 2 MB' => [ q{raise exception using message = repeat('x', 2000000), detail = repeat('d', 2000000), hint = repeat('h', 2000000);}, 'P0001' ],
	'with control characters' => [ q{raise exception using message = E'a\x01\x1f\n"\\\\' || chr(127) || U&'\00e9';}, 'P0001' ],
	'with a SQLSTATE of its own' => [ q{raise exception 'mine' using errcode = 'ZZ999';}, 'ZZ999' ],
	'with an empty message' => [ q{raise exception using message = '';}, 'P0001' ],
	'of the stack depth' => [ q{return whoops(input);}, '54001' ],
	'of a huge allocation' => [ q{return to_jsonb(repeat(repeat('x', 1000000), 2000));}, '54000' ],
	'of a unique violation' => [ q{create temp table t (a int unique); insert into t values (1), (1); return null;}, '23505' ],
	'query_canceled of its own' => [ q{raise query_canceled;}, '57014' ],
	'of a missing table' => [ q{insert into no_such_table values (1); return null;}, '42P01' ],
	'deferred to the commit' => [ q{insert into deferred_check values (1), (1); return null;}, '23505' ],
);
$sql->(q{create function whoops(input jsonb) returns jsonb language plpgsql as 'begin return whoops(input); end'});
$sql->(q{create table deferred_check (a int unique deferrable initially deferred)});
my $n = 0;
foreach my $name (sort keys %errors)
{
	my ($body, $sqlstate) = @{ $errors{$name} };

	$n++;
	$define->("error_$n", "begin $body end", with => $once);
}
$define_all->();
$n = 0;
foreach my $name (sort keys %errors)
{
	my (undef, $sqlstate) = @{ $errors{$name} };

	$n++;
	is(run_job($node, "error_$n"), "dead 1 UJ022 $sqlstate", "an error $name is recorded");
}
is($sql->(q{select max(length(last_error::text)) < 100000 from ujobs.jobs}), 't', 'long errors are capped');
is($pid->(), $executor, 'and the executor lives on');

# ---- timeouts ----

my $slow = qq{timeout => '200 ms', $once};
$sql->('create table locked (a int)');
$define->('timeout_loop', 'begin loop end loop; end', with => $slow);
$define->('timeout_sleep', q{begin perform pg_sleep(100); return null; end}, with => $slow);
$define->('timeout_lock', q{begin lock table locked; return null; end}, with => $slow);
$define->('timeout_caught', q{begin
	begin perform pg_sleep(100); exception when query_canceled then null; end;
	return '"went on"'; end}, with => $slow);
$define->('timeout_procedure', q{begin loop commit; end loop; end}, procedure => 1, with => $slow);
$define_all->();
my $holder = $node->background_psql('postgres', on_error_die => 1);
$holder->query_safe('begin; lock table locked');
foreach my $name (qw(loop sleep lock caught procedure))
{
	is(run_job($node, "timeout_$name"), 'dead 1 UJ022 UJ014', "timeout of a handler: $name");
}
$holder->query_safe('commit');
$holder->quit;
is($pid->(), $executor, 'the executor lives on');

# ---- leftover ----

$sql->(<<'SQL');
create role stranger login;
create sequence leftover_seq;
create function leftover_leave() returns void language plpgsql as $$
begin
	set search_path = pg_temp;
	perform set_config('work_mem', '64kB', false);
	perform set_config('my.setting', 'left', false);
	set default_transaction_read_only = on;
	set default_transaction_isolation = serializable;
	set synchronous_commit = off;
	set row_security = off;
	set application_name = 'left';
	create temp table leftover_temp (a int);
	perform pg_catalog.pg_advisory_lock(4711);
	perform pg_catalog.nextval('public.leftover_seq');
	execute 'prepare leftover_statement as select 1';
	execute 'declare leftover_cursor cursor with hold for select 1';
	set role stranger;
end $$;
create function leftover_look() returns jsonb language sql volatile as $$
select jsonb_build_object(
	'user', current_user, 'role', current_setting('role'), 'path', current_setting('search_path'),
	'work_mem', current_setting('work_mem'), 'mine', coalesce(current_setting('my.setting', true), ''),
	'read_only', current_setting('transaction_read_only'), 'isolation', current_setting('transaction_isolation'),
	'default_read_only', current_setting('default_transaction_read_only'),
	'sync', current_setting('synchronous_commit'), 'rls', current_setting('row_security'),
	'application', current_setting('application_name'), 'tenant', coalesce(current_setting('ujobs.tenant_id', true), ''),
	'temp', to_regclass('pg_temp.leftover_temp') is not null,
	'locks', (select count(*) from pg_locks where locktype = 'advisory'),
	'statements', (select count(*) from pg_prepared_statements),
	'cursors', (select count(*) from pg_cursors where name like 'leftover%'),
	'pid', pg_backend_pid())
$$;
SQL
$define->('look', 'begin return public.leftover_look(); end');
$define->('leave', 'begin perform public.leftover_leave(); return null; end');
$define->('leave_batch', 'begin perform public.leftover_leave(); return null; end', with => 'batch => 10');
$define->('leave_fail', q{begin perform public.leftover_leave(); raise 'failed'; end}, with => $once);
$define->('leave_caught', q{begin
	begin perform public.leftover_leave(); raise 'failed'; exception when raise_exception then null; end;
	return null; end});
$define->('leave_procedure', 'begin perform public.leftover_leave(); end', procedure => 1);
$define->('leave_commit', 'begin perform public.leftover_leave(); commit; end', procedure => 1);
$define->('leave_commit_fail', q{begin perform public.leftover_leave(); commit; raise 'failed'; end},
	procedure => 1, with => $once);
$define->('leave_timeout', q{begin perform public.leftover_leave(); commit; perform pg_catalog.pg_sleep(100); end},
	procedure => 1, with => $slow);
$define->('leave_path', q{begin set search_path = mean, pg_catalog; commit; end}, procedure => 1);
$define->('leave_listen', q{begin execute 'listen leftover'; return null; end}, with => $once);
$define->('leave_prepared', q{begin execute 'prepare transaction ''leftover'''; return null; end}, with => $once);

$define_all->();
my $look = sub { return job_result($node, 'look'); };
my $clean = $look->();
my %leftover = (
	leave => 'done 1', leave_batch => 'done 1', leave_fail => 'dead 1 UJ022 P0001', leave_caught => 'done 1',
	leave_procedure => 'done 1', leave_commit => 'done 1', leave_commit_fail => 'dead 1 UJ022 P0001',
	leave_timeout => 'dead 1 UJ022 UJ014', leave_path => 'done 1',
	leave_listen => 'dead 1 UJ022 0A000', leave_prepared => 'dead 1 UJ022 0A000');
foreach my $name (sort keys %leftover)
{
	is(run_job($node, $name), $leftover{$name}, "handler that leaves things behind: $name");
	is($look->(), $clean, 'the next job sees none of it');
}
like($clean, qr/"pid": $executor/, 'all in one executor');

# ---- settings of roles and databases ----

$sql->(q{alter database postgres set ujobs.synchronous_commit = 'off'});
$sql->(q{alter role postgres set work_mem = '9MB'});
like($look->(), qr/"pid": $executor, .*"sync": "off", .*"work_mem": "9MB"/,
	'an executor that was idle follows ALTER DATABASE and ALTER ROLE ... SET');
$sql->(q{alter role postgres reset work_mem});
$sql->(q{alter database postgres reset ujobs.synchronous_commit});

$sql->(<<'SQL');
create role app login createdb;
grant all on schema public to app;
grant execute on function ujobs.define_job to app;
create role other login;
grant other to app;
create schema app authorization app;
create table app.hits (a text);
alter table app.hits owner to app;
create function app.equal(bigint, bigint) returns boolean language plpgsql as
	$$ begin insert into app.hits values (current_user); return $1 operator(pg_catalog.=) $2; end $$;
create operator app.= (leftarg = bigint, rightarg = bigint, function = app.equal);
create function app.now() returns timestamptz language plpgsql as
	$$ begin insert into app.hits values (current_user); return '2000-01-01'; end $$;
SQL
$node->safe_psql('postgres', <<"SQL", extra_params => [ '-U', 'app' ]);
create table public.app_effect (a text, b text);
create function public.app_job(input jsonb) returns jsonb language plpgsql as
	\$\$ begin insert into public.app_effect values (current_user, current_setting('transaction_isolation')); perform pg_sleep(0.05); return null; end \$\$;
create function public.app_fail(input jsonb) returns jsonb language plpgsql as \$\$ begin raise 'no'; end \$\$;
create procedure public.app_procedure(input jsonb) language plpgsql as
	\$\$ begin insert into public.app_effect values (current_user, current_setting('transaction_isolation')); commit; end \$\$;
select ujobs.define_job('app_job', 'public.app_job', '{n}');
select ujobs.define_job('app_fail', 'public.app_fail', '{n}', retry => '{"attempts": 2, "delay": 1}');
select ujobs.define_job('app_procedure', 'public.app_procedure', '{n}');
SQL
$sql->(<<'SQL');
alter role app set search_path = app, pg_catalog, public;
alter role app set statement_timeout = '1ms';
alter role app set lock_timeout = '1ms';
alter role app set idle_in_transaction_session_timeout = '1ms';
alter role app set idle_session_timeout = '1ms';
alter role app set default_transaction_isolation = serializable;
alter role app set default_transaction_read_only = on;
alter role app set default_transaction_deferrable = on;
alter role app set row_security = off;
alter role app set role = other;
alter role app set transform_null_equals = on;
alter role app set session_replication_role = replica;
alter database postgres set statement_timeout = '10s';
alter database postgres set default_transaction_isolation = serializable;
alter database postgres set default_transaction_read_only = on;
alter database postgres set search_path = app, pg_catalog, public;
SQL
my $app = sub {
	my ($name) = @_;
	return $sql->("set default_transaction_read_only = off;
		select id from ujobs.enqueue('$name', idempotency_key => gen_random_uuid()::text) \\gset
		set default_transaction_isolation = 'read committed';
		set statement_timeout = 0;" . end_sql(':id'));
};
is($app->('app_job'), 'done 1', 'settings of its role do not hinder an atomic job');
is($app->('app_procedure'), 'done 1', 'nor a procedure');
is($app->('app_fail'), 'dead 2 UJ022 P0001', 'nor the recording of failures');
is($sql->('select distinct a, b from public.app_effect'), 'app|read committed', 'handlers run as the owner, read committed');
is($sql->('select count(*) from app.hits'), '0', 'planted functions and operators were never called by the engine');
is(scalar(engine_pids($node, 'ujobs dispatcher')), 1, 'and there is a dispatcher');

my $log = slurp_file($node->logfile);
unlike($log, qr/(PANIC|TRAP|WARNING):/, 'no warning or worse in the log of it all');
unlike($log, qr/ujobs dispatcher FATAL|ujobs dispatcher ERROR/, 'the dispatcher never failed');

$node->stop;
done_testing();
