# The module of Redis against a real server: fields, fates, claims, restarts, TLS.
use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Utils;
use SinkTest;
use Test::More;
use UjobsTest;

my $redis = redis_start('main', conf => "enable-debug-command yes\n");
my @one = ("url=$redis->{url}/1", 'stream=s', 'home:00000000-0000-4000-9000-00000000000a');
my @two = ("url=$redis->{url}/1", 'stream=s', 'home:00000000-0000-4000-9000-00000000000b');
my $cli = sub { return redis_cli($redis, '-n', 1, @_); };

# The times of a stream's entries, which no test knows.
sub timeless
{
	my ($text) = @_;

	$text =~ s/\b\d{13}-\d+\b/ENTRY/g;
	return $text;
}

# ---- what is published ----

is_deeply([ ask('redis', \@one, 'connect', 'header traceparent 00-ab', 'message m1 orders k1 {"a": 1}', 'message m2 orders - {}',
		'header traceparent 00-cd', 'job m3 mail {"name": "x"}', 'publish') ],
	[ ('ok') x 6, 'm1 delivered 0', 'm2 delivered 0', 'm3 delivered 0', 'ok' ], 'published');
is(timeless($cli->(qw(xrange s - +))), join("\n", qw(ENTRY id m1 topic orders key k1 header:traceparent 00-ab payload), '{"a": 1}',
		qw(ENTRY id m2 topic orders payload {})), 'fields of the outbox');
is(timeless($cli->(qw(xrange s:mail - +))), join("\n", qw(ENTRY id m3 header:traceparent 00-cd payload), '{"name": "x"}'),
	'fields of a job');
ask('redis', [ "url=$redis->{url}/1" ], 'connect', 'message m4 topics - 1', 'job m5 mail 1', 'publish');
is($cli->(qw(exists topics ujobs:mail)), 2, 'without a stream the topic is the key');

# ---- what is taken ----

is_deeply([ ask('redis', \@one, 'connect', 'subscribe mail', 'take 10 1000', 'done', 'take 10 100') ],
	[ 'ok', 'ok', 'm3 ours {"name": "x"}', 'ok', 'ok', 'ok' ], 'taken once');
is($cli->(qw(xlen s:mail)), 0, 'nothing stays in the stream');
like($cli->(qw(xpending s:mail ujobs)), qr/^0\s*$/, 'nor with the group');
is($cli->(qw(get s:claim:m3)), '00000000-0000-4000-9000-00000000000a', 'but the claim');
cmp_ok($cli->(qw(ttl s:claim:m3)), '>', 86000, 'for a day');

$cli->(qw(xadd s:mail * payload), '{"from": "elsewhere"}');
$cli->(qw(xadd s:mail * other field));
my @foreign = ask('redis', \@one, 'connect', 'subscribe mail', 'take 10 1000', 'done');
like($foreign[2], qr/^s:mail\/\d+-\d+ ours \{"from": "elsewhere"\}$/, 'an entry of another kind is called after its place');
like($foreign[3], qr/^s:mail\/\d+-\d+ ours$/, 'even one without a payload');

# ---- one message, one home ----

ask('redis', \@one, 'connect', 'job twice mail 1', 'job other mail 2', 'job twice mail 1', 'publish');
my $first = ask_start('redis', \@one);
ask_more($first, $_) for 'connect', 'subscribe mail';
is((ask_more($first, 'take 2 1000'))[0], 'twice ours 1', 'the first home claims');
is_deeply([ ask('redis', \@two, 'connect', 'subscribe mail', 'take 10 1000', 'leave') ],
	[ 'ok', 'ok', 'twice theirs 1', 'ok', 'ok' ], 'a repetition is not the second one\'s');
