# The module of HTTP against a real receiver: what it sends, what becomes of the answers, whom it does not speak to, TLS.
use strict;
use warnings;

use JSON::PP;
use PostgreSQL::Test::Utils;
use SinkTest;
use Test::More;
use UjobsTest;

my $receiver = receiver_start('plain');
my @hook = ("url=$receiver->{url}", 'private');

# The last request with this id.
sub request_of
{
	my ($id) = @_;
	my ($last) = grep { $_->{headers}{'idempotency-key'} eq $id } reverse map { decode_json($_) } receiver_log($receiver);

	return $last;
}

# ---- what is sent ----

is_deeply([ ask('http', [ @hook, 'headers.X-Team=billing', 'secret:bearer=token', 'secret:headers.X-Secret=s' ], 'examine', 'connect',
		'header traceparent 00-ab', 'header x-team other', 'message m1 orders k/1 {"a": "ä"}', 'publish') ],
	[ ('ok') x 5, 'm1 delivered 0', 'ok' ], 'delivered');
my $request = request_of('m1');
is("$request->{method} $request->{path}", 'POST /hook', 'one POST');
is($request->{body}, "{\"a\": \"\x{e4}\"}", 'the payload as it is');
my %expected = ('content-type' => 'application/json',
	'idempotency-key' => 'm1', 'ujobs-topic' => 'orders', 'ujobs-key' => 'k/1', traceparent => '00-ab',
	'x-team' => 'billing', 'x-secret' => 's', authorization => 'Bearer token', 'user-agent' => 'ujobs');
is($request->{headers}{$_}, $expected{$_}, "header $_") for sort keys %expected;
ok(!exists $request->{headers}{expect}, 'nothing is waited for before the body');

ask('http', [ @hook, 'method=PUT', 'secret:user=u', 'secret:password=p' ], 'connect', 'header Content-Type application/cloudevents+json',
	"message m2 t\xc3\xa4%\t - 1", 'publish');
$request = request_of('m2');
is("$request->{method} $request->{headers}{authorization}", 'PUT Basic dTpw', 'another method, user and password');
is("$request->{headers}{'ujobs-topic'} $request->{headers}{'content-type'}", 't%C3%A4%25%09 application/cloudevents+json',
	'a topic of any bytes, a message\'s own type');
ok(!exists $request->{headers}{'ujobs-key'}, 'no key');

ask('http', [ "url=http://127.0.0.1:$receiver->{port}/in/{topic}?v=1", 'private' ], 'connect', 'message m3 a/../b - 1', 'publish');
is(request_of('m3')->{path}, '/in/a%2F..%2Fb?v=1', 'the topic in the url');
is((ask('http', [ "url=http://127.0.0.1:$receiver->{port}/in/{topic}", 'private' ], 'connect', 'message m4 .. - 1', 'publish'))[2],
	'm4 refused 0 topic ".." cannot stand in a url', 'but none that leads elsewhere');

# One connection for one message after another.
ask('http', \@hook, 'connect', map { ("message c$_ t - 1", 'publish') } 1 .. 3);
my %ports = map { request_of("c$_")->{port} => 1 } 1 .. 3;
is(scalar(keys %ports), 1, 'the connection is kept');

my @header = ask('http', \@hook, 'connect', map { ("header $_", "message h t - 1", 'publish') } 'Host x', 'Content-Length 5',
	'Transfer-Encoding chunked', 'Idempotency-Key x', 'Ujobs-Topic x', 'Proxy-X x', 'Authorization x', "X a\rY: b", 'X:Y z', 'Good x');
is(scalar(grep { /^h refused 0 .*(cannot be set|control character|no name)/ } @header), 9, 'headers that are refused');
is(scalar(grep { /^h delivered/ } @header), 1, 'and one that is not');

# ---- what the answers mean ----

