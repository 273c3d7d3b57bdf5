# What happens to a database, its extension, its roles and functions, while the engine is at work.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('databases', extension => 0, conf => "fsync = off\nujobs.max_workers = 4\nujobs.poll_interval = 500ms\n");
my $sql = sub {
	my ($database, $text, @more) = @_;

	return $node->safe_psql($database, $text, @more);
};
# A database with a job "work" (counts itself), "busy" (keeps an executor busy) and 300 jobs of each kind of state.
my $populate = <<'SQL';
create extension ujobs;
create table effect (name text, n int);
create table trouble (broken boolean);
insert into trouble values (true);
SQL
$populate .= join '', map { handler_sql(@$_) }
  [ 'work', q{begin insert into public.effect values ('work', (input ->> 'n')::int); return null; end} ],
  [ 'busy', q{begin perform pg_sleep(0.005); return null; end} ],
  [ 'endless', q{begin perform pg_sleep(3600); return null; end} ],
  [ 'failing', q{begin raise 'no'; end}, with => q{retry => '{"attempts": 1}'} ];
my $fresh = sub {
	my ($database) = @_;

	$node->safe_psql('postgres', "create database $database");
	$sql->($database, $populate);
	wait_until_engine($node, database => $database);
	return;
};
my $load = sub {
	my ($database) = @_;

	$sql->($database, q{select count(*) from ujobs.enqueue_many('busy', array(select jsonb_build_object('n', n) from generate_series(1, 1000) as n))});
	$sql->($database, q{select ujobs.enqueue('endless', '{"n": 1}')});
	wait_until_sql($node, q{select exists (select from ujobs.jobs where name = 'endless' and state = 'running')}, database => $database);
	return;
};
my $seconds = sub {
	my ($code) = @_;
	my $begin = time;

	$code->();
	return time - $begin;
};
my $command = sub {
	my ($text) = @_;

	return sub { is(sql_state($node, $text), '', "$text, under load"); };
};

# ---- fast stop, immediate stop ----

$fresh->('one');
$load->('one');
cmp_ok($seconds->(sub { $node->stop('fast'); }), '<', 15, 'a fast stop under load takes seconds');
$node->start;
wait_until_sql($node, q{select state = 'running' and attempt = 1 from ujobs.jobs where name = 'endless'}, database => 'one');
pass('the job that was interrupted runs again, no attempt burnt');
$node->stop('immediate');
$node->start;
wait_until_sql($node, q{select state = 'running' and attempt = 1 from ujobs.jobs where name = 'endless'}, database => 'one');
pass('after an immediate stop too');
$sql->('one', q{select ujobs.cancel(id) from ujobs.jobs where name = 'endless'});
wait_until_sql($node, q{select sum(ready + delayed + running) = 0 from ujobs.stats()}, database => 'one');
is($sql->('one', q{select count(*), count(distinct id), max(attempt) from ujobs.jobs where name = 'busy' and state = 'done'}), '1000|1000|1', 'nothing is lost, nothing ran twice');

# ---- ALTER, CREATE ... TEMPLATE, DROP ----

$load->('one');
cmp_ok($seconds->($command->('alter database one rename to two')), '<', 6, 'in seconds');
wait_until_engine($node, database => 'two');
wait_until_sql($node, q{select exists (select from ujobs.jobs where name = 'endless' and state = 'running')}, database => 'two');
pass('the engine is back');

cmp_ok($seconds->($command->('create database copy template two')), '<', 8, 'in seconds');
wait_until_engine($node, database => 'two');
wait_until_sql($node, q{select exists (select from ujobs.workers where database = 'copy' and state like 'paused%')}, database => 'copy');
pass('the engine of a copy is paused');
my $stats = q{select sum(ready + delayed + running) from ujobs.stats()};
my $waiting = $sql->('copy', $stats);
cmp_ok($waiting, '>', 0, 'its jobs are there');
is($sql->('copy', q{select count(*) from pg_stat_activity where datname = 'copy' and backend_type = 'ujobs executor'}), '0', 'and do not run');
like($sql->('copy', q{select ujobs.why(id) ->> 'reason' from ujobs.jobs where name = 'endless' and state <> 'cancelled'}), qr/restored or copied/, 'why() says so');
is($sql->('copy', $stats), $waiting, 'still');
$sql->('copy', 'select ujobs.start_workers()');
wait_until_engine($node, database => 'copy');
wait_until_sql($node, q{select state = 'running' from ujobs.jobs where name = 'endless' and state <> 'cancelled'}, database => 'copy');
pass('after start_workers() they run');

cmp_ok($seconds->($command->('drop database copy')), '<', 8, 'in seconds');
cmp_ok($seconds->($command->('drop database two with (force)')), '<', 8, 'in seconds');
wait_until_sql($node, q{select count(*) = 0 from pg_stat_activity where backend_type in ('ujobs dispatcher', 'ujobs executor', 'ujobs scheduler')});
pass('nothing of them is left running');

