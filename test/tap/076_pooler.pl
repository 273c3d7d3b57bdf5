# Everything that programs outside call, through a pooler that gives each transaction any of its connections.
use strict;
use warnings;

use FindBin;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use UjobsTest;

my ($program) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin';
plan skip_all => 'pgbouncer is not installed' if !$program;

my $examples = "$FindBin::RealBin/../../examples/workers";
my $node = ujobs_cluster('pooler', conf => "fsync = off\n");
my $direct = sub { return $node->safe_psql('postgres', @_); };

# ---- the pooler: a socket of its own, a few connections, no network ----

my $place = $node->host;
my $port = $node->port + 1;
my $user = getpwuid($>);
my $log = "$ENV{TESTDATADIR}/pgbouncer.log";
append_to_file("$ENV{TESTDATADIR}/pgbouncer.ini", <<"CONF");
[databases]
postgres = host=$place port=@{[ $node->port ]} dbname=postgres user=$user
[pgbouncer]
listen_addr =
listen_port = $port
unix_socket_dir = $place
auth_type = any
pool_mode = transaction
default_pool_size = 4
CONF
my $pooler = IPC::Run::start([ $program, "$ENV{TESTDATADIR}/pgbouncer.ini" ], '<', '/dev/null', '>', $log, '2>&1');
END
{
	my $status = $?;

	$pooler->kill_kill if $pooler;
	$? = $status;
}

my @psql = ('psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-h', $place, '-p', $port, '-d', 'postgres');

# Each line of a script is a transaction, unless it says begin; psql speaks the simple protocol.
sub pooled
{
	my ($script) = @_;
	my ($out, $err) = ('', '');

	IPC::Run::run([ @psql, '-f', '-' ], '<', \$script, '>', \$out, '2>', \$err)
	  or die "psql through the pooler: $err\nwith: $script\n";
	chomp $out;
	return $out;
}

# A client that sits in a statement, or in a transaction after it.
sub start_client
{
	my ($script, $seen) = @_;
	my ($in, $out) = ("$script\n", '');
	my $client = IPC::Run::start([ @psql, '-f', '-' ], '<', \$in, '>', \$out, '2>&1');

	$client->pump until !length $in && (!defined $seen || $out =~ $seen);
	return $client;
}

sub is_waiting
{
	my ($what) = @_;

	return "select count(*) = 1 from pg_stat_activity where state = 'active' and query like '%$what%' and pid <> pg_backend_pid() and wait_event_type is not null";
}

foreach my $attempt (1 .. 200)
{
	last if -S "$place/.s.PGSQL.$port" && eval { pooled('select 1') };
	die slurp_file($log) if !$pooler->pumpable || $attempt == 200;
	select undef, undef, undef, 0.05;
}

$direct->(q{select ujobs.define_external_job('call', 'call:{n}', queue => 'calls', retry => '{"delay": "1 hour", "jitter": false}');
	select ujobs.define_external_job('charge', 'charge:{order}', queue => 'payments');
	select ujobs.set_queue('calls', concurrency => 3)});

# ---- enqueue, claim, and the rest from any connection ----

is(pooled(q{select deduped from ujobs.enqueue('call', '{"n": 1}');
	select count(*) from ujobs.enqueue_many('call', array(select jsonb_build_object('n', n) from generate_series(1, 4) n))}), "f\n4", 'enqueue, enqueue_many');
is(pooled("begin; select count(*) from ujobs.enqueue('call', '{\"n\": 9}');\nrollback;\nselect count(*) from ujobs.jobs where name = 'call'"), "1\n4", 'in a transaction that is rolled back');

