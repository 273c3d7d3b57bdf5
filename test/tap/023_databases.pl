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

$node->stop;
done_testing();