my %answers = (
	'status-200' => 'delivered 0', 'status-204' => 'delivered 0', 'status-202' => 'delivered 0',
	'status-400' => 'refused 0 status 400: this is what I think of it', 'status-404' => 'refused 0 status 404: this is what I think of it',
	'status-410' => 'refused 0 status 410: this is what I think of it',
	'status-408' => 'failed 0 status 408: this is what I think of it', 'status-425' => 'failed 0 status 425: this is what I think of it',
	'status-500' => 'failed 0 status 500: this is what I think of it', 'status-503' => 'failed 0 status 503: this is what I think of it',
	busy => 'failed 7000 status 429', binary => 'refused 0 status 400: ??', flood => 'delivered 0',
	cut => 'failed 0 Empty reply from server',
	redirect => "refused 0 status 302: redirects are not followed, this one is to http://127.0.0.1:$receiver->{port}/elsewhere");
my @answered = ask('http', \@hook, 'connect', (map { "message $_ $_ - 1" } sort keys %answers), 'publish');
for my $behaviour (sort keys %answers)
{
	is((grep { /^\Q$behaviour\E / } @answered)[0], "$behaviour $answers{$behaviour}", "an answer: $behaviour");
}
is($answered[-1], 'ok', 'the connection is of use all the same');
is(scalar(grep { $_->{path} eq '/elsewhere' } map { decode_json($_) } receiver_log($receiver)), 0, 'no redirect was followed');

is_deeply([ (ask('http', \@hook, 'connect', 'message again flaky - 1', 'publish', 'message again flaky - 1', 'publish'))[ 2, 5 ] ],
	[ 'again failed 0 status 503', 'again delivered 0' ], 'a repetition is known by its id');

# ---- time ----

my $slow = ask_start('http', [ @hook, 'timeout:30000', 'timeout=1' ]);
ask_more($slow, $_) for 'connect', 'message s1 hang - 1', 'message s2 ok - 1';
my @timed = ask_more($slow, 'publish');
like($timed[0], qr/^s1 failed 0 Operation timed out after 1\d\d\d/, 'a request has its time');
like($timed[1], qr/^s2 delivered/, 'and holds no other up');
like($timed[2], qr/^ok [12]\d\d\d /, 'no longer');
ask_kill($slow);

$slow = ask_start('http', [ @hook, 'timeout:30000' ]);
ask_more($slow, $_) for 'connect', 'message s3 hang - 1', 'stop 100';
@timed = ask_more($slow, 'publish');
is($timed[0], 's3 broken 0 ', 'after a stop nobody knows');
like($timed[1], qr/^error [1-9]\d\d stopped/, 'and it is soon');
ask_kill($slow);

my $port = PostgreSQL::Test::Cluster::get_free_port();
like((ask('http', [ "url=http://127.0.0.1:$port/", 'private' ], 'connect'))[0], qr/^error Failed to connect/, 'nobody there');
like((ask('http', [ 'url=http://no.such.invalid/', 'private', 'timeout:3000' ], 'connect'))[0], qr/^error (Could not resolve host|Resolving timed out)/,
	'no such host');

my @many = ask('http', \@hook, 'connect', 'many 0 500 100 100 t');
like($many[1], qr/^500 in /, 'many');
my %count;
$count{ $_->{headers}{'idempotency-key'} }++ for grep { $_->{headers}{'idempotency-key'} =~ /^00000000/ } map { decode_json($_) } receiver_log($receiver);
is(scalar(keys %count), 500, 'each with its id');

# ---- whom it does not speak to ----

