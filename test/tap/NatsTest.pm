# NatsTest: nats-server for tests, on loopback ports of its own, and a client of a few lines.
#
#     use NatsTest;
#     my $nats = nats_start('main');                     # with JetStream; ended at the end, whatever happens
#     nats_kill($nats); nats_again($nats);               # kill -9, and back with its data
#     my $answer = nats_request($nats, '$JS.API.INFO');  # as another program would ask
package NatsTest;

use strict;
use warnings;

use Exporter 'import';
use IO::Socket::INET;
use IPC::Run;
use JSON::PP;
use MIME::Base64 ();
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Time::HiRes qw(time usleep);
use UjobsTest;

our @EXPORT = qw(nats_start nats_again nats_kill nats_stop nats_publish nats_request nats_stream nats_message nats_key nats_creds);

my %running;
my $keys = 0;

# Starts a server; jetstream => 0 without it, tls => a directory of certificates(), conf => lines of its configuration.
sub nats_start
{
	my ($name, %options) = @_;
	my $nats = { name => $name, port => PostgreSQL::Test::Cluster::get_free_port(), place => "$ENV{TESTDATADIR}/nats_$name" };
	my $tls = $options{tls};
	my $conf = $options{conf} // '';

	mkdir $nats->{place} or die "$nats->{place}: $!\n";
	$conf .= "jetstream { store_dir: \"$nats->{place}/js\" }\n" if $options{jetstream} // 1;
	$conf .= "tls { cert_file: \"$tls/server.pem\", key_file: \"$tls/server.key\", ca_file: \"$tls/ca.pem\" }\n" if $tls;
	append_to_file("$nats->{place}/conf", "listen: 127.0.0.1:$nats->{port}\nlog_file: \"$nats->{place}/log\"\n$conf");
	$nats->{url} = ($tls ? 'tls' : 'nats') . "://127.0.0.1:$nats->{port}";
	nats_again($nats);
	return $nats;
}

# Starts it again with its data.
sub nats_again
{
	my ($nats) = @_;
	my $pid = fork();

	die "fork: $!\n" unless defined $pid;
	if ($pid == 0)
	{
		open STDOUT, '>>', "$nats->{place}/out";
		open STDERR, '>>', "$nats->{place}/out";
		exec('nats-server', '-c', "$nats->{place}/conf") or POSIX::_exit(1);
	}
	$running{$pid} = 1;
	$nats->{pid} = $pid;
	my $deadline = time + $UjobsTest::patience;
	until (IO::Socket::INET->new("127.0.0.1:$nats->{port}"))
	{
		die "nats $nats->{name} does not start: see $nats->{place}\n" if time > $deadline;
		usleep(20_000);
	}
	return;
}

sub nats_kill
{
	my ($nats, $signal) = @_;

	return unless delete $running{ $nats->{pid} };
	kill $signal // 'KILL', $nats->{pid};
	waitpid $nats->{pid}, 0;
	return;
}

sub nats_stop
{
	return nats_kill($_[0], 'TERM');
}

# A session that says hello.
sub session
{
	my ($nats) = @_;
	my $socket = IO::Socket::INET->new("127.0.0.1:$nats->{port}") or die "nats $nats->{name}: $!\n";

	<$socket>;					# INFO
	print $socket 'CONNECT {"verbose":false,"headers":true,"no_responders":true,"lang":"perl","version":"1"}', "\r\n";
	return $socket;
}

# As a program in another language publishes: without any header.
sub nats_publish
{
	my ($nats, $subject, $text) = @_;
	my $socket = session($nats);

	printf $socket "PUB %s %d\r\n%s\r\nPING\r\n", $subject, length $text, $text;
	1 until <$socket> =~ /^PONG/;
	return;
}

# The answer's text, or undef when nobody answers.
sub nats_request
{
	my ($nats, $subject, $text) = @_;
	my $socket = session($nats);

	$text //= '';
	printf $socket "SUB reply 1\r\nPUB %s reply %d\r\n%s\r\n", $subject, length $text, $text;
	while (my $line = <$socket>)
	{
		return undef if $line =~ /^HMSG/;
		next unless $line =~ /^MSG \S+ \S+ (\d+)/;
		read $socket, (my $answer), $1;
		return $answer;
	}
	die "nats $nats->{name} hung up\n";
}

# What the server says of a stream, or undef.
sub nats_stream
{
	my ($nats, $stream) = @_;
	my $answer = decode_json(nats_request($nats, "\$JS.API.STREAM.INFO.$stream"));

	return $answer->{error} ? undef : $answer;
}

