# The workers of examples/workers, as the programs that they are.
use strict;
use warnings;

use FindBin;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $examples = "$FindBin::RealBin/../../examples/workers";
my $node = ujobs_cluster('outside', store => 1, conf => "fsync = off\n");
my $sql = sub { return $node->safe_psql('postgres', @_); };

my @env = ('env', 'NODE_PATH=/usr/share/nodejs:/usr/local/lib/ujobs-node', 'LEASE_SECONDS=2', 'PGDATABASE=postgres', 'PGUSER=payer',
	'PGHOST=' . $node->host, 'PGPORT=' . $node->port);

# A role that may claim, and no more.
$sql->(q{create role payer login;
	grant execute on function ujobs.claim, ujobs.ack, ujobs.nack, ujobs.heartbeat, ujobs.step_get, ujobs.step_put to payer;
	select ujobs.define_external_job('charge', 'charge:{order}', queue => 'payments', retry => '{"delay": "10 ms"}');
	select ujobs.grant_work('charge', 'payer')});

sub enqueue
{
	my ($input) = @_;

	return $sql->("select id from ujobs.enqueue('charge', '$input')");
}

sub start_worker
{
	my ($command, $log) = @_;

	return IPC::Run::start([ @env, @$command, 'payments' ], '<', '/dev/null', '>>', $log, '2>&1');
}

my %command = (
	python => [ '/usr/bin/python3', "$examples/worker.py" ],
	node => [ 'node', "$examples/worker.js" ]);
my $order = 0;

for my $name (sort keys %command)
{
	my $log = "$ENV{TESTDATADIR}/worker_$name.log";
	my @ids = map { enqueue('{"order": ' . ++$order . '}') } 1 .. 3;
	my $worker = start_worker($command{$name}, $log);

	ok(eval { wait_until_sql($node, "select count(*) = 3 from ujobs.jobs where state = 'done' and id in (" . join(',', @ids) . ')'); },
		"$name: jobs are done")
	  or diag slurp_file($log);
	is($sql->("select bool_and(result ->> 'worker' = '$name' and result ->> 'receipt' like input ->> 'order' || '-%' and attempt = 1)
		from ujobs.jobs where id in (" . join(',', @ids) . ')'), 't', "$name: with their results");
	is($sql->("select string_agg(distinct name || ' ' || status, ',') from ujobs.steps where job_id in (" . join(',', @ids) . ')'),
		'charge completed', "$name: and their steps");

	# An attempt that died after its step: the step is not done again.
	my $again = enqueue('{"order": ' . ++$order . ', "seconds": 60}');
	wait_until_sql($node, "select exists (select from ujobs.steps where job_id = $again and status = 'completed')");
	$worker->signal("KILL");
	eval { $worker->finish; };
	$sql->("update test_store.job set input = '{\"order\": 0}' where id = $again");
	$worker = start_worker($command{$name}, $log);
	wait_until_sql($node, "select exists (select from ujobs.jobs where id = $again and state = 'done')");
	is($sql->("select attempt, left(result ->> 'receipt', " . length("$order-") . ") from ujobs.jobs where id = $again"), "2|$order-",
		"$name: what kill -9 leaves is taken up, its step is remembered");

	# Longer than the lease, and stopped in the middle of it.
	my $long = enqueue('{"order": ' . ++$order . ', "seconds": 5}');
	wait_until_sql($node, "select exists (select from ujobs.steps where job_id = $long)");
	$worker->signal('TERM');
	$worker->finish;
	is($worker->result(0), 0, "$name: SIGTERM is a clean end");
	is($sql->("select state, attempt from ujobs.jobs where id = $long"), 'done|1', "$name: after the job at hand, kept by its heartbeats");
}

is($sql->('select count(*) from ujobs.check()'), '0', 'the store is healthy');
$node->stop;
done_testing();
