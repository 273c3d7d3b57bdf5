# The module of NATS against a real server: streams, fates, claims, restarts, users, TLS.
use strict;
use warnings;

use NatsTest;
use PostgreSQL::Test::Utils;
use SinkTest;
use Test::More;
use UjobsTest;

my $nats = nats_start('main', conf => "max_payload: 100000\n");
my @one = ("url=$nats->{url}", 'stream=S', 'home:00000000-0000-4000-9000-00000000000a');
my @two = ("url=$nats->{url}", 'stream=S', 'home:00000000-0000-4000-9000-00000000000b');

# The last thing that the module said.
sub last_of
{
	return (ask('nats', @_))[-1];
}

# ---- options and secrets ----

my $url = "url=$nats->{url}";
for my $case (
	[ [], qr/needs the option "url"/ ],
	[ ['url=127.0.0.1:4222'], qr/takes nats:\/\/host:port/ ],
	[ ['url=nats://me:pw@host:1'], qr/has a user in it/ ],
	[ ['url=nats://host:1,nats://host:99999'], qr/no such address/ ],
	[ ['url=nats://host:1,'], qr/takes nats:/ ],
	[ [ $url, 'stream=a.b' ], qr/"stream" takes a name/ ],
	[ [ $url, 'stream=S', 'subjects=a.>,b..c' ], qr/"b\.\.c" is no NATS subject/ ],
	[ [ $url, 'subjects=a.>' ], qr/needs the option "stream"/ ],
	[ [ $url, 'replicas=9' ], qr/1 to 5/ ],
	[ [ $url, 'claimAge=soon' ], qr/span of time/ ],
	[ [ $url, 'tls.ca=ca.pem' ], qr/absolute path/ ],
	[ [ $url, 'tls.key=/key' ], qr/needs option "tls.cert"/ ],
	[ [ $url, 'secret:user=me' ], qr/need each other/ ],
	[ [ $url, 'secret:token=x', 'secret:creds=y' ], qr/one of the secrets/ ],
	[ [ $url, 'secret:creds=y' ], qr/text of a \.creds file/ ],
	[ [ $url, 'secret:nkey=y' ], qr/a user's seed/ ])
{
	my ($arguments, $text) = @$case;
	like(last_of($arguments, 'examine'), qr/^error .*$text/, "refused: @$arguments");
}
is(last_of([ $url, 'stream=S', 'subjects=a.>, b.*.c', 'replicas=1', 'claimAge=1d', 'tls.ca=/ca' ], 'examine'), 'ok', 'good ones');

# ---- what is published ----

is_deeply([ ask('nats', \@one, 'connect', 'header traceparent 00-ab', "message m1 orders.new k%\t1 {\"a\": 1}", 'message m2 orders.new - {}',
		'job m3 my mail.ü {"name": "x"}' =~ s/my mail.ü/my_mail.*/r, 'publish') ],
	[ ('ok') x 5, 'm1 delivered 0', 'm2 delivered 0', 'm3 delivered 0', 'ok' ], 'published');
my ($headers, $text) = nats_message($nats, 'S', 1);
is_deeply([ $text, sort split /\r\n/, $headers ],
	[ '{"a": 1}', 'NATS/1.0', 'Nats-Expected-Stream: S', 'Nats-Msg-Id: m1', 'Ujobs-Key: k%25%091', 'traceparent: 00-ab' ],
	'headers and text of the outbox');
my $stream = nats_stream($nats, 'S');
is_deeply([ @{ $stream->{config} }{qw(subjects retention storage description)}, $stream->{state}{messages} ],
	[ ['orders.new'], 'limits', 'file', 'made by ujobs', 2 ], 'the stream was made');
$stream = nats_stream($nats, 'S_JOBS');
is_deeply([ @{ $stream->{config} }{qw(subjects retention storage)}, $stream->{state}{messages} ],
	[ ['S.jobs.>'], 'workqueue', 'file', 1 ], 'and one for jobs');
ask('nats', \@one, 'connect', 'message m1 orders.new - 1', 'message m4 orders.paid - 1', 'message m5 orders.new - 1', 'publish');
is_deeply(nats_stream($nats, 'S')->{config}{subjects}, [ 'orders.new', 'orders.paid' ], 'a new subject is added');
is(nats_stream($nats, 'S')->{state}{messages}, 4, 'a repetition is not stored');
ask('nats', [ $url, 'stream=T', 'subjects=t.>,u' ], 'connect', 'message n1 t.a.b - 1', 'publish');
is_deeply(nats_stream($nats, 'T')->{config}{subjects}, [ 't.>', 'u' ], 'the option names the subjects');

# ---- fates ----

nats_request($nats, '$JS.API.STREAM.CREATE.OTHER', '{"name":"OTHER","subjects":["other.>"],"max_msgs":2,"discard":"new"}');
sub fate_of
{
	my ($arguments, @message) = @_;
	return (ask('nats', $arguments, 'connect', @message, 'message good orders.new - 1', 'publish'))[ 2 + @message ];
}
like(fate_of(\@one, "message f1 $_ - 1"), qr/^f1 refused 0 ".*" is no NATS subject/, "no subject: $_")
  for ('a..b', '.a', 'a.', 'a.*', 'a.>', '$JS.API.INFO', 'a"b');
like(fate_of(\@one, 'message f2 S.claims.x - 1'), qr/^f2 refused .*keeps jobs and claims/, 'a claim cannot be forged');
like(fate_of(\@one, 'header Nats-Msg-Id x', 'message f3 orders.new - 1'), qr/^f3 refused .*reserved/, 'a header of JetStream\'s');
like(fate_of(\@one, 'header a:b x', 'message f4 orders.new - 1'), qr/^f4 refused .*does not take/, 'a bad name of a header');
like(fate_of(\@one, 'message f5 other.x - 1'), qr/^f5 failed .*belongs to another stream than "S"/, 'somebody else\'s subject');
like(fate_of([ $url, 'stream=OTHER' ], 'message f6 mine - 1'),
	qr/^f6 failed .*stream "OTHER" does not take subject "mine", and was not made by ujobs/, 'somebody else\'s stream is not changed');
like(fate_of([$url], 'message f7 nowhere - 1'), qr/^f7 failed .*no stream takes subject "nowhere"/, 'no stream');
like(fate_of([$url], 'message f8 other.x - 1'), qr/^f8 delivered/, 'a stream that takes it, whichever');
ask('nats', [$url], 'connect', 'message f9 other.x - 1', 'publish');
is((ask('nats', [$url], 'connect', 'message full other.x - 1', 'publish'))[-2], 'full broken 0 maximum messages exceeded (JetStream 10077)',
	'a full stream is not the message\'s fault');

# To the byte: the server counts headers too.
my $head = length "NATS/1.0\r\nNats-Msg-Id: l1\r\nNats-Expected-Stream: S\r\n\r\n";
is(fate_of(\@one, 'message l1 orders.new - ' . 'x' x (100_000 - $head)), 'l1 delivered 0', 'as large as the server takes');
is(fate_of(\@one, 'message l2 orders.new - ' . 'x' x (100_001 - $head)),
	'l2 refused 0 the message has 100001 bytes with its headers; the server takes 100000 (max_payload)', 'a byte more');

# ---- what is taken ----

my $queue = 'my_mail.*';
is_deeply([ ask('nats', \@one, 'connect', "subscribe $queue", 'take 10 1000', 'done', 'take 10 100') ],
	[ 'ok', 'ok', 'm3 ours {"name": "x"}', 'ok', 'ok', 'ok' ], 'taken once');
is(nats_stream($nats, 'S_JOBS')->{state}{messages}, 0, 'nothing stays behind');
is((nats_message($nats, 'S_CLAIMS', 1))[1], '00000000-0000-4000-9000-00000000000a', 'but the claim');
is(nats_stream($nats, 'S_CLAIMS')->{config}{max_age}, 86400 * 1e9, 'for a day');
nats_publish($nats, 'S.jobs.mail', '{"from": "elsewhere"}');
my @foreign = ask('nats', \@one, 'connect', 'subscribe mail', 'take 10 1000', 'done');
like($foreign[2], qr/^nats-\d+-\d+ ours \{"from": "elsewhere"\}$/, 'another program\'s message has an id too');

# ---- one message, one home ----

ask('nats', \@one, 'connect', 'job twice mail 1', 'job other mail 2', 'publish');
my $first = ask_start('nats', \@one);
ask_more($first, $_) for 'connect', 'subscribe mail';
is((ask_more($first, 'take 2 1000'))[0], 'twice ours 1', 'the first home claims');
ask_kill($first);

# What it did not acknowledge is published again, as after a lost confirmation outside the window of repetitions.
nats_publish($nats, 'S.jobs.mail', 'x') for 1 .. 3;
is(scalar(grep { / ours x/ } ask('nats', \@two, 'connect', 'subscribe mail', 'take 10 1000', 'done')), 3, 'the second one goes on');
nats_request($nats, '$JS.API.CONSUMER.DELETE.S_JOBS.mail');
is_deeply([ ask('nats', \@two, 'connect', 'subscribe mail', 'take 10 1000', 'leave') ],
	[ 'ok', 'ok', 'twice theirs 1', 'other theirs 2', 'ok', 'ok' ], 'but a repetition is not its own');
my $back = ask_start('nats', [ @one, 'timeout:1000' ]);
ask_more($back, $_) for 'connect', 'subscribe mail';
my @got;
wait_for('the first one to have them', sub { push @got, grep { /ours/ } ask_more($back, 'take 10 1000'); ask_more($back, 'done'); return @got >= 2; });
is_deeply([ sort @got ], [ 'other ours 2', 'twice ours 1' ], 'it is the first one\'s when it is back');
is(nats_stream($nats, 'S_JOBS')->{state}{messages}, 0, 'which ends it');

nats_request($nats, '$JS.API.CONSUMER.DELETE.S_JOBS.mail');
like((ask_more($back, 'take 10 300'))[-1], qr/^error \d+ (the server did not answer within 1000 ms about|the) consumer "mail" of stream "S_JOBS"/, 'a lost consumer shows');
is((ask_more($back, 'connect'))[-1] =~ s/ \d+//r, 'ok ', 'and is made again');
ask_more($back, 'subscribe mail');
ask('nats', \@one, 'connect', 'job new mail 1', 'publish');
like((ask_more($back, 'take 10 1000'))[0], qr/^new ours/, 'so that it goes on');
ask_more($back, 'done');

# ---- nothing stays in the process ----

my $tasks = sub { my @tasks = glob("/proc/$_[0]{run}{KIDS}[0]{PID}/task/*"); return scalar @tasks; };
cmp_ok($tasks->($back), '>', 1, 'libnats has threads');
ask_more($back, 'disconnect');
is($tasks->($back), 1, 'none of them stays');
ask_more($back, $_) for ('connect', 'disconnect') x 20;
is($tasks->($back), 1, 'however often');

# ---- a server that stops, stalls, and comes back ----

ask_more($back, 'connect');
ask_more($back, 'subscribe mail');
kill 'STOP', $nats->{pid};
ask_more($back, 'stop 200');
for my $call ('take 10 3000', 'connect')
{
	my ($took) = (ask_more($back, $call))[-1] =~ /^\w+ (\d+)/;
	cmp_ok($took, '<', 1500, "$call ends when the process wants to leave");
}
my $patient = ask_start('nats', [ @one, 'timeout:1000' ]);
like((ask_more($patient, 'connect'))[-1], qr/^error (\d+) (no NATS server|no answer|cannot connect)/, 'a stalled server is given up');
kill 'CONT', $nats->{pid};
ask_more($patient, 'connect');
ask_more($patient, 'subscribe mail');
kill 'STOP', $nats->{pid};
ask_more($patient, $_) for 'message s1 orders.new - 1', 'message s2 orders.new - 1';
my @stalled = ask_more($patient, 'publish');
like("@stalled", qr/^s1 broken 0 +s2 broken 0 +error 1\d{3} no answer within 1000 ms/, 'so is publishing to it');
like((ask_more($patient, 'take 10 300'))[-1], qr/^error \d+ the server did not answer within 1000 ms about/, 'and taking');
kill 'CONT', $nats->{pid};
nats_kill($nats);
like((ask_more($patient, 'take 10 300'))[-1], qr/^error \d+ the connection is lost/, 'a dead server shows at once');
like((ask_more($patient, 'connect'))[-1], qr/^error \d+ no NATS server can be reached at/, 'and cannot be reached');
nats_again($nats);
ask_kill($_) for $patient, $back;

# ---- thousands, two homes, and everybody dies in between ----

# A consumer that is there is used as it is: this one offers a message again after two seconds.
nats_request($nats, '$JS.API.CONSUMER.DURABLE.CREATE.S_JOBS.load', '{"stream_name":"S_JOBS","config":{"durable_name":"load",'
	  . '"filter_subject":"S.jobs.load","deliver_policy":"all","ack_policy":"explicit","ack_wait":2000000000,"max_deliver":-1}}');
my $total = 12_000;
my @file = map { "$ENV{TESTDATADIR}/081_$_.ids" } 'one', 'two';
append_to_file($_, '') for @file;
sub publish_all
{
	my ($sender, $sent) = (ask_start('nats', \@one), 0);

	while ($sent < $total)
	{
		ask_more($sender, 'connect');
		my ($more) = map { /^(\d+) in/ ? $1 : () } ask_more($sender, "many $sent " . ($total - $sent) . ' 500 100 job:load');
		$sent += $more // 0;
	}
	ask_kill($sender);
	return;
}

sub taken
{
	my %seen;
	$seen{$_}++ for map { split /\n/, slurp_file($_) } @_;
	return \%seen;
}

my $publisher = fork() // die "fork: $!\n";
if ($publisher == 0)
{
	eval { publish_all(); 1 } or warn $@;
	POSIX::_exit(0);
}
my @taker = (undef, undef);
my @home = (\@one, \@two);
my $turn = 0;
my $count = 0;

# Whoever died or said an error begins anew; how many are taken, some of them twice.
sub look_at_takers
{
	for my $i (0, 1)
	{
		my $said = $taker[$i] ? $taker[$i]{out} : 'error';
		next if $taker[$i] && $said !~ /^(error|ok) \d+ .*\n\z/m;
		ask_kill($taker[$i]) if $taker[$i];
		$taker[$i] = ask_start('nats', $home[$i]);
		$taker[$i]{in} .= "connect\nsubscribe load\ncollect $file[$i] 300 20000\n";
		$taker[$i]{out} = '';
	}
	ask_look($_) for @taker;
	$_->{out} =~ s/\A(ok \d+ \n){1,2}// for @taker;
	return ((-s $file[0]) + (-s $file[1])) / 37;    # a uuid and a newline
}

until ($count >= $total && keys %{ taken(@file) } == $total)
{
	$count = wait_for('more to be taken', sub { my $now = look_at_takers(); return $now > $count && $now; });
	next if $turn == 4 || $count <= $total * ($turn + 1) / 6;
	if ($turn++ % 2) { nats_kill($nats); nats_again($nats); }
	else { ask_kill($taker[ $turn > 2 ]); $taker[ $turn > 2 ] = undef; }
}
waitpid $publisher, 0;
is($turn, 4, 'two takers and the server died twice');
ask_kill($_) for @taker;
my ($ones, $twos) = map { taken($_) } @file;
is(scalar(grep { $twos->{$_} } keys %$ones), 0, 'no message has two homes');
is(keys(%$ones) + keys(%$twos), $total, 'none is lost');
cmp_ok(scalar(keys %$_), '>', 0, 'both took part') for $ones, $twos;

# ---- users ----

my $locked = nats_start('locked', conf => <<'CONF');
authorization {
	users = [
		{ user: me, password: secret-word }
		{ user: less, password: secret-word, permissions: { publish: { deny: "no.way" }, subscribe: ">" } }
		{ user: few, password: secret-word, permissions: { subscribe: "_INBOX.>", publish: [ "F.jobs.>", "F.claims.>", "topic",
			"$JS.API.STREAM.INFO.>", "$JS.API.STREAM.CREATE.>", "$JS.API.STREAM.UPDATE.>",
			"$JS.API.CONSUMER.>", "$JS.API.DIRECT.GET.F_CLAIMS.>", "$JS.ACK.>" ] } }
	]
}
CONF
my @locked = ("url=$locked->{url}", 'stream=S');
my @refused = map { last_of([ @locked, @$_ ], 'connect') } [], [ 'secret:user=me', 'secret:password=wrong-word' ];
like($_, qr/^error .* refused the user or its secrets$/, 'without the right secret') for @refused;
unlike("@refused", qr/wrong-word/, 'which nobody is told');
my @me = (@locked, 'secret:user=me', 'secret:password=secret-word');
is(last_of(\@me, 'connect'), 'ok', 'with it');
my @less = (@locked, 'secret:user=less', 'secret:password=secret-word', 'subjects=no.>,yes');
my @both = ask('nats', \@less, 'connect', 'message p1 no.way - 1', 'message p2 yes - 1', 'publish');
is_deeply([ @both[ 3, 4 ] ], [ 'p1 failed 0 the user may not publish to "no.way"', 'p2 delivered 0' ], 'a subject that is not permitted');
my @few = ("url=$locked->{url}", 'stream=F', 'secret:user=few', 'secret:password=secret-word', 'timeout:2000');
is_deeply([ ask('nats', \@few, 'connect', 'message q1 topic - 1', 'job q2 queue 1', 'publish', 'subscribe queue', 'take 10 1000', 'leave') ],
	[ ('ok') x 3, 'q1 delivered 0', 'q2 delivered 0', 'ok', 'ok', 'q2 ours 1', 'ok', 'ok' ], 'the few rights that suffice');
my $few = ask_start('nats', \@few);
ask_more($few, $_) for 'connect', 'subscribe queue';
is(wait_for('what was left', sub { return (grep { /ours/ } ask_more($few, 'take 10 1000'))[0]; }), 'q2 ours 1', 'what was left comes again');
is((ask_more($few, 'done'))[-1] =~ s/\d+ //r, 'ok ', 'for good');
ask_kill($few);
nats_stop($locked);

# ---- users with keys ----

my ($seed, $public) = nats_key('U');
my $keyed = nats_start('keyed', conf => "authorization { users = [ { nkey: $public } ] }\n");
is(last_of([ "url=$keyed->{url}", "secret:nkey=$seed", "secret:nkeyPublic=$public" ], 'connect'), 'ok', 'a user\'s key');
my ($other) = nats_key('U');
like(last_of([ "url=$keyed->{url}", "secret:nkey=$other", "secret:nkeyPublic=$public" ], 'connect'), qr/^error .* refused the user/, 'another one');
nats_stop($keyed);

my ($conf, $creds) = nats_creds();
my $trusting = nats_start('trusting', conf => $conf);
is(last_of([ "url=$trusting->{url}", 'stream=C', "secret:creds=$creds" ], 'connect', 'message c1 c - 1', 'publish'), 'ok', 'the text of a .creds file');
like(last_of([ "url=$trusting->{url}", "secret:creds=" . (nats_creds())[1] ], 'connect'), qr/^error .* refused the user/, 'of another account');
nats_stop($trusting);

my $bare = nats_start('bare', jetstream => 0);
like(last_of([ "url=$bare->{url}" ], 'connect'), qr/^error .* has no JetStream for this user/, 'a server without JetStream');
like(last_of([ "url=tls://127.0.0.1:$bare->{port}" ], 'connect'), qr/^error .* has no TLS/, 'and without TLS');
nats_stop($bare);

# ---- TLS ----

my $keys = certificates('nats');
my $safe = nats_start('safe', tls => $keys, conf => "authorization { token: token-word }\n");
my @safe = ("url=$safe->{url}", 'stream=S', 'secret:token=token-word');
is(last_of([ @safe, "tls.ca=$keys/ca.pem" ], 'connect', 'message t1 a - 1', 'publish'), 'ok', 'over TLS');
is(last_of([ @safe, 'tls.ca=' . slurp_file("$keys/ca.pem") ], 'connect'), 'ok', 'with the authority in the option');
like(last_of([ @safe, "tls.ca=$keys/other.pem" ], 'connect'), qr/^error .*certificate/i, 'another authority');
like(last_of(\@safe, 'connect'), qr/^error .*certificate/i, 'no authority');
like(last_of([ @safe, "tls.ca=$keys/missing.pem" ], 'connect'), qr/^error .*certificates or the key cannot be used/, 'no such file');
nats_stop($safe);
system_or_bail('cp', "$keys/wrong.pem", "$keys/server.pem");
system_or_bail('cp', "$keys/wrong.key", "$keys/server.key");
nats_again($safe);
like(last_of([ @safe, "tls.ca=$keys/ca.pem" ], 'connect'), qr/^error .*mismatch/, 'a certificate of another host');

done_testing();
