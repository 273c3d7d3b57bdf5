# What a plain role may try against the engine while it runs.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('plain_role', conf => "fsync = off\nujobs.max_workers = 2\n");
my $sql = sub { return $node->safe_psql('postgres', @_); };
my $as = sub {
	my ($role, $text) = @_;

	return $sql->($text, extra_params => [ '-U', $role ]);
};
my $refused = sub {
	my ($text) = @_;
	my $err = '';

	$node->psql('postgres', "\\set VERBOSITY sqlstate\n$text", stderr => \$err, on_error_stop => 1, extra_params => [ '-U', 'plain' ]);
	return $err =~ /(?:ERROR|FATAL):\s+([0-9A-Z]{5})/ ? $1 : '';
};

$sql->(<<'SQL');
create role plain login;
create role boss login;
grant execute on function ujobs.define_job, ujobs.grant_enqueue to boss;
grant create on schema public to boss;
create schema plain authorization plain;
SQL
$as->('boss', handler_sql('secret', q{begin return pg_catalog.to_jsonb(current_user); end}) . handler_sql('shared', q{begin return pg_catalog.to_jsonb(current_user); end}));
$as->('boss', q{select ujobs.grant_enqueue('shared', 'plain')});
my $id = $as->('boss', q{select id from ujobs.enqueue('secret', '{"n": 1, "password": "hidden"}')});
$sql->("select ujobs.wait_for_job($id)");

# ---- what is not theirs ----

my %calls = (
	q{select ujobs.define_job('mine', 'plain.f', '{n}')} => '42501',
	q{select ujobs.drop_job('secret')} => '42501',
	q{select ujobs.pause_queue('default')} => '42501',
	q{select ujobs.resume_queue('default')} => '42501',
	q{select ujobs.purge('0')} => '42501',
	q{select ujobs.start_workers()} => '42501',
	q{select ujobs.stop_workers()} => '42501',
	q{select ujobs.drain()} => '42501',
	q{select ujobs.set_job_owner('secret', 'plain')} => '42501',
	q{select ujobs.grant_enqueue('secret', 'plain')} => '42501',
	q{select * from ujobs.enqueue('secret')} => '42501',
	qq{select ujobs.cancel($id)} => 'UJ018',
	qq{select ujobs.retry($id)} => 'UJ018',
	qq{select ujobs.wait_for_job($id, '0')} => 'UJ018',
	q{select ujobs.describe_job('secret')} => 'UJ011',
	q{select ujobs.check()} => '42501',
	q{select ujobs.run_task('{"task": "x"}')} => 'UJ015',
	q{select * from ujobs_internal.job} => '42501',
	q{insert into ujobs_internal.origin values (true, 1, '1', true)} => '42501',
	q{set ujobs.synchronous_commit = off} => '42501',
	q{set ujobs.max_workers = 1} => '55P02',
	q{set ujobs.max_running = 1} => '55P02');
is($refused->($_), $calls{$_}, "refused: $_") foreach sort keys %calls;
is($as->('plain', q{select count(*) from ujobs.jobs}), '0', 'the jobs of others are not shown');
is($as->('plain', qq{select ujobs.inspect_job($id) is null}), 't', 'neither by id');

# ---- planted objects ----

