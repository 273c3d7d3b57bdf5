# The relay: what is committed is delivered, in order per key, again and with
# the same id when anybody dies in between; and nobody waits for it.
use strict;
use warnings;

use IO::Socket::INET;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use SinkTest;
use UjobsTest;

my $redis = redis_start('relay');
my $node = ujobs_cluster('relay', conf => "ujobs.poll_interval = '1s'\nrestart_after_crash = on\n");
my $sql = sub { return $node->safe_psql('postgres', $_[0]); };

# A session that stays: $say->(SQL) returns when it is done.
sub session
{
	my ($in, $out) = ('', '');
	my $run = IPC::Run::start([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=0', '-d', $node->connstr('postgres') ],
		'<', \$in, '>', \$out, '2>&1', IPC::Run::timeout($UjobsTest::patience));

	return {
		run => $run,
		say => sub {
			$out = '';
			$in .= "$_[0]\n\\echo said\n";
			$run->pump until $out =~ /^said$/m;
		}
	};
}

# Entries of a stream: hashes of their fields.
sub entries
{
	my ($stream) = @_;
	my @lines = split /\n/, redis_cli($redis, 'xrange', $stream, '-', '+');
	my @found;

	while (@lines)
	{
		my $line = shift @lines;

		if ($line =~ /^\d+-\d+$/) { push @found, {}; }
		else { $found[-1]{$line} = shift @lines; }
	}
	return @found;
}

sub payloads { return join(' ', map { $_->{payload} } entries($_[0])); }

sub all_delivered
{
	return wait_until_sql($node, q{select not exists (select from ujobs.outbox where state in ('pending', 'publishing'))});
}

sub relay_pid
{
	wait_until_sql($node, q{select exists (select from ujobs.workers where kind = 'relay' and pid is not null)});
	return $sql->(q{select pid from ujobs.workers where kind = 'relay'});
}

# ---- only what is committed, and soon ----

is($sql->(q{select count(*) from ujobs.workers where kind = 'relay'}), '0', 'no sink, no relay');
$sql->(qq{select ujobs.define_sink('r', 'redis', '{"url": "$redis->{url}"}')});
ok(relay_pid(), 'a sink brings a relay');
is($sql->(q{select backend_type from pg_stat_activity where pid = (select pid from ujobs.workers where kind = 'relay')}),
	'ujobs relay', 'which has a name');

my $early = session();
$early->{say}->(q{begin; select ujobs.publish('r', 'late', '1', key => 'k');});
$sql->(q{begin; select ujobs.publish('r', 'late', '0'); rollback});
$sql->(q{select ujobs.publish('r', 'late', '2', key => 'k')});
wait_for('the later one', sub { payloads('late') eq '2' });
$early->{say}->('commit;');
wait_for('the earlier one', sub { payloads('late') eq '2 1' });
$sql->(qq{select ujobs.publish('r', 'late', '3', key => 'k'); select ujobs.publish('r', 'late', '4', key => 'k')});
all_delivered();
is(payloads('late'), '2 1 3 4', 'a late committer is delivered; what follows keeps its order');
is($sql->(q{select count(*) from ujobs.outbox where state = 'published'}), '4', 'rolled back is never');

# ---- order per key ----

$sql->(q{select ujobs.publish('r', 'order', to_jsonb(i), key => 'key' || i % 7) from generate_series(1, 3000) i});
all_delivered();
my %last;
my $disorder = 0;
for my $entry (entries('order'))
{
	my $key = $entry->{key};

	$disorder++ if defined $last{$key} && $last{$key} >= $entry->{payload};
	$last{$key} = $entry->{payload};
}
is(redis_cli($redis, 'xlen', 'order'), '3000', 'many of few keys');
is($disorder, 0, 'each key in its order');

# ---- refused for good ----

redis_cli($redis, 'set', 'bad', 'no stream');
$sql->(<<'SQL');
select ujobs.publish('r', 'bad', '1', key => 'a');
select ujobs.publish('r', 'good', '2', key => 'a');
select ujobs.publish('r', 'good', '3', key => 'b');
select ujobs.publish('r', 'bad', '4', key => 'c');
select ujobs.publish('r', 'good', '5', key => 'c');
SQL
wait_until_sql_is($node, q{select string_agg(state, ' ' order by id) from ujobs.outbox where topic in ('good', 'bad')},
	'parked pending published parked pending');
is(payloads('good'), '3', 'a parked message holds back its key alone');
like($sql->(q{select last_error ->> 'message' from ujobs.outbox where state = 'parked' order by id limit 1}), qr/WRONGTYPE/,
	'and says why');
$sql->(q{select ujobs.skip_outbox(id) from ujobs.outbox where state = 'parked' and payload = '4'});
wait_for('the one behind it', sub { payloads('good') eq '3 5' });
redis_cli($redis, 'del', 'bad');
$sql->(q{select ujobs.retry_outbox(id) from ujobs.outbox where state = 'parked' and payload = '1'});
all_delivered();
is(payloads('bad') . ' ' . payloads('good'), '1 3 5 2', 'retry_outbox and skip_outbox let the others go on');

# ---- between publish and record ----

sub hold_and
{
	my ($topic, $kill, $stays) = @_;
	my $holder = session();

	$holder->{say}->('begin; lock table ujobs_internal.outbox_published in share mode;');
	$sql->("select ujobs.publish('r', '$topic', to_jsonb(i), key => 'k' || i) from generate_series(1, 5) i");
	wait_for('all of them', sub { redis_cli($redis, 'xlen', $topic) >= 5 });
	$kill->(relay_pid());
	$holder->{say}->('commit;') if $stays;
	$holder->{run}->kill_kill if !$stays;
	wait_until_sql($node, 'select true');
	all_delivered();
	my %ids;
	$ids{ $_->{id} }++ for entries($topic);
	is(join(' ', sort values %ids), '2 2 2 2 2', "$topic: all again, with the same ids");
	return;
}

hold_and('terminated', sub { $sql->("select pg_terminate_backend($_[0])"); }, 1);
hold_and('killed', sub { kill 'KILL', $_[0]; }, 0);
ok(relay_pid(), 'there is a relay again');

# ---- a system that is down ----

redis_kill($redis);
my $begin = time;
$node->safe_psql('postgres', join('', map { "select ujobs.publish('r', 'down', '$_', key => 'k$_');\n" } 1 .. 200));
cmp_ok(time - $begin, '<', 10, 'nobody who publishes waits for it');
wait_until_sql($node, q{select last_error is not null from ujobs.sinks where name = 'r'});
is($sql->(q{select sum(attempts) from ujobs.outbox where topic = 'down'}), '0', 'no message is at fault');
redis_again($redis);
all_delivered();
is(redis_cli($redis, 'xlen', 'down'), '200', 'all of them arrive');
wait_until_sql($node, q{select last_error is null from ujobs.sinks where name = 'r'});
pass('and the sink is well');

# ---- killed in the middle ----

for my $round (1 .. 3)
{
	$sql->("select ujobs.publish('r', 'middle', to_jsonb(i), key => 'k' || i % 500) from generate_series(1, 2000) i");
	wait_for('some', sub { redis_cli($redis, 'xlen', 'middle') > 2000 * ($round - 1) });
	redis_kill($redis);
	redis_again($redis);
}
all_delivered();
my %ids;
$ids{ $_->{id} }++ for entries('middle');
is(scalar keys %ids, 6000, 'each message arrives, under one id');
is($sql->(q{select count(*) from ujobs.outbox where state = 'published' and topic = 'middle'}), '6000', 'and is recorded once');

# ---- a system that hangs ----

my $deaf = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) or die "listen: $!";
my $port = $deaf->sockport;
$sql->(qq{select ujobs.define_sink('deaf', 'redis', '{"url": "redis://127.0.0.1:$port", "timeout": "60s"}')});
$sql->(q{select ujobs.publish('deaf', 'x', '1')});
$sql->(q{select ujobs.publish('r', 'beside', '1')});
wait_for('the other sink', sub { redis_cli($redis, 'xlen', 'beside') == 1 });
pass('holds up no other sink');
$begin = time;
$node->stop('fast');
cmp_ok(time - $begin, '<', 20, 'and no stop of the server');
$node->start;
relay_pid();
$begin = time;
$sql->('drop extension ujobs cascade');
cmp_ok(time - $begin, '<', 20, 'nor of the extension');
$sql->('create extension ujobs');
wait_until_engine($node);

# ---- the relay leaves ----

$sql->(qq{select ujobs.define_sink('r', 'redis', '{"url": "$redis->{url}"}')});
relay_pid();
$sql->(q{select ujobs.drop_sink('r')});
wait_until_sql($node, q{select not exists (select from ujobs.workers where kind = 'relay')});
pass('no sink, no relay');

is($sql->(q{select count(*) from ujobs.check()}), '0', 'the store is healthy');
$node->stop;
done_testing();