my $asked = scalar(() = receiver_log($receiver));
for my $host (qw(127.0.0.1 127.1.2.3 2130706433 0x7f.1 0 localhost 10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1
	192.0.0.8 198.18.0.1 224.0.0.1 255.255.255.255 [::] [::1] [::ffff:127.0.0.1] [::ffff:10.0.0.1] [::127.0.0.1] [64:ff9b::10.0.0.1]
	[2002:a00:1::1] [fd00::1] [fe80::1] [ff02::1]))
{
	my $arguments = [ "url=http://$host:$receiver->{port}/hook", 'timeout:5000' ];
	like(join('|', ask('http', $arguments, 'connect', 'message p t - 1', 'publish')),
		qr/^ok\|ok\|p refused 0 \S+ is .*, which is not spoken to while ujobs.http_allow_private is off\|ok$/, "not to $host");
}
for my $host (split ' ', `hostname -I`)
{
	my $written = $host =~ /:/ ? "[$host]" : $host;
	like((ask('http', [ "url=http://$written:$receiver->{port}/", 'check' ], 'connect'))[0], qr/^error .*ujobs.http_allow_private is off/,
		'nor to this host');
}
is(scalar(() = receiver_log($receiver)), $asked, 'nothing arrived');
# The ranges end where they should; whether anybody is there does not matter.
unlike((ask('http', [ "url=http://$_:1/", 'check', 'timeout:300' ], 'connect'))[0], qr/http_allow_private/, "but to $_")
  for qw(172.32.0.1 100.128.0.1);

# ---- TLS ----

my $tls = certificates('http');
my $safe = receiver_start('safe', "$tls/server.pem", "$tls/server.key");
is((ask('http', [ "url=$safe->{url}", 'private', "tls.ca=$tls/ca.pem" ], 'connect', 'message t1 t - 1', 'publish'))[2], 't1 delivered 0', 'https');
like((ask('http', [ "url=$safe->{url}", 'private', "tls.ca=$tls/other.pem" ], 'connect'))[0], qr/^error .*certificate/, 'another authority');
like((ask('http', [ "url=$safe->{url}", 'private' ], 'connect'))[0], qr/^error .*certificate/, 'no authority');
like((ask('http', [ "url=$safe->{url}", 'private', "tls.ca=$tls/none.pem" ], 'connect'))[0], qr/^error .*certificate/, 'no such file');
my $wrong = receiver_start('wrong', "$tls/wrong.pem", "$tls/wrong.key");
like((ask('http', [ "url=$wrong->{url}", 'private', "tls.ca=$tls/ca.pem" ], 'connect'))[0], qr/^error .*(does not match|no alternative certificate)/,
	'a certificate of another host');

# ---- options ----

for (
	[ [], qr/"url" is missing/ ],
	[ [ 'url=ftp://x/' ], qr/must begin with https/ ],
	[ [ 'url=file:///etc/passwd' ], qr/must begin with https/ ],
	[ [ 'url=https://user@host/' ], qr/belong to set_sink_secret/ ],
	[ [ 'url=https://user:pw@host/' ], qr/belong to set_sink_secret/ ],
	[ [ 'url=http://{topic}.host/' ], qr/only behind the host/ ],
	[ [ 'url=http://h/{topic}/{topic}' ], qr/only once/ ],
	[ [ 'url=http://h/a b' ], qr/is not a url/ ],
	[ [ 'url=http://h/', 'method=GET' ], qr/none of POST/ ],
	[ [ 'url=http://h/', 'timeout=never' ], qr/not a span/ ],
	[ [ 'url=http://h/', 'headers.Host=x' ], qr/cannot be set/ ],
	[ [ 'url=http://h/', 'headers.Authorization=x' ], qr/belongs to set_sink_secret/ ],
	[ [ 'url=http://h/', "headers.X=a\nb" ], qr/line break/ ],
	[ [ 'url=http://h/', 'secret:user=x' ], qr/belong together/ ],
	[ [ 'url=http://h/', 'secret:user=x', 'secret:password=y', 'secret:bearer=z' ], qr/only one/ ],
	[ [ 'url=http://h/', 'tls.key=/x' ], qr/belong together/ ])
{
	my ($options, $reason) = @$_;
	like((ask('http', $options, 'examine'))[0], qr/^error .*$reason/, "refused: @$options");
}

done_testing();
