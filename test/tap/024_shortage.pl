# Too few processes: everybody is served in turn, nothing spins, the reason is told.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('shortage', conf => "fsync = off\nujobs.max_workers = 1\n");
my $sql = sub {
	my ($database, $text, @more) = @_;

	return $node->safe_psql($database, $text, @more);
};
my @handlers = (
	[ 'work', q{begin return null; end} ],
	[ 'busy', q{begin perform pg_sleep(0.01); return null; end} ]);
my $populate = join '', map { handler_sql(@$_) } @handlers;

# A load that outlasts the test.
my $load = q{select count(*) from ujobs.enqueue_many('busy', array(select jsonb_build_object('n', n) from generate_series(1, 20000) as n))};

$sql->('postgres', $populate);
$sql->('postgres', 'create database second');
$sql->('second', "create extension ujobs; $populate");
wait_until_engine($node, database => 'second');

# ---- one executor for two databases and three roles ----

$sql->('postgres', $load);
wait_until_sql($node, q{select exists (select from ujobs.jobs where name = 'busy' and state = 'running')});
is(run_job($node, 'work', database => 'second'), 'done 1', 'another database gets the only executor in its turn');
wait_until_sql($node, q{select exists (select from ujobs.jobs where name = 'busy' and state = 'running')});
$sql->('second', $load);
foreach my $round (1 .. 2)
{
	foreach my $database (qw(postgres second))
	{
		wait_until_sql($node, q{select exists (select from ujobs.jobs where name = 'busy' and state = 'running')}, database => $database);
	}
}
pass('two databases with work take turns');
$sql->('second', q{select ujobs.drop_job('busy', force => true)});

foreach my $role (qw(ann ben))
{
	$sql->('postgres', "create role $role login; grant create on schema public to $role; grant execute on function ujobs.define_job to $role");
	$sql->('postgres', qq{create function ${role}_work(input jsonb) returns jsonb language sql as 'select to_jsonb(current_user)';
		select ujobs.define_job('${role}_work', 'public.${role}_work', '{n}')}, extra_params => [ '-U', $role ]);
}
my %id = map { $_ => enqueue_job($node, "${_}_work") } qw(ann ben);
is(job_end($node, $id{$_}), 'done 1', "role $_ gets the only executor in its turn") foreach qw(ann ben);
wait_until_sql($node, q{select exists (select from ujobs.jobs where name = 'busy' and state = 'running')});
pass('and the others get it back');
$sql->('postgres', q{select ujobs.drop_job('busy', force => true)});

# ---- executors that leave when they idle ----

$sql->('postgres', 'alter system set ujobs.worker_idle_timeout = 0');
$sql->('postgres', 'select pg_reload_conf()');
my $done = 0;
foreach my $n (1 .. 10)
{
	wait_until_sql($node, q{select count(*) = 0 from ujobs.workers where kind = 'executor'}) if $n % 5 == 0;
	$done += job_end($node, enqueue_job($node, 'work', input => qq({"n": "brief $n"}))) eq 'done 1';
}
is($done, 10, 'an executor does not leave before it had the job it was started for');

# ---- no process is left ----

$sql->('postgres', 'alter system set max_worker_processes = 5');	# launcher, logical replication, dispatcher and scheduler of two databases: too few
$node->restart;
wait_until_sql($node, q{select count(*) = 2 from ujobs.workers where kind = 'dispatcher' and state = 'running'});
my $offset = -s $node->logfile;
my $id = $sql->('postgres', q{select id from ujobs.enqueue('work', '{"n": 1}')});
my $starved = qr/max_worker_processes is exhausted/;
wait_until_log($node, $starved, $offset);
wait_until_sql($node, "select ujobs.why($id) ->> 'reason' ~ 'max_worker_processes'");
pass('why() says that no process could be started');

SKIP:
{
	skip 'needs /proc', 1 unless -r '/proc/self/stat';

	my $cpu = sub {
		my $sum = 0;

		foreach my $pid (engine_pids($node, 'ujobs'))
		{
			my @stat = split / /, slurp_file("/proc/$pid/stat") =~ s/^.*\) //r;

			$sum += $stat[11] + $stat[12];
		}
		return $sum;
	};
	my $before = $cpu->();
	$sql->('postgres', 'select pg_sleep(3)');	# what is measured is time
	cmp_ok($cpu->() - $before, '<', 30, 'nothing spins meanwhile (in hundredths of a second, of 300)');
}
my $said = () = slurp_file($node->logfile, $offset) =~ /could not start an executor/g;
cmp_ok($said, '<=', 1, 'it is logged once');
is($sql->('postgres', "select state from ujobs.jobs where id = $id"), 'ready', 'the job waits');
$sql->('second', 'select ujobs.stop_workers()');
is(job_end($node, $id), 'done 1', 'and runs when a process is free');

unlike(slurp_file($node->logfile), qr/(PANIC|TRAP|WARNING):/, 'no warning or worse in the log of it all');
$node->stop;
done_testing();