# ---- DROP EXTENSION and CREATE again ----

$fresh->('three');
my $activity = q{select count(*) from pg_stat_activity where datname = 'three' and backend_type in ('ujobs dispatcher', 'ujobs executor', 'ujobs scheduler')};
$sql->('three', q{select count(*) from ujobs.enqueue_many('busy', array(select jsonb_build_object('n', n) from generate_series(1, 500) as n))});
is(sql_state($node, 'drop extension ujobs cascade', database => 'three'), '', 'drop extension under load');
$sql->('three', 'drop table effect, trouble; drop function work, busy, endless, failing');
$sql->('three', $populate);
wait_until_engine($node, database => 'three');
$sql->('three', q{select ujobs.enqueue('work', '{"n": 1}')});
wait_until_sql($node, q{select state = 'done' from ujobs.jobs}, database => 'three');
pass('a new extension works at once');
$sql->('three', 'drop extension ujobs cascade');
wait_until_sql($node, $activity =~ s/count\(\*\)/count(*) = 0/r, patience => 20);
pass('without it nobody is left');
$sql->('three', 'drop table effect, trouble; drop function work, busy, endless, failing');
$sql->('three', $populate);
wait_until_engine($node, database => 'three');
$sql->('three', q{select ujobs.enqueue('work', '{"n": 2}')});
wait_until_sql($node, q{select state = 'done' from ujobs.jobs}, database => 'three');
pass('and a third one works too');
like($sql->('three', qq{
	set client_min_messages = warning;
	select deduped from ujobs.enqueue('work', '{"n": 3}');
	drop extension ujobs cascade;
	drop table effect, trouble;
	drop function work, busy, endless, failing;
	$populate
	select deduped from ujobs.enqueue('work', '{"n": 4}')}), qr/^f\n.*\nf$/s, 'a session that knew the last one knows the next one');
wait_until_engine($node, database => 'three');

# ---- owners and handlers come and go ----

