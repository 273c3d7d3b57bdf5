# Redis and HTTP through SQL: a message that follows its row, a queue that two databases share.
use strict;
use warnings;

use JSON::PP;
use SinkTest;
use Test::More;
use UjobsTest;

my $redis = redis_start('bridge');
my $receiver = receiver_start('bridge');
my $node = ujobs_cluster('bridge', conf => "fsync = off\n");
my $sql = sub { return $node->safe_psql('postgres', @_); };

# ---- HTTP ----

$sql->(qq{select ujobs.define_sink('hook', 'http', '{"url": "$receiver->{url}", "timeout": "2s", "attempts": 2}')});
$sql->(q{select ujobs.set_sink_secret('hook', '{"headers": {"X-Secret": "s"}}')});
$sql->(q{begin; select ujobs.publish('hook', 'gone', '{}'); rollback});
my $first = $sql->(q{set ujobs.traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
	select ujobs.publish('hook', 'paid', '{"order": 1}', key => 'k', headers => '{"x-source": "shop"}')});
ok(wait_until_sql($node, "select state = 'parked' from ujobs.outbox where id = $first"), 'an address of this host is refused');
like($sql->("select last_error ->> 'message' from ujobs.outbox where id = $first"), qr/loopback.*ujobs\.http_allow_private/, 'with the setting named');
is(scalar(() = receiver_log($receiver)), 0, 'and not spoken to');

$node->append_conf('postgresql.conf', "ujobs.http_allow_private = on\n");
$node->reload;
wait_until_sql($node, q{select current_setting('ujobs.http_allow_private') = 'on'});
$sql->("select ujobs.retry_outbox($first)");
ok(eval { wait_until_sql($node, "select state = 'published' from ujobs.outbox where id = $first") }, 'allowed, it arrives')
  or diag($@ . $sql->('select * from ujobs.sinks'));