# The headers and the text of a stream's message, as the server keeps them.
sub nats_message
{
	my ($nats, $stream, $number) = @_;
	my $message = decode_json(nats_request($nats, "\$JS.API.STREAM.MSG.GET.$stream", qq({"seq":$number})))->{message};

	return map { MIME::Base64::decode_base64($message->{$_} // '') } 'hdrs', 'data';
}

# ---- keys, as the tools nk and nsc make them ----

sub base32
{
	my ($bytes) = @_;
	my @letters = ('A' .. 'Z', 2 .. 7);

	return join '', map { $letters[ oct "0b" . substr "${_}0000", 0, 5 ] } unpack('B*', $bytes) =~ /(.{1,5})/g;
}

# With the checksum that ends every key (CRC-16/XMODEM).
sub with_checksum
{
	my ($bytes) = @_;
	my $crc = 0;

	for my $byte (unpack 'C*', $bytes)
	{
		$crc ^= $byte << 8;
		$crc = ($crc << 1 ^ ($crc & 0x8000 ? 0x1021 : 0)) & 0xffff for 1 .. 8;
	}
	return base32($bytes . pack 'v', $crc);
}

sub openssl
{
	my ($input, @arguments) = @_;
	my ($out, $err);

	IPC::Run::run([ 'openssl', @arguments ], '<', \$input, '>', \$out, '2>', \$err) or die "openssl @arguments: $err\n";
	return $out;
}

# The seed and the public key of a user (U), an account (A) or an operator (O), and its file.
sub nats_key
{
	my ($kind) = @_;
	my $prefix = { U => 20, A => 0, O => 14 }->{$kind} << 3;
	my $file = "$ENV{TESTDATADIR}/key_" . ++$keys . '.pem';

	openssl('', 'genpkey', '-algorithm', 'ed25519', '-out', $file);
	my $seed = substr openssl('', 'pkey', '-in', $file, '-outform', 'DER'), -32;
	my $public = substr openssl('', 'pkey', '-in', $file, '-pubout', '-outform', 'DER'), -32;
	return (with_checksum(pack('CC', 18 << 3 | $prefix >> 5, ($prefix & 31) << 3) . $seed),
		with_checksum(pack('C', $prefix) . $public), $file);
}

# A signed statement of one key about another one.
sub jwt
{
	my ($file, $issuer, $subject, $fields) = @_;
	my $text = join '.', map { MIME::Base64::encode_base64url(encode_json($_)) } { typ => 'JWT', alg => 'ed25519-nkey' },
	  { jti => 'x', iat => 1700000000, iss => $issuer, sub => $subject, name => 'test', nats => { version => 2, %$fields } };
	my $input = "$file.text";

	unlink $input;
	append_to_file($input, $text);
	return $text . '.' . MIME::Base64::encode_base64url(openssl('', 'pkeyutl', '-sign', '-inkey', $file, '-rawin', '-in', $input));
}

# The configuration of a server that trusts a new operator, and the text of a .creds file of a user there.
sub nats_creds
{
	my (undef, $operator, $operator_file) = nats_key('O');
	my (undef, $account, $account_file) = nats_key('A');
	my ($seed, $user) = nats_key('U');
	my @none = map { $_ => -1 } qw(subs data payload);
	my %limits = (@none, map { $_ => -1 } qw(imports exports conn leaf mem_storage disk_storage streams consumer));
	my $operator_jwt = jwt($operator_file, $operator, $operator, { type => 'operator' });
	my $account_jwt = jwt($operator_file, $operator, $account, { type => 'account', limits => { %limits, wildcards => JSON::PP::true } });
	my (undef, $system) = nats_key('A');
	my $system_jwt = jwt($operator_file, $operator, $system, { type => 'account', limits => { @none, conn => -1, leaf => -1 } });
	my $user_jwt = jwt($account_file, $account, $user, { type => 'user', @none });
	my $conf = "operator: $operator_jwt\nsystem_account: $system\nresolver: MEMORY\n"
	  . "resolver_preload: { $account: $account_jwt, $system: $system_jwt }\n";

	return ($conf, "-----BEGIN NATS USER JWT-----\n$user_jwt\n------END NATS USER JWT------\n\n"
		  . "-----BEGIN USER NKEY SEED-----\n$seed\n------END USER NKEY SEED------\n");
}

END
{
	my $status = $?;
	for my $pid (keys %running)
	{
		kill 'KILL', $pid;
		waitpid $pid, 0;
	}
	$? = $status;
}

1;
