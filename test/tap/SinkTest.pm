# SinkTest: other systems for tests, on loopback ports of their own, and questions to the modules that speak to them.
#
#     use SinkTest;
#     my $redis = redis_start('main');                   # ended at the end, whatever happens
#     my @said = ask('redis', [ "url=$redis->{url}" ], 'connect', 'message a topic - 1', 'publish');
#
# The programs are those of test/sink.
package SinkTest;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run;
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Time::HiRes qw(time usleep);
use UjobsTest;

our @EXPORT = qw(ask ask_start ask_more ask_look ask_kill redis_start redis_kill redis_again redis_cli certificates receiver_start receiver_log
  wait_for);

my $programs = $ENV{UJOBS_SINK_PROGRAMS} // die "UJOBS_SINK_PROGRAMS is not set: see scripts/suite-tap\n";
my $modules = $ENV{UJOBS_SINK_MODULES} // die "UJOBS_SINK_MODULES is not set: see scripts/suite-tap\n";
my %running;

# Polls until the code gives true; its value.
sub wait_for
{
	my ($what, $code) = @_;
	my $deadline = time + $UjobsTest::patience;

	while (1)
	{
		my $value = $code->();
		return $value if $value;
		die "gave up waiting for $what\n" if time >= $deadline;
		usleep(20_000);
	}
}

# ---- questions to a module ----

