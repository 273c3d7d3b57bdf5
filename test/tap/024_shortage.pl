# Too few processes: everybody is served in turn, nothing spins, the reason is told.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('shortage', store => 1, conf => "fsync = off\nujobs.max_workers = 1\n");
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

# ---- too few processes: two of them are launchers, of ujobs and of logical replication; an engine takes two ----

my $starved = qr/max_worker_processes is exhausted/;
my $why = sub { return "select ujobs.why($_[0]) ->> 'reason' ~ 'max_worker_processes'"; };
my $processes = sub {
	my ($n) = @_;

	$sql->('postgres', "alter system set max_worker_processes = $n");
	$node->restart;
};
my $at_work = "select string_agg(w.database, ' ' order by w.database) from ujobs.workers w where w.kind = 'dispatcher' and w.state = 'running'";

$sql->('postgres', 'alter system reset ujobs.worker_idle_timeout');
$sql->('postgres', 'alter system set ujobs.max_workers = 4');
$sql->($_, q{select ujobs.define_job('busy', 'public.busy', '{n}')}) foreach qw(postgres second);

# Four executors leave nothing to another database: two of them give way, and the others go on.
$sql->('second', 'select ujobs.stop_workers()');
$processes->(8);
$sql->('postgres', $load);
wait_until_sql($node, q{select count(*) = 4 from ujobs.jobs where name = 'busy' and state = 'running'});
my $second = enqueue_job($node, 'work', database => 'second');
$sql->('second', 'select ujobs.start_workers()');
is(job_end($node, $second, database => 'second'), 'done 1', 'executors make room for an engine of another database');
wait_until_sql($node, q{select count(*) = 1 from ujobs.workers where kind = 'scheduler' and database = 'second'});
pass('and for its scheduler');
wait_until_sql($node, q{select exists (select from ujobs.jobs where name = 'busy' and state = 'running')});
pass('and the first has work done as well');

# Two engines, and one process more: it serves both in turn.
$processes->(7);
wait_until_sql_is($node, $at_work, 'postgres second');
$sql->('second', $load);
foreach my $round (1 .. 2)
{
	foreach my $database (qw(postgres second))
	{
		wait_until_sql($node, q{select exists (select from ujobs.jobs where name = 'busy' and state = 'running')}, database => $database);
	}
}
pass('two databases take turns with the only process');
$sql->('second', q{select ujobs.drop_job('busy', force => true)});
is(run_job($node, 'work', database => 'second'), 'done 1', 'also when one has much to do and the other little');
$sql->('postgres', q{select ujobs.drop_job('busy', force => true)});

# Four databases: as many as leave a process for executors.
foreach my $database (qw(third fourth))
{
	$sql->('postgres', "create database $database");
	$sql->($database, "create extension ujobs; $populate");
}
$processes->(8);
my $looking = q{select count(*) filter (where state = 'running'), count(*) filter (where state ~ 'max_worker_processes') from ujobs.workers where kind = 'dispatcher'};
wait_until_sql_is($node, $looking, '2|2');
my %served = map { $_ => 1 } split / /, $sql->('postgres', $at_work);
foreach my $database (qw(postgres second third fourth))
{
	my $id = enqueue_job($node, 'work', database => $database);

	if ($served{$database})
	{
		is(job_end($node, $id, database => $database), 'done 1', "$database is served");
	}
	else
	{
		is($sql->($database, $why->($id)), 't', "$database says why it is not");
	}
}
like(slurp_file($node->logfile), qr/LOG:  ujobs waits in database "\w+": $starved/, 'so does the log');
my ($leaves) = grep { $_ ne 'postgres' } keys %served;
$sql->('postgres', "drop database $leaves");
wait_until_sql_is($node, $looking, '2|1');
pass('when a database goes, the next one starts');
foreach my $database (split / /, $sql->('postgres', $at_work))
{
	is(run_job($node, 'work', database => $database), 'done 1', "$database is served now");
}
$sql->('postgres', "drop database $_") foreach grep { $_ ne $leaves } qw(second third fourth);

# Too few for the one engine that is left.
$processes->(4);
wait_until_sql_is($node, $looking, '0|1');
is($sql->('postgres', $why->(enqueue_job($node, 'work'))), 't', 'an engine that would have no executor does not start');

# ---- somebody else takes the last process ----

$processes->(5);
wait_until_engine($node);
wait_until_sql($node, q{select count(*) = 1 from ujobs.workers where kind = 'scheduler'});
wait_until_sql($node, q{select count(*) = 0 from ujobs.jobs where state in ('ready', 'running')});
wait_until_sql($node, q{select count(*) = 1 from ujobs.workers where kind = 'executor' and state = 'idle'});
$sql->('postgres', q{select pg_terminate_backend(pid, 60000) from ujobs.workers where kind = 'executor'});
my $other = $node->background_psql('postgres', on_error_stop => 0);
$other->query_until(qr/begun/, <<'SQL');
select set_config(name, 'on', false) from pg_settings where name in ('force_parallel_mode', 'debug_parallel_query');
\echo begun
select pg_sleep(600);
SQL
wait_until_sql($node, q{select exists (select from pg_stat_activity where backend_type = 'parallel worker')});
my $offset = -s $node->logfile;
my $id = enqueue_job($node, 'work');
wait_until_log($node, $starved, $offset);
wait_until_sql($node, $why->($id));
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
$sql->('postgres', q{select pg_cancel_backend(pid) from pg_stat_activity where query like 'select pg_sleep(600)%' and backend_type = 'client backend'});
is(job_end($node, $id), 'done 1', 'and runs when a process is free');
$other->quit;

# ---- a relay does not take the last process ----

$offset = -s $node->logfile;
$sql->('postgres', q{insert into test_store.sink (name, kind, options, created_at) values ('sink', 'http', '{"url": "http://127.0.0.1/"}', now())});
wait_until_log($node, qr/ujobs cannot start a relay: $starved/, $offset);
$sql->('postgres', q{select pg_terminate_backend(pid, 60000) from ujobs.workers where kind = 'executor'});
is(run_job($node, 'work', input => '{"n": "beside a sink"}'), 'done 1', 'a relay leaves the last process to executors');
is($sql->('postgres', q{select count(*) from ujobs.workers where kind = 'relay'}), '0', 'and waits for another one');

unlike(slurp_file($node->logfile), qr/(PANIC|TRAP|WARNING):/, 'no warning or worse in the log of it all');
$node->stop;
done_testing();
