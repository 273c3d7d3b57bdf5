# Two servers share a queue through a broker, while relays, brokers and servers
# are killed: each job runs in exactly one of them, once by their tables.
#
# UJOBS_TEST_SHARED_JOBS=100000 makes it long; UJOBS_TEST_SEED repeats a run.
use strict;
use warnings;

use IO::Socket::INET;
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);
use SinkTest;
use UjobsTest;

my $jobs = $ENV{UJOBS_TEST_SHARED_JOBS} // 5000;
my $blows = $ENV{UJOBS_TEST_SHARED_BLOWS} // ($jobs > 5000 ? 60 : 4);
my $seed = $ENV{UJOBS_TEST_SEED} // int(time);
my $batch = $jobs > 5000 ? 2500 : 250;

srand $seed;
note "UJOBS_TEST_SEED=$seed";
$UjobsTest::patience = 60 + $jobs / 100 if $UjobsTest::patience < 60 + $jobs / 100;

# ---- brokers: url, kind, and how to kill one and start it again ----

sub redis_broker
{
	my $redis = redis_start('shared');

	return { kind => 'redis', url => $redis->{url}, kill => sub { redis_kill($redis); }, again => sub { redis_again($redis); } };
}

my $nats_pid;

sub nats_again
{
	my ($place, $port) = @_;

	$nats_pid = fork() // die "fork: $!\n";
	if ($nats_pid == 0)
	{
		exec('nats-server', '-js', '-a', '127.0.0.1', '-p', $port, '-sd', "$place/store", '-l', "$place/log") or POSIX::_exit(1);
	}
	wait_for('nats-server', sub { return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port); });
	return;
}

sub nats_kill
{
	kill 'KILL', $nats_pid;
	waitpid $nats_pid, 0;
	undef $nats_pid;
	return;
}

END
{
	my $status = $?;
	nats_kill() if $nats_pid;
	$? = $status;
}

sub nats_broker
{
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	my $place = "$ENV{TESTDATADIR}/nats_shared";

	mkdir $place or die "$place: $!\n";
	nats_again($place, $port);
	return { kind => 'nats', url => "nats://127.0.0.1:$port", kill => \&nats_kill, again => sub { nats_again($place, $port); } };
}

# ---- the servers ----

sub server
{
	my ($name, $broker) = @_;
	my $node = ujobs_cluster($name, conf => "ujobs.poll_interval = '1s'\nrestart_after_crash = on\nfsync = on\n");

	$node->safe_psql('postgres', <<"SQL");
create table ran (run_id uuid, n int);
create function count_it(input jsonb) returns jsonb language sql as
	\$\$ insert into ran values ((ujobs.current_job() ->> 'runId')::uuid, (input ->> 'n')::int) returning null::jsonb \$\$;
select ujobs.define_job('count', 'public.count_it', '{n}', retry => '{"attempts": 100}');
select ujobs.define_sink('broker', '$broker->{kind}', '{"url": "$broker->{url}"}');
select ujobs.consume_queue('shared', 'broker');
select ujobs.set_queue_key('shared', repeat('5e', 32));
SQL
	return $node;
}

# Whatever a server that is down or crashes says is no answer.
sub try_sql
{
	my ($node, $query) = @_;
	my ($out, $err) = ('', '');
	my $status = $node->psql('postgres', $query, stdout => \$out, stderr => \$err);

	return defined $status && $status == 0 ? $out : undef;
}

# Of each kind one before any comes again.
my @kinds;

sub blow
{
	my ($broker, @nodes) = @_;
	my $node = $nodes[ int rand @nodes ];

	@kinds = (0 .. 3) unless @kinds;
	my $kind = splice @kinds, int rand @kinds, 1;

	if ($kind == 0)
	{
		try_sql($node, q{select pg_terminate_backend(pid) from ujobs.workers where kind = 'relay' and pid is not null});
		return 'relay terminated';
	}
	if ($kind == 1)
	{
		my $pid = try_sql($node, q{select pid from ujobs.workers where kind = 'relay' and pid is not null});

		kill 'KILL', $pid if $pid;
		return 'relay killed';
	}
	if ($kind == 2)
	{
		$broker->{kill}->();
		$broker->{again}->();
		return 'broker killed';
	}
	$node->stop('immediate');
	$node->start;
	return 'server killed';
}

# One call after another; a batch whose outcome is not known is looked for.
sub enqueue_batch
{
	my ($node, $from) = @_;
	my $to = $from + $batch - 1;

	wait_for("the jobs from $from", sub {
		return 1 if (try_sql($node, "select exists (select from sent where n = $from)") // '') eq 't';
		try_sql($node, <<"SQL");
begin;
insert into sent select (j.input ->> 'n')::int, e.run_id
  from (select array_agg(jsonb_build_object('n', i) order by i) as inputs from generate_series($from, $to) i) a
 cross join lateral rows from (ujobs.enqueue_many('count', a.inputs, queue => 'shared'), unnest(a.inputs))
       as e (id, run_id, deduped, input)
 cross join lateral (select e.input) j;
commit;
SQL
		return 0;
	});
	return;
}

sub ran
{
	my ($node) = @_;

	return try_sql($node, 'select count(*) from ran') // 0;
}

sub share
{
	my ($broker) = @_;
	my $kind = $broker->{kind};
	my $a = server("${kind}_a", $broker);
	my $b = server("${kind}_b", $broker);
	my $struck = 0;
	my %told;

	$a->safe_psql('postgres', q{create table sent (n int, run_id uuid); select ujobs.set_queue_driver('shared', '} . $kind . q{', 'broker')});
	for (my $from = 1; $from <= $jobs; $from += $batch)
	{
		enqueue_batch($a, $from);
		next if $struck >= $blows * $from / $jobs;
		$told{ blow($broker, $a, $b) }++;
		$struck++;
	}
	wait_for('all to have run', sub { return ran($a) + ran($b) >= $jobs; });
	note join ', ', map { "$_: $told{$_}" } sort keys %told;
	my ($at_a, $at_b) = map { $_->safe_psql('postgres', q{select coalesce(string_agg(run_id::text, E'\n'), '') from ran}) } $a, $b;
	my %times;
	my @sent = split /\n/, $a->safe_psql('postgres', 'select run_id from sent');

	$times{$_}++ for split(/\n/, $at_a), split(/\n/, $at_b);
	is(scalar(grep { ($times{$_} // 0) != 1 } @sent), 0, "$kind: each of $jobs jobs ran once");
	is(scalar keys %times, scalar @sent, "$kind: and nothing else did");
	cmp_ok(ran($a), '>', 0, "$kind: some here");
	cmp_ok(ran($b), '>', 0, "$kind: some there");
	for my $node ($a, $b)
	{
		is($node->safe_psql('postgres', 'select count(*) from ujobs.check()'), '0', "$kind: a healthy store");
		$node->stop;
	}
	return;
}

share(redis_broker());
share(nats_broker());
done_testing();