# Puts the commands to a module; what it said, without the times.
sub ask
{
	my ($kind, $arguments, @commands) = @_;
	my ($out, $err) = ('', '');

	IPC::Run::run([ "$programs/ask", "$modules/ujobs_$kind.so", @$arguments ], '<', \join('', map { "$_\n" } @commands),
		'>', \$out, '2>', \$err);
	return map { s/^(ok|error) \d+ ?/$1 /; s/ +$//; $_ } split /\n/, $out . $err;
}

# Starts one that stays; ask_more puts a command to it and gives what it said.
sub ask_start
{
	my ($kind, $arguments) = @_;
	my $asked = { in => '', out => '', err => '', timer => IPC::Run::timeout($UjobsTest::patience) };

	$asked->{run} = IPC::Run::start([ "$programs/ask", "$modules/ujobs_$kind.so", @$arguments ],
		'<', \$asked->{in}, '>', \$asked->{out}, '2>', \$asked->{err}, $asked->{timer});
	return $asked;
}

# The lines, the last of them "ok MS ..." or "error MS ...".  Patience is that of one command.
sub ask_more
{
	my ($asked, $command) = @_;

	$asked->{timer}->start;
	$asked->{out} = '';
	$asked->{in} .= "$command\n";
	$asked->{run}->pump until $asked->{out} =~ /^(ok|error) \d+ .*\n\z/m;
	return split /\n/, $asked->{out};
}

# What it has said meanwhile is in its {out}; nobody waits.
sub ask_look
{
	my ($asked) = @_;

	$asked->{timer}->start;
	$asked->{run}->pump_nb;
	return;
}

sub ask_kill
{
	my ($asked) = @_;

	$asked->{run}->kill_kill(grace => 0);
	return;
}

# ---- Redis ----

# Starts a server; conf => lines of its configuration, tls => the files of certificates().
sub redis_start
{
	my ($name, %options) = @_;
	my $redis = { name => $name, port => PostgreSQL::Test::Cluster::get_free_port(), place => "$ENV{TESTDATADIR}/redis_$name" };
	my $tls = $options{tls};
	my $conf = $options{conf} // '';

	mkdir $redis->{place} or die "$redis->{place}: $!\n";
	$redis->{port_option} = $tls ? 'tls-port' : 'port';
	$redis->{cli} = [ 'redis-cli', '-p', $redis->{port} ];
	push @{ $redis->{cli} }, '--tls', '--cacert', "$tls/ca.pem", '--cert', "$tls/client.pem", '--key', "$tls/client.key" if $tls;
	$conf .= "port 0\ntls-ca-cert-file $tls/ca.pem\ntls-cert-file $tls/server.pem\ntls-key-file $tls/server.key\n" if $tls;
	append_to_file("$redis->{place}/redis.conf", <<"CONF");
bind 127.0.0.1
appendonly yes
appendfsync always
save ""
dir $redis->{place}
logfile $redis->{place}/log
pidfile $redis->{place}/pid
daemonize no
$conf
$redis->{port_option} $redis->{port}
CONF
	$redis->{url} = ($tls ? 'rediss' : 'redis') . "://127.0.0.1:$redis->{port}";
	redis_again($redis);
	return $redis;
}

# Starts it again, with its data unless forget => 1.
sub redis_again
{
	my ($redis, %options) = @_;

	PostgreSQL::Test::Utils::system_or_bail('rm', '-rf', "$redis->{place}/appendonlydir") if $options{forget};
	my $pid = fork();
	die "fork: $!\n" unless defined $pid;
	if ($pid == 0)
	{
		exec('redis-server', "$redis->{place}/redis.conf") or POSIX::_exit(1);
	}
	$running{$pid} = 1;
	$redis->{pid} = $pid;
	wait_for("redis $redis->{name}", sub { redis_cli($redis, 'ping') =~ /^(PONG|NOAUTH)/ });
	return;
}

sub redis_kill
{
	my ($redis, $signal) = @_;

	return end_process($redis->{pid}, $signal // 'KILL');
}

# What redis-cli says to a command.
sub redis_cli
{
	my ($redis, @words) = @_;
	my ($out, $err) = ('', '');

	IPC::Run::run([ @{ $redis->{cli} }, @words ], '<', \'', '>', \$out, '2>', \$err);
	chomp $out;
	return $out;
}

# ---- certificates ----

# A throw-away authority in a new directory: ca, another one that signed nothing
# here, server (of 127.0.0.1 and localhost), wrong (of another host) and client.
sub certificates
{
	my ($name) = @_;
	my $place = "$ENV{TESTDATADIR}/certificates_$name";
	my $run = sub {
		my ($out, $err) = ('', '');

		IPC::Run::run([ 'openssl', @_ ], '<', \'', '>', \$out, '2>', \$err) or die "openssl @_: $err\n";
	};

	mkdir $place or die "$place: $!\n";
	for my $ca ('ca', 'other')
	{
		$run->('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', 2,
			'-subj', "/CN=$ca of a test", '-keyout', "$place/$ca.key", '-out', "$place/$ca.pem");
	}
	for my $pair ([ 'server', 'IP:127.0.0.1,DNS:localhost' ], [ 'wrong', 'DNS:example.org' ], [ 'client', 'DNS:client' ])
	{
		my ($who, $names) = @$pair;
		append_to_file("$place/$who.ext", "subjectAltName=$names\n");
		$run->('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', "/CN=$who",
			'-keyout', "$place/$who.key", '-out', "$place/$who.csr");
		$run->('x509', '-req', '-in', "$place/$who.csr", '-CA', "$place/ca.pem", '-CAkey', "$place/ca.key", '-CAcreateserial',
			'-days', 2, '-extfile', "$place/$who.ext", '-out', "$place/$who.pem");
	}
	return $place;
}

# ---- a receiver of webhooks ----

sub receiver_start
{
	my ($name, @files) = @_;
	my $receiver = { log => "$ENV{TESTDATADIR}/receiver_$name.log" };

	append_to_file($receiver->{log}, '');
	my $pid = open my $said, '-|', 'python3', "$programs/receiver.py", $receiver->{log}, @files
	  or die "receiver.py: $!\n";
	# Closing the handle waits for the process: it stays open until that has ended.
	$running{$pid} = $said;
	$receiver->{pid} = $pid;
	$receiver->{port} = <$said>;
	chomp $receiver->{port};
	$receiver->{url} = (@files ? 'https' : 'http') . "://127.0.0.1:$receiver->{port}/hook";
	return $receiver;
}

# The requests it took, as JSON texts.
sub receiver_log
{
	my ($receiver) = @_;

	return split /\n/, slurp_file($receiver->{log});
}

# ---- the end ----

sub end_process
{
	my ($pid, $signal) = @_;

	my $handle = delete $running{$pid} or return;

	kill $signal, $pid;
	waitpid $pid, 0 unless ref $handle;
	return;
}

END
{
	my $status = $?;
	end_process($_, 'KILL') for keys %running;
	$? = $status;
}

1;
