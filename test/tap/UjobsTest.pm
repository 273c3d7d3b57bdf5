# UjobsTest: clusters with ujobs, and waiting for facts instead of time.
#
#     use UjobsTest;
#     my $node = ujobs_cluster('main');               # started, preloaded, extension in database postgres
#     wait_until_sql($node, "select count(*) = 3 from ujobs.jobs where state = 'done'");
#
# Nothing here sleeps for a fixed time: a wait polls a condition and dies,
# with what it saw last, when the condition does not come true.
package UjobsTest;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(ujobs_cluster ujobs_conf wait_until_sql wait_until_sql_is wait_until_log engine_pids sql_state);

# How long a wait may take before the test fails; a loaded machine gets all of it.
our $patience = $ENV{UJOBS_TEST_PATIENCE} // 60;

# Settings of every test cluster; options: preload => 0 leaves the library to be loaded on demand.
sub ujobs_conf
{
	my ($node, %options) = @_;

	$node->append_conf('postgresql.conf', <<"CONF");
max_worker_processes = 32
max_prepared_transactions = 5
timezone = 'UTC'
log_line_prefix = '%m [%p] %b %d '
log_min_messages = info
CONF
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'ujobs'")
	  if $options{preload} // 1;
	$node->append_conf('postgresql.conf', $options{conf}) if defined $options{conf};
	return;
}

# A new cluster, started, with the extension in database postgres.
# Options: those of ujobs_conf; extension => 0 leaves the extension out.
sub ujobs_cluster
{
	my ($name, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
	ujobs_conf($node, %options);
	$node->start;
	$node->safe_psql('postgres', 'create extension ujobs') if $options{extension} // 1;
	return $node;
}

# Polls until the query gives exactly this text.  Survives a server that is
# just restarting.  Options: database => 'postgres', patience => seconds.
sub wait_until_sql_is
{
	my ($node, $query, $expected, %options) = @_;
	my $database = $options{database} // 'postgres';
	my $deadline = time + ($options{patience} // $patience);
	my ($out, $err) = ('', '');

	while (1)
	{
		my $status = $node->psql($database, $query, stdout => \$out, stderr => \$err);
		return 1 if defined $status && $status == 0 && $out eq $expected;
		last if time >= $deadline;
		usleep(50_000);
	}
	die "gave up waiting for \"$expected\" from: $query\nlast answer: \"$out\" $err\n";
}

# Polls until the query gives true.
sub wait_until_sql
{
	my ($node, $query, %options) = @_;

	return wait_until_sql_is($node, $query, 't', %options);
}

# Polls until the server's log holds the pattern; returns the offset behind
# it, to be given as the next wait's start.
sub wait_until_log
{
	my ($node, $pattern, $offset) = @_;

	return $node->wait_for_log($pattern, $offset // 0);
}

# The process ids of this server's ujobs processes, by the beginning of their
# backend type ("ujobs" for all).
sub engine_pids
{
	my ($node, $type) = @_;
	my $out = $node->safe_psql('postgres',
		"select pid from pg_stat_activity where backend_type like '$type%' order by pid");

	return split /\n/, $out;
}

# The SQLSTATE a statement fails with, or '' when it does not.
sub sql_state
{
	my ($node, $statement, %options) = @_;
	my $err = '';

	$node->psql($options{database} // 'postgres', "\\set VERBOSITY sqlstate\n$statement", stderr => \$err,
		on_error_stop => 1);
	return $err =~ /(?:ERROR|FATAL):\s+([0-9A-Z]{5})/ ? $1 : '';
}

1;