my ($request) = map { decode_json($_) } receiver_log($receiver);
is($request->{body}, '{"order": 1}', 'its payload');
is($request->{headers}{'idempotency-key'}, $sql->("select message_id from ujobs.outbox where id = $first"), 'its id');
is(join(' ', @{ $request->{headers} }{qw(ujobs-topic ujobs-key x-source x-secret)}), 'paid k shop s', 'its headers');
is($request->{headers}{traceparent}, '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'its trace');

my $bad = $sql->(q{select ujobs.publish('hook', 'status-404', '{}')});
my $flaky = $sql->(q{select ujobs.publish('hook', 'flaky', '{}')});
wait_until_sql($node, "select state = 'parked' from ujobs.outbox where id = $bad");
is($sql->("select attempts, last_error ->> 'message' from ujobs.outbox where id = $bad") =~ s/\|/ /r, '1 status 404: this is what I think of it', '4xx parks');
ok(wait_until_sql($node, "select state = 'published' from ujobs.outbox where id = $flaky"), '5xx is tried again');
my %times;
$times{ $_->{headers}{'idempotency-key'} }++ for grep { $_->{headers}{'ujobs-topic'} eq 'flaky' } map { decode_json($_) } receiver_log($receiver);
is_deeply([ values %times ], [2], 'with the same id');

# ---- Redis ----

$sql->(qq{select ujobs.define_sink('stream', 'redis', '{"url": "$redis->{url}", "stream": "s", "check": true}')});
my $last = $sql->(q{select max(ujobs.publish('stream', 'orders', to_jsonb(n), key => (n % 10)::text)) from generate_series(1, 1000) n});
wait_until_sql($node, "select count(*) = 1000 from ujobs.outbox where sink = 'stream' and state = 'published'");
is(redis_cli($redis, qw(xlen s)), 1000, 'all messages are in the stream');
my %by_key;
for my $entry (split /^(?=\d+-\d+$)/m, redis_cli($redis, qw(xrange s - +)))
{
	push @{ $by_key{$1} }, $2 if $entry =~ /^key\n(\d)\n.*^payload\n(\d+)$/ms;
}
is_deeply([ map { join(',', @{ $by_key{$_} }) } 0 .. 9 ], [ map { my $key = $_; join(',', grep { $_ % 10 == $key } 1 .. 1000) } 0 .. 9 ],
	'those of a key in their order');

# A queue in two databases of one cluster.
for my $database ('other')
{
	$node->safe_psql('postgres', "create database $database");
	$node->safe_psql($database, 'create extension ujobs');
}
for my $database ('postgres', 'other')
{
	my $run = sub { return $node->safe_psql($database, @_); };
	$run->(qq{select ujobs.define_sink('jobs', 'redis', '{"url": "$redis->{url}", "stream": "q"}')});
	$run->(handler_sql('noted', 'begin return input; end', with => q{queue => 'mail'}));
	$run->(q{select ujobs.consume_queue('mail', 'jobs')});
}
$sql->(q{select ujobs.set_queue_driver('mail', 'redis', 'jobs')});
my $key = $sql->(q{select ujobs.queue_key('mail')});
like($key, qr/^[0-9a-f]{64}$/, 'the queue has a key');
$node->safe_psql('other', qq{select ujobs.set_queue_key('mail', '$key')});
$sql->(q{select count(ujobs.enqueue('noted', jsonb_build_object('n', n))) from generate_series(1, 2000) n});
my $counted = sub { return $node->safe_psql($_[0], q{select count(*) from ujobs.jobs where name = 'noted' and state = 'done'}); };
ok(eval { wait_for('all jobs', sub { $counted->('postgres') + $counted->('other') == 2000 }) }, 'each job is done in one of them')
  or diag($counted->('postgres') . ' and ' . $counted->('other') . ' ' . $sql->('select * from ujobs.sinks'));
note($counted->('postgres') . ' and ' . $counted->('other'));
my %seen;
for my $database ('postgres', 'other')
{
	$seen{$_}++ for split /\n/, $node->safe_psql($database, q{select input ->> 'n' from ujobs.jobs where name = 'noted'});
}
is(scalar(keys %seen), 2000, 'all of them');
is(scalar(grep { $_ != 1 } values %seen), 0, 'once');
wait_for('an empty stream', sub { redis_cli($redis, qw(xlen q:mail)) eq '0' });

# A message that was made by hand, or sent again under another id, becomes no job.
my $parked = sub {
	my ($id, $why) = @_;
	my $found = qq{select count(*) from ujobs.inbox where message_id = '$id' and state = 'parked'
		and error ->> 'sqlstate' = 'UJ030' and error ->> 'detail' like '$why'};

	return wait_for("message $id", sub { $sql->($found) + $node->safe_psql('other', $found) == 1 });
};
redis_cli($redis, qw(xadd q:mail * id forged-1 payload), '{"id": "forged-1", "name": "noted", "input": {"n": -1}}');
ok($parked->('forged-1', 'It is not signed.%'), 'a message without a signature is parked');
my $replayed = $sql->(q{select payload from ujobs.outbox where topic = 'mail' and state = 'published' limit 1});
redis_cli($redis, qw(xadd q:mail * id forged-2 payload), $replayed);
ok($parked->('forged-2', 'It was signed with the id%'), 'so is one that is sent again under another id');
redis_cli($redis, qw(xadd q:mail * id forged-3 payload), $replayed =~ s/"name": "noted"/"name": "other"/r);
ok($parked->('forged-3', 'Its signature was made with none%'), 'and one whose text was changed');
is($sql->(q{select count(*) from ujobs.jobs where name = 'noted' and (input ->> 'n')::int < 0}), '0', 'none ran');

# A role that may only publish.
$sql->(qq{create role forger login; grant execute on function ujobs.publish to forger;
	select ujobs.define_sink('plain', 'redis', '{"url": "$redis->{url}"}')});
foreach my $topic ('q:mail', 'q:any', 'ujobs:any')
{
	my (undef, undef, $said) = $node->psql('postgres', qq{\\set VERBOSITY sqlstate\nselect ujobs.publish('plain', '$topic', '{"name": "noted", "input": {"n": -2}}')},
		extra_params => [ '-U', 'forger' ], on_error_stop => 0);
	like($said, qr/42501/, "may not write to $topic");
}
$sql->(q{select ujobs.publish('plain', 'q', '{}'), ujobs.publish('plain', 'other:thing', '{}')});

# Its key changes while jobs are underway.
my $enqueue = sub { return $sql->(qq{select count(ujobs.enqueue('noted', jsonb_build_object('n', n))) from generate_series($_[0] + 1, $_[0] + 300) n}); };
my $new = $sql->(q{select ujobs.rotate_queue_key('mail', sign => false)});
$enqueue->(10000);
$node->safe_psql('other', qq{select ujobs.set_queue_key('mail', '$new', sign => false)});
$sql->(qq{select ujobs.set_queue_key('mail', '$new')});
$enqueue->(20000);
$node->safe_psql('other', qq{select ujobs.set_queue_key('mail', '$new')});
wait_for('all jobs', sub { $counted->('postgres') + $counted->('other') == 2600 });
$node->safe_psql($_, q{select ujobs.retire_queue_keys('mail')}) foreach 'postgres', 'other';
is($sql->(q{select ujobs.queue_key('mail')}), $new, 'the new key signs');
$enqueue->(30000);
wait_for('all jobs', sub { $counted->('postgres') + $counted->('other') == 2900 });
pass('nothing was lost');
wait_for('an empty stream', sub { redis_cli($redis, qw(xlen q:mail)) eq '0' });

# The server of the stream dies under messages that are being published.
$sql->(q{select count(ujobs.enqueue('noted', jsonb_build_object('n', n))) from generate_series(2001, 4000) n});
redis_kill($redis);
$sql->(q{select count(ujobs.enqueue('noted', jsonb_build_object('n', n))) from generate_series(4001, 5000) n});
redis_again($redis);
ok(eval { wait_for('all jobs', sub { $counted->('postgres') + $counted->('other') == 5900 }) }, 'all jobs are done after a crash of redis')
  or diag($counted->('postgres') . ' and ' . $counted->('other') . ' ' . $sql->('select * from ujobs.sinks'));
for my $database ('postgres', 'other')
{
	is($node->safe_psql($database, 'select count(*) from ujobs.check()'), 0, "$database: the store is sound");
}
$node->stop;

done_testing();
