# The whole way over NATS: publish, a queue that two servers share, a server that dies, secrets, refusals.
use strict;
use warnings;

use NatsTest;
use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $nats = nats_start('relay', conf => "authorization { user: app, password: right-word }\nmax_payload: 20000\n");
my @node = map { ujobs_cluster($_) } 'one', 'two';
for my $node (@node)
{
	$node->safe_psql('postgres', handler_sql('send', 'begin return input; end', with => "queue => 'mail'"));
	$node->safe_psql('postgres', qq(select ujobs.define_sink('bus', 'nats', '{"url": "$nats->{url}", "stream": "S", "subjects": "s.>"}')));
}
my $one = $node[0];

# ---- secrets ----

my $down = q(select state = 'down' and last_error like '%refused the user%' and last_error not like '%wrong-word%' from ujobs.sinks);
$one->safe_psql('postgres', q(select ujobs.set_sink_secret('bus', '{"user": "app", "password": "wrong-word"}')));
$one->safe_psql('postgres', q(select ujobs.publish('bus', 's.a', '{"n": 1}')));
wait_until_sql($one, $down);
pass('a wrong password shows, without itself');
my $tried = $one->safe_psql('postgres', q(select failed_at from ujobs.sinks));
wait_until_sql($one, qq(select failed_at > '$tried' and next_try_at > failed_at from ujobs.sinks));
pass('and the view follows each try');
$_->safe_psql('postgres', q(select ujobs.set_sink_secret('bus', '{"user": "app", "password": "right-word"}'))) for @node;
wait_until_sql($one, q(select state = 'published' and attempts = 0 from ujobs.outbox where topic = 's.a'));
pass('the message waited for the right one');
wait_until_sql($one, q(select state = 'up' and last_error is null and next_try_at is null from ujobs.sinks));
pass('and the sink is up again');

# ---- refusals ----

$one->safe_psql('postgres', q(select ujobs.publish('bus', 'no subject', '{}')));
$one->safe_psql('postgres', q(select ujobs.publish('bus', 's.large', to_jsonb(repeat('x', 30000)))));
wait_until_sql_is($one, q(select string_agg(substring(last_error::text from 'is no NATS subject|the server takes \d+'), ',' order by id)
	from ujobs.outbox where state = 'parked'), 'is no NATS subject,the server takes 20000');
pass('what NATS does not take is parked with the reason');

# ---- a queue on two servers, while the broker dies ----

$_->safe_psql('postgres', q(select ujobs.consume_queue('mail', 'bus'))) for @node;
$one->safe_psql('postgres', q(select ujobs.set_queue_driver('mail', 'nats', 'bus')));
my $key = $one->safe_psql('postgres', q(select ujobs.queue_key('mail')));
$_->safe_psql('postgres', qq(select ujobs.set_queue_key('mail', '$key'))) for @node;
my $done = q(select count(*) from ujobs.jobs where state = 'done');
sub enqueue_some
{
	my ($from, $to) = @_;

	$one->safe_psql('postgres', "select count(*) from ujobs.enqueue_many('send',
		(select array_agg(jsonb_build_object('n', n)) from generate_series($from, $to) n))");
	return;
}
enqueue_some(1, 1000);
wait_until_sql($one, "select ($done) > 0");
nats_kill($nats);
enqueue_some(1001, 2000);
pass('an enqueue does not wait for the broker');
nats_again($nats);
my @seen;
my $all = sub { return join "\n", map { $_->safe_psql('postgres', q(select input ->> 'n' from ujobs.jobs where state = 'done')) } @node; };
wait_until_sql($one, q(select not exists (select from ujobs.outbox where state <> 'published' and topic = 'mail')));
my $deadline = time + $UjobsTest::patience;
do { @seen = split /\n/, $all->(); } until @seen >= 2000 || time > $deadline;
is_deeply([ sort { $a <=> $b } grep { length } @seen ], [ 1 .. 2000 ], 'each job ran in one of the servers, once');

# ---- TLS that does not come about, and the exit of who tried it ----

my ($code, $out, $err) = $one->psql('postgres', qq(select ujobs.define_sink('tls', 'nats', '{"url": "$nats->{url}", "tls": {"ca": "/nowhere"}, "check": true}')));
like($err, qr/cannot be reached.*certificates/s, 'no authorities, no connection');
$one->safe_psql('postgres', qq(select ujobs.define_sink('tls', 'nats', '{"url": "$nats->{url}", "tls": {"ca": "/nowhere"}}'); select ujobs.publish('tls', 's.a', '{}')));
wait_until_sql($one, q(select state = 'down' from ujobs.sinks where name = 'tls'));

$_->stop for @node;
unlike(slurp_file($one->logfile), qr/terminated by signal/, 'neither the session nor the relay crashes when it ends');
nats_stop($nats);
done_testing();