my ($pid, $id, $lease) = split /\|/, pooled(q{select pg_backend_pid(), id, lease from ujobs.claim('w', '{calls}')});
my $holder = start_client('begin; select 1;', qr/1/);	# it has the connection of the claim
my $mine = "$id, $lease";
my $elsewhere = sub {
	my ($call) = @_;
	my ($where, $answer) = split /\|/, pooled("select pg_backend_pid(), $call"), 2;

	return $where == $pid ? 'on the connection of the claim' : $answer;
};
is($elsewhere->("ujobs.heartbeat($mine)"), 't', 'heartbeat from another connection than the claim');
is($elsewhere->("ujobs.step_get($mine, 'one') is null"), 't', 'step_get of a step that is not done');
is($elsewhere->("ujobs.step_put($mine, 'one', '{\"a\": 1}')"), '', 'step_put');
is($elsewhere->("ujobs.step_get($mine, 'one')"), '{"a": 1}', 'step_get');
is($elsewhere->("ujobs.ack($mine, '\"ok\"')"), 't', 'ack');
is($elsewhere->("ujobs.ack($mine, '\"ok\"')"), 't', 'and once more');
is($elsewhere->("ujobs.heartbeat($mine)"), 'f', 'the lease is over');

($id, $lease) = split /\|/, pooled(q{select id, lease from ujobs.claim('w', '{calls}')});
is($elsewhere->("ujobs.nack($id, $lease, 'no')"), 'delayed', 'nack');
$holder->kill_kill;

($id, $lease) = split /\|/, pooled(q{select id, lease from ujobs.claim('w', '{calls}')});
is(pooled("select ujobs.step_suspend($id, $lease, 'nap', '10 ms') > now()"), 't', 'step_suspend');
my $again = q{select id, lease from ujobs.claim('w', '{calls}', wait => '30 seconds')};
my $rest = pooled(q{select string_agg(id || ', ' || lease, ';') from ujobs.claim('w', '{calls}')});	# the fourth: the limit is three
($id, $lease) = ($1, $2) if pooled($again) =~ /^(\d+)\|(-?\d+)$/;
is(pooled("select ujobs.step_suspend($id, $lease, 'nap', '10 ms') is null"), 't', 'a sleep that is over');
is(pooled("select ujobs.step_await($id, $lease, 'paid', 'pooler_paid') ->> 'state'"), 'suspended', 'step_await');
pooled(q{select ujobs.publish_event('pooler_paid', '{"by": "card"}')});
($id, $lease) = ($1, $2) if pooled($again) =~ /^(\d+)\|(-?\d+)$/;
is(pooled("select ujobs.step_await($id, $lease, 'paid', 'pooler_paid') -> 'payload'"), '{"by": "card"}', 'and the event, by a claim that waited');
is(pooled("select ujobs.ack($id, $lease)"), 't', 'done');
is(pooled("select bool_and(ujobs.ack($_))"), 't', 'as is the other') foreach split /;/, $rest;

# ---- waiting ----

is(pooled(q{call ujobs.wait_for_work('{calls}', '10 ms')}), 'f', 'wait_for_work without work');
my $waiter = start_client(q{call ujobs.wait_for_work('{calls}', '10 minutes');});
wait_until_sql($node, is_waiting('wait_for_work'));
is($direct->("select count(*) from pg_stat_activity where query like 'call ujobs.wait_for_work%' and (backend_xmin is not null or backend_xid is not null)"), '0', 'it holds no snapshot');
pooled(q{select ujobs.enqueue('call', '{"n": 10}')});
ok($waiter->finish, 'it ends when there is work');
is(pooled(q{call ujobs.wait_for_work('{calls}', '10 minutes')}), 't', 'and says so');

is(pooled("begin;\nselect count(*) from ujobs.claim('w', '{calls}');\nrollback;\nselect count(*) from ujobs.claim('w', '{calls}')"), "1\n1", 'a claim rolled back gives its job back at once');
pooled(q{select ujobs.cancel(id) from ujobs.jobs where name = 'call' and state = 'running'});

# ---- clients that are killed ----

my $gone = sub {
	my ($what) = @_;

	return "select count(*) = 0 from pg_stat_activity where state = 'active' and query like '%$what%' and pid <> pg_backend_pid()";
};
my $n = 20;
foreach my $case ([ 'wait_for_work', q{call ujobs.wait_for_work('{calls}', '10 minutes');} ], [ 'ujobs.claim', q{select id from ujobs.claim('dead', '{calls}', wait => '1 minute');} ])
{
	my ($what, $statement) = @$case;
	my $client = start_client($statement);

	wait_until_sql($node, is_waiting($what));
	my $begin = time;
	$client->signal('KILL');
	$client->finish;
	wait_until_sql($node, $gone->($what));
	cmp_ok(time - $begin, '<', 30, "the server notices that the client is gone: $what");
	$n++;
	pooled("select ujobs.enqueue('call', '{\"n\": $n}')");
	is(pooled(q{select count(*) from ujobs.claim('alive', '{calls}', wait => '20 seconds') c where ujobs.ack(c.id, c.lease)}), '1', 'and gives nothing to it');
}