my $three = sub { return $sql->('three', @_); };
my @lost = qw(mute gone left);	# owners: may not log in for a while; replaced; dropped and made again
foreach my $role (@lost)
{
	$three->(qq{create role "$role" login; grant create on schema public to "$role"; grant execute on function ujobs.define_job to "$role"});
	$three->(qq{create function ${role}_work(input jsonb) returns jsonb language sql as 'select to_jsonb(current_user)';
		select ujobs.define_job('${role}_work', 'public.${role}_work', '{n}')}, extra_params => [ '-U', $role ]);
	is(job_result($node, "${role}_work", database => 'three'), $role, "a job of owner $role");
}
# An executor that is there already may go on for a role that may not log in any more: there is none.
$three->('alter system set ujobs.worker_idle_timeout = 0');
$three->('select pg_reload_conf()');
wait_until_sql($node, q{select count(*) = 0 from ujobs.workers where kind = 'executor'}, database => 'three');
$three->(<<'SQL');
alter role mute nologin;
revoke all on schema public from gone, "left";
revoke all on function ujobs.define_job from gone, "left";
alter function gone_work owner to postgres;
alter function left_work owner to postgres;
drop role gone, "left";
alter function work rename to moved;
SQL
my %lost = (mute_work => qr/may not log in/, gone_work => qr/owner "gone"/, left_work => qr/owner "left"/, work => qr/handler public.work/);
delete $lost{mute_work} if $three->('show server_version_num') >= 170000;	# there an owner need not log in
my %id = map { $_ => enqueue_job($node, $_, database => 'three', input => '{"n": 3}') } keys %lost;
foreach my $name (sort keys %lost)
{
	wait_until_sql_is($node, "select concat_ws(' ', state, attempt, last_error ->> 'sqlstate') from ujobs.jobs where id = $id{$name}", 'suspended 0 UJ025', database => 'three');
	like($three->("select ujobs.why($id{$name}) ->> 'reason'"), $lost{$name}, "$name is suspended, and why() says it");
}
$three->(q{alter role mute login; create role "left" login; alter function moved rename to work; create role heir login});
$three->(q{select ujobs.set_job_owner('gone_work', 'heir'), ujobs.set_job_owner('left_work', 'left')});
is(job_end($node, $id{$_}, database => 'three'), 'done 1', "$_ runs when what it missed is back") foreach sort keys %lost;
is($three->(q{select string_agg(name || '=' || (result #>> '{}'), ' ' order by name) from ujobs.jobs where id in } . "($id{gone_work}, $id{left_work})"),
	'gone_work=heir left_work=left', 'as the owner it has then');
$three->(q{create or replace function work(input jsonb) returns jsonb language sql as $$ select '"new"'::jsonb $$});
is(job_result($node, 'work', database => 'three', input => '{"n": 3}'), 'new', 'a replaced one is used at once');

# ---- a database leaves ujobs.databases, and comes back ----

$three->(q{alter system set ujobs.databases = 'postgres, elsewhere'});
$three->('select pg_reload_conf()');
wait_until_sql($node, q{select count(*) = 0 from ujobs.workers where database = 'three'}, database => 'three');
my $unserved = enqueue_job($node, 'work', database => 'three', input => '{"n": 4}');
is($three->("select concat_ws(' ', state, ujobs.why(id) ->> 'blockedBy') from ujobs.jobs where id = $unserved"),
	'ready ujobs.databases', 'a database that ujobs.databases no longer lists has no engine');
is(sql_state($node, "select ujobs.wait_for_job($unserved)", database => 'three'), 'UJ023', 'and nobody waits there');
$three->(q{alter system reset ujobs.databases});
$three->('select pg_reload_conf()');
is(job_end($node, $unserved, database => 'three'), 'done 1', 'listed again it works again');

# ---- somebody locks the engine's own tables ----

my $locker = $node->background_psql('three', on_error_die => 1);
my $offset = -s $node->logfile;
$locker->query_safe('begin; lock table ujobs_internal.job');
wait_until_log($node, qr/ujobs dispatcher .*canceling statement due to lock timeout/, $offset);
$locker->query_safe('commit');
$locker->quit;
$three->(q{select ujobs.enqueue('work', '{"n": 50}')});
wait_until_sql($node, q{select state = 'done' from ujobs.jobs where idempotency_key = '50'}, database => 'three');
pass('the dispatcher does not wait for locks, and is back when they are gone');
wait_until_engine($node, database => 'three');

# ---- dump and restore ----

$three->(<<'SQL');
select ujobs.pause_queue('held');
select ujobs.enqueue('work', '{"n": 100}', queue => 'held');
select ujobs.enqueue('work', '{"n": 101}', delay => '1 day');
select ujobs.enqueue('endless', '{"n": 1}');
alter function work rename to gone;
select ujobs.enqueue('work', '{"n": 102}');
SQL
is(run_job($node, 'failing', database => 'three'), 'dead 1 UJ022 P0001', 'a dead job');
wait_until_sql($node, q{select count(*) = 1 from ujobs.jobs where name = 'endless' and state = 'running'}, database => 'three');
wait_until_sql($node, q{select count(*) = 1 from ujobs.jobs where state = 'suspended'}, database => 'three');
my $states = q{select string_agg(state || ':' || n, ' ' order by state) from (select case state when 'running' then 'ready' else state end as state, count(*) as n from ujobs.jobs group by 1) as x};
my $expected = $three->($states);
like($expected, qr/dead:1 delayed:1 done:\d+ ready:2 suspended:1/, 'one of each');
$node->run_log([ 'pg_dump', '-h', $node->host, '-p', $node->port, '-U', 'postgres', '-f', $node->basedir . '/dump.sql', 'three' ]);
$sql->('postgres', 'create database restored');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-h', $node->host, '-p', $node->port, '-U', 'postgres', '-d', 'restored', '-f', $node->basedir . '/dump.sql' ], 'a dump is restored');
wait_until_sql($node, q{select exists (select from ujobs.workers where database = 'restored' and state like 'paused%')}, database => 'restored');
is($sql->('restored', $states), $expected, 'every job is there');
like($sql->('restored', q{select ujobs.why(id) ->> 'reason' from ujobs.jobs where name = 'endless'}), qr/restored/, 'nothing starts before it is told to');
$sql->('restored', 'alter function gone rename to work');
is(sql_state($node, q{select ujobs.enqueue('work', '{"n": 200}')}, database => 'restored'), '', 'enqueue works');
$sql->('restored', 'select ujobs.start_workers()');
wait_until_sql($node, q{select count(*) = 2 from ujobs.jobs where idempotency_key in ('102', '200') and state = 'done'}, database => 'restored');
wait_until_sql($node, q{select state = 'running' from ujobs.jobs where name = 'endless'}, database => 'restored');
is($sql->('restored', q{select state from ujobs.jobs where idempotency_key = '100'}), 'ready', 'the paused queue is still paused');
$sql->('restored', q{select ujobs.resume_queue('held')});
wait_until_sql($node, q{select state = 'done' from ujobs.jobs where idempotency_key = '100'}, database => 'restored');
pass('then everything runs');
is($sql->('restored', 'select count(*) from ujobs.check()'), '0', 'the store is sound');

unlike(slurp_file($node->logfile), qr/(PANIC|TRAP):/, 'no panic in the log of it all');
$node->stop;
done_testing();