# Everything that a statement of the engine might look up, in front of pg_catalog, as the role that runs the job.
my $planted = <<'SQL';
create table plain.hits (by text);
grant insert on plain.hits to public;
create function plain.note() returns void language plpgsql as $$ begin insert into plain.hits values (current_user); end $$;
SQL
foreach my $type (qw(bigint int smallint text timestamptz boolean uuid oid))
{
	$planted .= "create function plain.f(a $type, b $type) returns boolean language plpgsql as \$\$ begin perform plain.note(); return true; end \$\$;\n";
	$planted .= "create operator plain.$_ (leftarg = $type, rightarg = $type, function = plain.f);\n" foreach qw(= <> < > <= >=);
}
$planted .= <<'SQL';
create function plain.now() returns timestamptz language plpgsql as $$ begin perform plain.note(); return 'epoch'; end $$;
create function plain.clock_timestamp() returns timestamptz language plpgsql as $$ begin perform plain.note(); return 'epoch'; end $$;
create function plain.coalesce(a text, b text) returns text language plpgsql as $$ begin perform plain.note(); return a; end $$;
create function plain.unnest(a bigint[]) returns setof bigint language plpgsql as $$ begin perform plain.note(); end $$;
create function plain.to_jsonb(a anyelement) returns jsonb language plpgsql as $$ begin perform plain.note(); return '"planted"'; end $$;
create function plain.pg_current_xact_id() returns xid8 language plpgsql as $$ begin perform plain.note(); return '1'; end $$;
create table plain.job (id bigint);
create table plain.definition (id bigint);
SQL
$as->('plain', $planted);
$sql->('grant usage on schema plain to public; alter role plain set search_path = plain, pg_catalog, ujobs, ujobs_internal; alter role boss set search_path = plain, pg_catalog, public');
# A new executor, with the new path.
$sql->(q{select pg_terminate_backend(pid) from ujobs.workers where kind = 'executor'});
my $hostile = <<'SQL';
create temp table job (id bigint);
create temp table definition (id bigint);
create temp table pg_class (oid oid);
create temp table job_history (id bigint);
create type pg_temp.enqueue_result as (id int);
SQL
$as->('plain', qq{$hostile
	select id from ujobs.enqueue('shared', '{"n": 1}'::pg_catalog.jsonb);
	select id from ujobs.enqueue('shared', '{"n": 1}'::pg_catalog.jsonb);
	select ujobs.inspect_job(1); select pg_catalog.count(*) from ujobs.jobs; select * from ujobs.stats(); select ujobs.why(1);
	select * from ujobs.queues; select * from ujobs.dead_letters; select ujobs.prometheus()});
wait_until_sql($node, q{select count(*) > 0 from ujobs.jobs where name = 'shared' and state = 'done'});
$as->('boss', q{create or replace function public.secret(input pg_catalog.jsonb) returns pg_catalog.jsonb language plpgsql as $f$
	begin
		set search_path = plain, pg_catalog;
		create temp table job (id bigint);
		return '"ran"';
	end $f$});
is(run_job($node, 'secret', input => '{"n": 2}'), 'done 1', 'a handler with planted objects in its path runs');
$as->('boss', q{create or replace function public.secret(input pg_catalog.jsonb) returns pg_catalog.jsonb language plpgsql as $f$
	begin
		set search_path = plain, pg_catalog;
		raise 'no';
	end $f$});
$as->('boss', q{select pg_catalog.set_config('search_path', '', false); select ujobs.define_job('secret', 'public.secret', '{n}', retry => '{"attempts": 1}', replace => true)});
is(run_job($node, 'secret', input => '{"n": 3}'), 'dead 1 UJ022 P0001', 'and fails as it should');
is($sql->(q{select count(*) from plain.hits where by not in ('plain', 'boss')}), '0', 'no planted object was ever called as another role');
is($sql->(q{select count(*) from plain.hits}), '0', 'nor at all');

# ---- a handler that tries to become somebody else ----

$as->('boss', q{set search_path = public; create or replace function public.secret(input jsonb) returns jsonb language plpgsql as $f$
	declare
		roles text[] = '{}';
	begin
		foreach input in array array['"reset role"', '"set role postgres"', '"reset session authorization"', '"set session authorization postgres"', '"set role none"']::jsonb[] loop
			begin
				execute input #>> '{}';
			exception when others then null;
			end;
			roles = roles || array[current_user::text, session_user::text];
		end loop;
		return pg_catalog.to_jsonb(array(select distinct r from unnest(roles) r));
	end $f$});
is(job_result($node, 'secret', input => '{"n": 4}'), '["boss"]', 'a handler stays what its owner is');

unlike(slurp_file($node->logfile), qr/(PANIC|TRAP|WARNING):/, 'no warning or worse in the log of it all');
$node->stop;
done_testing();
