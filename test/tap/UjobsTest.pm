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
use File::Basename qw(dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Time::HiRes qw(time usleep);

# Of a session that stays open (background_psql) the server's own modules count the seconds from its
# start; on a busy machine its test needs more than their 180.
$PostgreSQL::Test::Utils::timeout_default = 600 unless $ENV{PG_TEST_TIMEOUT_DEFAULT};

our @EXPORT = qw(ujobs_cluster ujobs_conf wait_until_sql wait_until_sql_is wait_until_log wait_until_engine engine_pids sql_state
  handler_sql end_sql enqueue_job job_end run_job job_result);

# How long a wait may take before the test fails; a loaded machine gets all of it.
our $patience = $ENV{UJOBS_TEST_PATIENCE} // 180;

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
# Options: those of ujobs_conf; extension => 0 leaves the extension out; store => 1 makes the views of test/store.sql.
sub ujobs_cluster
{
	my ($name, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
	ujobs_conf($node, %options);
	$node->start;
	if ($options{extension} // 1)
	{
		$node->safe_psql('postgres', 'create extension ujobs');
		$node->safe_psql('postgres', slurp_file(dirname(__FILE__) . '/../store.sql')) if $options{store};
		wait_until_engine($node) if $options{preload} // 1;
	}
	return $node;
}

# Waits until this database's engine runs.
sub wait_until_engine
{
	my ($node, %options) = @_;

	return wait_until_sql($node, q{select exists (select from ujobs.workers
		where kind = 'dispatcher' and state = 'running' and database = current_database())}, %options);
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

# SQL that creates a handler with this PL/pgSQL body and a job definition of
# the same name, for keys given at enqueue.  Options: procedure => 1, with =>
# further arguments of define_job.
sub handler_sql
{
	my ($name, $body, %options) = @_;
	my $kind = $options{procedure} ? 'procedure' : 'function';
	my $returns = $options{procedure} ? '' : 'returns jsonb';
	my $with = defined $options{with} ? ", $options{with}" : '';

	return <<"SQL";
create $kind public.$name(input jsonb) $returns language plpgsql as \$handler\$ $body \$handler\$;
select ujobs.define_job('$name', 'public.$name', '{n}'$with);
SQL
}

# Enqueues a job under a key of its own; returns its id.
sub enqueue_job
{
	my ($node, $name, %options) = @_;
	my $input = $options{input} // '{}';

	return $node->safe_psql($options{database} // 'postgres',
		"select id from ujobs.enqueue('$name', '$input', idempotency_key => gen_random_uuid()::text)");
}

# SQL that waits for a job and says how it ended:
# "state attempt [sqlstate [sqlstate of the cause]]".
sub end_sql
{
	my ($id) = @_;

	return <<"SQL";
select concat_ws(' ', t ->> 'state', t ->> 'attempt', t -> 'lastError' ->> 'sqlstate', t -> 'lastError' -> 'cause' ->> 'sqlstate')
  from ujobs.wait_for_job($id, '$patience s') as t
SQL
}

sub job_end
{
	my ($node, $id, %options) = @_;

	return $node->safe_psql($options{database} // 'postgres', end_sql($id));
}

# Enqueues a job and waits for its end: as job_end.  Options: input, database,
# look => SQL instead of the end, with the job's id as :id.
sub run_job
{
	my ($node, $name, %options) = @_;
	my $input = $options{input} // '{}';
	my $look = $options{look} // end_sql(':id');

	return $node->safe_psql($options{database} // 'postgres', <<"SQL");
select id from ujobs.enqueue('$name', '$input', idempotency_key => gen_random_uuid()::text) \\gset
$look
SQL
}

# What a job returned.
sub job_result
{
	my ($node, $name, %options) = @_;

	return run_job($node, $name, %options,
		look => "select t ->> 'result' from ujobs.wait_for_job(:id, '$patience s') as t");
}

1;