$direct->("select ujobs.set_queue('calls', concurrency => 1)");
pooled(q{select count(*) from ujobs.enqueue_many('call', array(select jsonb_build_object('n', n) from generate_series(31, 32) n))});
my $dead = start_client("begin;\nselect 'claimed ' || id from ujobs.claim('dead', '{calls}');", qr/claimed \d/);
is(pooled(q{select count(*) from ujobs.claim('alive', '{calls}')}), '0', 'an open claim counts');
$dead->signal('KILL');
$dead->finish;
is(pooled(q{select count(*) from ujobs.claim('alive', '{calls}', wait => '20 seconds') c where ujobs.ack(c.id, c.lease)}), '1', 'until its client dies');

# ---- real clients ----

my $script = "$ENV{TESTDATADIR}/pooler.py";
append_to_file($script, <<'PYTHON');
import psycopg
from psycopg.types.json import Jsonb

with psycopg.connect(autocommit=True, prepare_threshold=None) as db:
    def value(statement, *arguments):
        return db.execute(statement, arguments).fetchone()[0]

    for n in range(100, 110):   # more often than a statement is usually prepared
        value("select id from ujobs.enqueue('call', %s)", Jsonb({"n": n}))
    done = 0
    while value("call ujobs.wait_for_work(%s, '50 ms')", ["calls"]):
        try:
            with db.transaction():
                taken = value("select id from ujobs.claim('python', %s)", ["calls"])
                raise psycopg.Rollback
        except psycopg.Rollback:
            pass
        job, lease = db.execute("select id, lease from ujobs.claim('python', %s, wait => '20 seconds')", (["calls"],)).fetchone()
        value("select ujobs.heartbeat(%s, %s)", job, lease)
        value("select ujobs.step_put(%s, %s, 'one', %s)", job, lease, Jsonb(done))
        assert value("select ujobs.step_get(%s, %s, 'one')", job, lease) == done
        done += value("select ujobs.ack(%s, %s)", job, lease)
    print(done)
PYTHON
my @env = ('env', 'NODE_PATH=/usr/share/nodejs:/usr/local/lib/ujobs-node', 'PGDATABASE=postgres', "PGHOST=$place", "PGPORT=$port", "PGUSER=$user");
my $said = '';
IPC::Run::run([ @env, '/usr/bin/python3', $script ], '>', \$said, '2>&1');
is($said, "11\n", 'psycopg: waits, claims, gives back, claims again, steps and acks');

my %command = (
	python => [ '/usr/bin/python3', "$examples/worker.py", 'payments' ],
	node => [ 'node', "$examples/worker.js", 'payments' ]);
my $order = 0;
foreach my $name (sort keys %command)
{
	my $output = "$ENV{TESTDATADIR}/pooled_$name.log";
	my $worker = IPC::Run::start([ @env, @{ $command{$name} } ], '<', '/dev/null', '>', $output, '2>&1');

	pooled("select ujobs.enqueue('charge', '{\"order\": " . ++$order . "}')") foreach 1 .. 12;
	ok(eval { wait_until_sql($node, "select count(*) = 12 from ujobs.jobs where name = 'charge' and state = 'done' and result ->> 'worker' = '$name'"); },
		"the worker in $name does its jobs") or diag slurp_file($output);
	$worker->signal('TERM');
	ok($worker->finish, 'and leaves when it is told to') or diag slurp_file($output);
}

is($direct->('select string_agg(rule || detail, chr(10)) from ujobs.check()'), '', 'the store is healthy');
$pooler->signal('TERM');
eval { $pooler->finish; };
undef $pooler;
$node->stop;
done_testing();