is(scalar(() = $cli->(qw(xpending s:mail ujobs - + 10)) =~ /00000000000a/g), 3, 'it is handed over to the first one');
ask_kill($first);
is_deeply([ ask('redis', \@one, 'connect', 'subscribe mail', 'take 10 1000', 'done', 'take 10 100') ],
	[ 'ok', 'ok', 'twice ours 1', 'other ours 2', 'twice ours 1', 'ok', 'ok', 'ok' ], 'which gets all of it when it is back');
is($cli->(qw(xlen s:mail)), 0, 'and ends it');

ask('redis', \@one, 'connect', 'job left mail 1', 'publish');
my $leaves = ask_start('redis', \@one);
ask_more($leaves, $_) for 'connect', 'subscribe mail', 'take 10 1000', 'leave';
my $again = wait_for('what was left', sub { my @said = ask_more($leaves, 'take 10 500'); return @said > 1 ? $said[0] : undef; });
is($again, 'left ours 1', 'what was left comes again');
ask_more($leaves, 'done');

# Somebody deletes the group, the stream, everything.
$cli->(qw(xgroup destroy s:mail ujobs));
is((ask_more($leaves, 'take 10 100'))[-1] =~ s/\d+//r, 'ok  ', 'a lost group is no error');
$cli->('flushall');
ask_more($leaves, 'take 10 100');
ask('redis', \@one, 'connect', 'job new mail 1', 'publish');
like((ask_more($leaves, 'take 10 1000'))[0], qr/^new ours/, 'it is made again');
ask_more($leaves, 'done');
ask_kill($leaves);

# ---- fates ----

$cli->(qw(set wrong text));
is_deeply([ ask('redis', [ "url=$redis->{url}/1" ], 'connect', 'message w1 wrong - 1', 'message w2 right - 1', 'publish') ],
	[ ('ok') x 3, 'w1 refused 0 the key of this stream holds something else in redis: '
		  . 'WRONGTYPE Operation against a key holding the wrong kind of value', 'w2 delivered 0', 'ok' ], 'a key of another type');

redis_cli($redis, qw(config set proto-max-bulk-len 1048576));
my @long = ask('redis', \@one, 'connect', 'message l1 t - 1', 'message l2 t - ' . 'x' x 2_000_000, 'publish');
is($long[3], 'l1 delivered 0', 'before one that is too long');
is($long[4], 'l2 refused 0 the payload of 2000000 bytes is longer than proto-max-bulk-len of redis allows', 'which is refused');
redis_cli($redis, qw(config set proto-max-bulk-len 512mb));

for (
	[ 'full', sub { redis_cli($redis, qw(config set maxmemory), $_[0] ? 1 : 0) }, qr/OOM/ ],
	[ 'a replica', sub { redis_cli($redis, 'replicaof', $_[0] ? ('127.0.0.1', 1) : qw(no one)) }, qr/READONLY/ ],
	[ 'without replicas', sub { redis_cli($redis, qw(config set min-replicas-to-write), $_[0] ? 1 : 0) }, qr/NOREPLICAS/ ])
{
	my ($what, $set, $reason) = @$_;
	$set->(1);
	my @said = ask('redis', \@one, 'connect', 'message b1 t - 1', 'publish');
	$set->(0);
	is($said[2], 'b1 broken 0', "$what: no fault of the message");
	like($said[3], qr/^error redis refuses for now: $reason/, "$what: the reason");
}

redis_cli($redis, qw(acl setuser limited on >secret ~allowed* +@all));
my @limited = ("url=redis://limited\@127.0.0.1:$redis->{port}/1", 'secret:password=secret');
my @no_right = ask('redis', \@limited, 'connect', 'message r1 forbidden - 1', 'message r2 allowed - 1', 'publish');
like($no_right[3], qr/^r1 failed 0 redis refuses it: NOPERM/, 'no right to a key');
is($no_right[4], 'r2 delivered 0', 'but to another one');
like((ask('redis', [ @limited[ 0, 0 ], 'secret:password=wrong' ], 'connect'))[0], qr/^error .*WRONGPASS/, 'a wrong password');

# ---- a server that is not there, or does not answer ----

like((ask('redis', [ 'url=redis://127.0.0.1:1' ], 'connect'))[0], qr/^error could not connect to "127.0.0.1:1": Connection refused/,
	'nobody there');
like((ask('redis', [ 'url=redis://no.such.invalid' ], 'connect'))[0], qr/^error (host "no.such.invalid" not found|no name server)/,
	'no such host');
my $waits = ask_start('redis', [ @one, 'timeout:700' ]);
ask_more($waits, 'connect');
kill 'STOP', $redis->{pid};
ask_more($waits, 'message h1 t - 1');
my @hung = ask_more($waits, 'publish');
my @none = ask_more($waits, 'connect');
kill 'CONT', $redis->{pid};
is($hung[0], 'h1 broken 0 ', 'no answer: unknown');
like($hung[1], qr/^error (7|8|9|1\d)\d\d no answer from "127.0.0.1:\d+" in time/, 'after its time');
like($none[0], qr/^error \d+ no answer/, 'nor to a new connection');
ask_more($waits, $_) for 'connect', 'subscribe mail', 'stop 100';
like((ask_more($waits, 'take 1 30000'))[-1], qr/^error [1-9]\d\d stopped/, 'a stop ends a wait');
ask_kill($waits);

# ---- two homes, each message published twice, while everything dies ----

my $count = 3000;
my %file = (a => "$ENV{TESTDATADIR}/redis_inbox_a", b => "$ENV{TESTDATADIR}/redis_inbox_b");

sub start_taker
{
	my ($who) = @_;
	my $taker = ask_start('redis', $who eq 'a' ? \@one : \@two);

	$taker->{in} .= "connect\nsubscribe many\ncollect $file{$who} 50 1000\n";
	ask_look($taker);
	return $taker;
}

# Publishes the numbers from one on; after an error some of them again.
sub publish_all
{
	my ($first, $end, $meanwhile) = @_;

	while ($first < $end)
	{
		my ($sent) = (ask('redis', \@one, 'connect', "many $first " . ($end - $first) . ' 100 50 job:many'))[1] =~ /^(\d+) in/;
		$first += $sent // 0;
		redis_again($redis) unless kill 0, $redis->{pid};
	}
	return;
}

sub lines_of
{
	my ($file) = @_;
	return -e $file ? split(/\n/, slurp_file($file)) : ();
}

redis_cli($redis, 'flushall');
my %taker = map { $_ => start_taker($_) } qw(a b);
for my $round (0 .. 2)
{
	publish_all($round * $count / 3, ($round + 1) * $count / 3);
	publish_all($round * $count / 3, ($round + 1) * $count / 3);
	ask_look($_) for values %taker;
	if ($round < 2)
	{
		redis_kill($redis);
		redis_again($redis);
	}
	# After an error, or a kill, it begins anew.
	for my $who (sort keys %taker)
	{
		ask_kill($taker{$who});
		$taker{$who} = start_taker($who);
	}
}
wait_for('an empty stream', sub {
	for my $who (sort keys %taker)
	{
		ask_look($taker{$who});
		next unless $taker{$who}{out} =~ /^error|in \d+ ms/m;
		ask_kill($taker{$who});
		$taker{$who} = start_taker($who);
	}
	return $cli->(qw(xlen s:many)) eq '0';
});
ask_kill($_) for values %taker;
my %a = map { $_ => 1 } lines_of($file{a});
my %b = map { $_ => 1 } lines_of($file{b});
my %all = (%a, %b);
note(scalar(keys %a) . ' and ' . scalar(keys %b));
is(scalar(keys %all), $count, 'every message arrived');
is(scalar(grep { $b{$_} } keys %a), 0, 'none of them in both homes');
ok(%a && %b, 'both had some');

# ---- TLS ----

my $tls = certificates('redis');
my $safe = redis_start('tls', tls => $tls, conf => "requirepass secret\n");
my @files = ("tls.ca=$tls/ca.pem", "tls.cert=$tls/client.pem", "tls.key=$tls/client.key");
my @access = ('secret:password=secret');

my @safe = ask('redis', [ "url=$safe->{url}", 'stream=s', @files, @access ], 'examine', 'connect', 'message t1 t - {}', 'job t2 q {}',
	'publish', 'subscribe q', 'take 1 1000', 'done', 'many 0 2000 100 5000 t');
is_deeply([ @safe[ 0 .. 9 ] ], [ ('ok') x 4, 't1 delivered 0', 't2 delivered 0', 'ok', 'ok', 't2 ours {}', 'ok' ], 'with TLS');
like($safe[11], qr/^2000 in/, 'and many');
for (
	[ 'no certificate of ours', [ "tls.ca=$tls/ca.pem" ], qr/certificate required|closed by|reset by/ ],
	[ 'another authority', [ "tls.ca=$tls/other.pem", @files[ 1, 2 ] ], qr/self-signed certificate|unable to get local issuer/ ],
	[ 'no authority', [ @files[ 1, 2 ] ], qr/self-signed certificate|unable to get local issuer/ ],
	[ 'no such file', [ "tls.ca=$tls/none.pem" ], qr/could not read certificates of option "tls.ca"/ ])
{
	my ($what, $with, $reason) = @$_;
	like((ask('redis', [ "url=$safe->{url}", @$with, @access ], 'connect'))[0], qr/^error .*$reason/, "TLS: $what");
}
like((ask('redis', [ "url=rediss://localhost:$safe->{port}", @files, @access ], 'connect'))[0], qr/^ok/, 'TLS: a name');
like((ask('redis', [ "url=$safe->{url}", @files ], 'connect'))[0], qr/^error .*NOAUTH/, 'TLS: no password');
redis_cli($safe, '-a', 'secret', qw(config set tls-cert-file), "$tls/wrong.pem", 'tls-key-file', "$tls/wrong.key");
like((ask('redis', [ "url=$safe->{url}", @files, @access ], 'connect'))[0], qr/^error .*IP address mismatch/, 'TLS: a certificate of another host');
like((ask('redis', [ "url=rediss://localhost:$safe->{port}", @files, @access ], 'connect'))[0], qr/^error .*hostname mismatch/i,
	'TLS: of another name');
like((ask('redis', [ "url=redis://127.0.0.1:$safe->{port}" ], 'connect'))[0], qr/^error/, 'plain where TLS is expected');

# ---- options ----

for (
	[ [], qr/"url" is missing/ ],
	[ [ 'url=http://x' ], qr/must begin with redis/ ],
	[ [ 'url=redis://:pw@host' ], qr/belongs to set_sink_secret/ ],
	[ [ 'url=redis://user:pw@host' ], qr/belongs to set_sink_secret/ ],
	[ [ 'url=redis://' ], qr/no valid host/ ],
	[ [ 'url=redis://host:99999' ], qr/no valid host/ ],
	[ [ 'url=redis://[::1' ], qr/no valid host/ ],
	[ [ 'url=redis://host/x' ], qr/a number/ ],
	[ [ 'url=redis://host/1?a=b' ], qr/a number/ ],
	[ [ 'url=redis://host', 'tls.ca=/x' ], qr/must begin with rediss/ ],
	[ [ 'url=rediss://host', 'tls.cert=/x' ], qr/belong together/ ],
	[ [ 'url=redis://host', 'claimAge=soon' ], qr/not a span of time/ ],
	[ [ 'url=redis://host', 'claimAge=10ms' ], qr/one second or more/ ],
	[ [ 'url=redis://host', 'stream=' ], qr/is empty/ ])
{
	my ($options, $reason) = @$_;
	like((ask('redis', $options, 'examine'))[0], qr/^error .*$reason/, "refused: @$options");
}
is((ask('redis', [ 'url=redis://[::1]:7000/15', 'claimAge=2 h', 'stream=a' ], 'examine'))[0], 'ok', 'good options');

done_testing();
